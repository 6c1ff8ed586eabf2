libh5fs_a_SOURCES += \
	src/tree/bucket.c \
	src/tree/bucket.h \
	src/tree/bucket_listing.c \
	src/tree/bucket_listing.h \
	src/tree/content.c \
	src/tree/file.c \
	src/tree/file.h \
	src/tree/inside.c \
	src/tree/listing.c \
	src/tree/lookup.c \
	src/tree/node.c \
	src/tree/node.h \
	src/tree/object.c \
	src/tree/object.h \
	src/tree/place.c \
	src/tree/place.h \
	src/tree/plain.c \
	src/tree/plain.h \
	src/tree/private.h \
	src/tree/tree.c \
	src/tree/tree.h
