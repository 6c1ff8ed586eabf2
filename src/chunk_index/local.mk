libh5fs_a_SOURCES += \
	src/chunk_index/btree1.c \
	src/chunk_index/btree2.c \
	src/chunk_index/chunk_index.c \
	src/chunk_index/chunk_index.h \
	src/chunk_index/extensible_array.c \
	src/chunk_index/extensible_array.h \
	src/chunk_index/extensible_array_move.c \
	src/chunk_index/extensible_array_write.c \
	src/chunk_index/fixed_array.c \
	src/chunk_index/implicit.c \
	src/chunk_index/open.c \
	src/chunk_index/private.h \
	src/chunk_index/single.c
