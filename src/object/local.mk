libh5fs_a_SOURCES += \
	src/object/attribute.h \
	src/object/bignum.c \
	src/object/bignum.h \
	src/object/ddl.c \
	src/object/float_text.c \
	src/object/fractal_heap.c \
	src/object/fractal_heap.h \
	src/object/global_heap.h \
	src/object/group.h \
	src/object/integer_text.c \
	src/object/json_string.c \
	src/object/numpy.c \
	src/object/object.c \
	src/object/object.h \
	src/object/path.c \
	src/object/path.h \
	src/object/shared_table.c \
	src/object/shared_table.h \
	src/object/value.h \
	src/object/value_private.h
