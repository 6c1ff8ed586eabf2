libh5fs_a_SOURCES += \
	src/format/btree1.c \
	src/format/btree1.h \
	src/format/btree2.c \
	src/format/btree2.h \
	src/format/dataspace.c \
	src/format/dataspace.h \
	src/format/datatype.c \
	src/format/datatype.h \
	src/format/external_files.c \
	src/format/external_files.h \
	src/format/fill_value.c \
	src/format/fill_value.h \
	src/format/fractal_heap.c \
	src/format/fractal_heap.h \
	src/format/header_messages.c \
	src/format/header_messages.h \
	src/format/layout.c \
	src/format/layout.h \
	src/format/object_header.c \
	src/format/object_header.h \
	src/format/pipeline.c \
	src/format/pipeline.h \
	src/format/shared_message.c \
	src/format/shared_message.h \
	src/format/superblock.c \
	src/format/superblock.h
