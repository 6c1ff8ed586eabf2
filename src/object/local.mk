libh5fs_a_SOURCES += \
	src/object/attribute.h \
	src/object/fractal_heap.c \
	src/object/fractal_heap.h \
	src/object/global_heap.h \
	src/object/group.h \
	src/object/object.c \
	src/object/object.h \
	src/object/shared_table.c \
	src/object/shared_table.h \
	src/object/value.h
