libh5fs_a_SOURCES += \
	src/vfs/attributes.c \
	src/vfs/content.c \
	src/vfs/dir.c \
	src/vfs/handle.c \
	src/vfs/ids.c \
	src/vfs/listing.c \
	src/vfs/name.c \
	src/vfs/name.h \
	src/vfs/node.c \
	src/vfs/paths.c \
	src/vfs/private.h \
	src/vfs/property.c \
	src/vfs/stat.c \
	src/vfs/statistics.c \
	src/vfs/tree.c \
	src/vfs/vfs.c \
	src/vfs/vfs.h \
	src/vfs/views.c \
	src/vfs/write.c \
	src/vfs/written.c \
	src/vfs/xattr.c
