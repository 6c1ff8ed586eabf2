libh5fs_a_SOURCES += \
	src/io/io.c \
	src/io/io.h \
	src/io/local.c \
	src/io/members.c \
	src/io/memory.c \
	src/io/named.c \
	src/io/named.h \
	src/io/overlay.c \
	src/io/overlay.h \
	src/io/pages.c \
	src/io/pages.h \
	src/io/remote.c \
	src/io/remote.h \
	src/io/remote_cells.c \
	src/io/remote_cells.h \
	src/io/remote_link.c \
	src/io/remote_link.h \
	src/io/remote_plan.c \
	src/io/remote_plan.h \
	src/io/remote_protocol.h \
	src/io/stripes.c \
	src/io/stripes.h
