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
	src/format/layout.c \
	src/format/layout.h \
	src/format/pipeline.c \
	src/format/pipeline.h \
	src/format/superblock.c \
	src/format/superblock.h
