libh5fs_a_SOURCES += \
	src/dataset/chunked.c \
	src/dataset/contiguous.c \
	src/dataset/dataset.c \
	src/dataset/dataset.h \
	src/dataset/external.c \
	src/dataset/layouts.h \
	src/dataset/structured.c \
	src/dataset/virtual.c
