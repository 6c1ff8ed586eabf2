libh5fs_a_SOURCES += \
	src/view/attrs.c \
	src/view/csv.c \
	src/view/json.c \
	src/view/npy.c \
	src/view/png.c \
	src/view/text.c \
	src/view/text.h \
	src/view/view.c \
	src/view/view.h \
	src/view/views.h
