libh5fs_a_SOURCES += \
	src/base/buf.c \
	src/base/buf.h \
	src/base/checked.h \
	src/base/checksum.c \
	src/base/checksum.h \
	src/base/error.c \
	src/base/error.h \
	src/base/escape.c \
	src/base/escape.h \
	src/base/interrupt.c \
	src/base/interrupt.h \
	src/base/lookup3.c \
	src/base/lookup3.h \
	src/base/lru.c \
	src/base/lru.h \
	src/base/pool.c \
	src/base/pool.h \
	src/base/reader.c \
	src/base/reader.h \
	src/base/siphash.c \
	src/base/siphash.h \
	src/base/seen.c \
	src/base/seen.h \
	src/base/thread.c \
	src/base/thread.h \
	src/base/writer.c \
	src/base/writer.h
