libh5fs_a_SOURCES += \
	src/remote/disk_budget.c \
	src/remote/disk_file.c \
	src/remote/disk_file.h \
	src/remote/disk_folder.c \
	src/remote/disk_folder.h \
	src/remote/disk_format.c \
	src/remote/disk_format.h \
	src/remote/fetcher.c \
	src/remote/fetcher.h \
	src/remote/grant.c \
	src/remote/grant.h \
	src/remote/listing.c \
	src/remote/listing.h \
	src/remote/private.h \
	src/remote/profile.c \
	src/remote/profile.h \
	src/remote/response.c \
	src/remote/response.h \
	src/remote/s3.c \
	src/remote/s3.h \
	src/remote/text.h \
	src/remote/url.c \
	src/remote/url.h \
	src/remote/xml.c \
	src/remote/xml.h
if HAVE_LIBCURL
libh5fs_a_SOURCES += \
	src/remote/answer.c \
	src/remote/credentials.c \
	src/remote/credentials.h \
	src/remote/handle.c \
	src/remote/handle.h \
	src/remote/identity.c \
	src/remote/identity.h \
	src/remote/libcurl.c \
	src/remote/libcurl.h \
	src/remote/disk.c \
	src/remote/s3.c \
	src/remote/s3.h \
	src/remote/serve.c \
	src/remote/transfer.c
endif
