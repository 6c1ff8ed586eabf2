libh5fs_a_SOURCES += \
	src/vfs/attribute_change.c \
	src/vfs/attributes.c \
	src/vfs/changes.c \
	src/vfs/changes.h \
	src/vfs/directory.h \
	src/vfs/handle.c \
	src/vfs/handle.h \
	src/vfs/links.c \
	src/vfs/listing.c \
	src/vfs/lookup.c \
	src/vfs/name.c \
	src/vfs/name.h \
	src/vfs/node.c \
	src/vfs/node.h \
	src/vfs/paths.c \
	src/vfs/paths.h \
	src/vfs/private.h \
	src/vfs/reading.h \
	src/vfs/stat.c \
	src/vfs/statistics.c \
	src/vfs/vfs.c \
	src/vfs/vfs.h \
	src/vfs/view_tree.c \
	src/vfs/xattr.c
