libh5fs_a_SOURCES += \
	src/remote/fetcher.c \
	src/remote/fetcher.h \
	src/remote/private.h \
	src/remote/response.c \
	src/remote/response.h \
	src/remote/url.c \
	src/remote/url.h
if HAVE_LIBCURL
libh5fs_a_SOURCES += \
	src/remote/answer.c \
	src/remote/s3.c \
	src/remote/s3.h \
	src/remote/serve.c \
	src/remote/transfer.c
endif
