libh5fs_a_SOURCES += \
	src/filter/bits.h \
	src/filter/bitshuffle.c \
	src/filter/buffer.c \
	src/filter/buffer.h \
	src/filter/client_values.c \
	src/filter/client_values.h \
	src/filter/deflate.c \
	src/filter/filter.c \
	src/filter/filter.h \
	src/filter/filters.h \
	src/filter/fletcher32.c \
	src/filter/fpzip.c \
	src/filter/lzf.c \
	src/filter/nbit.c \
	src/filter/planes.c \
	src/filter/planes.h \
	src/filter/quantize.c \
	src/filter/scaleoffset.c \
	src/filter/shuffle.c \
	src/filter/shuffle.h
if HAVE_LIBAEC
libh5fs_a_SOURCES += src/filter/szip.c
endif
if HAVE_LZO
libh5fs_a_SOURCES += src/filter/lzo.c
endif
if HAVE_BZIP2
libh5fs_a_SOURCES += src/filter/bzip2.c
endif
if HAVE_BLOSC
libh5fs_a_SOURCES += src/filter/blosc.c
endif
if HAVE_BLOSC2
libh5fs_a_SOURCES += src/filter/blosc2.c
endif
if HAVE_LZ4
libh5fs_a_SOURCES += src/filter/lz4.c
endif
if HAVE_SNAPPY
libh5fs_a_SOURCES += src/filter/snappy.c
endif
if HAVE_CHARLS
libh5fs_a_SOURCES += src/filter/fcidecomp.c
endif
if HAVE_JPEG
libh5fs_a_SOURCES += src/filter/jpeg.c
endif
if HAVE_ZFP
libh5fs_a_SOURCES += src/filter/zfp.c
endif
if HAVE_ZSTD
libh5fs_a_SOURCES += src/filter/vbz.c src/filter/zstd.c
endif
