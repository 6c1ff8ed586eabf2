libh5fs_a_SOURCES += \
	src/filter/bits.h \
	src/filter/deflate.c \
	src/filter/filter.c \
	src/filter/filter.h \
	src/filter/filters.h \
	src/filter/fletcher32.c \
	src/filter/lzf.c \
	src/filter/nbit.c \
	src/filter/scaleoffset.c \
	src/filter/shuffle.c
