libh5fs_a_SOURCES += \
	src/store/btree1.c \
	src/store/btree1.h \
	src/store/btree2.c \
	src/store/btree2.h \
	src/store/cache_image.c \
	src/store/cache_image.h \
	src/store/extension.c \
	src/store/extension.h \
	src/store/file.c \
	src/store/file.h \
	src/store/file_open.c \
	src/store/file_open.h \
	src/store/file_private.h \
	src/store/file_set.c \
	src/store/file_set.h \
	src/store/folder.c \
	src/store/folder.h \
	src/store/members.c \
	src/store/members.h \
	src/store/object_header.c \
	src/store/object_header.h \
	src/store/object_header_check.c \
	src/store/pipeline.c \
	src/store/pipeline.h \
	src/store/statistics.h \
	src/store/want.c \
	src/store/want.h
