libh5fs_a_SOURCES += \
	src/offline/cat.c \
	src/offline/check.c \
	src/offline/check.h \
	src/offline/check_heap.c \
	src/offline/check_object.c \
	src/offline/check_private.h \
	src/offline/check_shared.c \
	src/offline/check_values.c \
	src/offline/check_values.h \
	src/offline/check_walk.c \
	src/offline/extract.c \
	src/offline/find.c \
	src/offline/list.c \
	src/offline/offline.h \
	src/offline/progress.c \
	src/offline/progress.h \
	src/offline/report.c \
	src/offline/stop.c \
	src/offline/stop.h \
	src/offline/target.c \
	src/offline/target.h \
	src/offline/usage.c \
	src/offline/usage.h \
	src/offline/walk.c \
	src/offline/walk.h
