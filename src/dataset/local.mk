libh5fs_a_SOURCES += \
	src/dataset/boxes.c \
	src/dataset/boxes.h \
	src/dataset/chunked.c \
	src/dataset/contiguous.c \
	src/dataset/convert.c \
	src/dataset/convert.h \
	src/dataset/dataset.c \
	src/dataset/dataset.h \
	src/dataset/external.c \
	src/dataset/layouts.h \
	src/dataset/places.c \
	src/dataset/places.h \
	src/dataset/selection_private.h \
	src/dataset/selection_shape.c \
	src/dataset/selection_walk.c \
	src/dataset/selection_walk.h \
	src/dataset/structured.c \
	src/dataset/virtual.c \
	src/dataset/virtual_map.c \
	src/dataset/virtual_map.h \
	src/dataset/virtual_source.c \
	src/dataset/virtual_source.h \
	src/dataset/write_chunked.c \
	src/dataset/write_private.h \
	src/dataset/writer.c \
	src/dataset/writer.h
