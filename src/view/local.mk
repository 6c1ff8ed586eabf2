libh5fs_a_SOURCES += \
	src/view/npy.c \
	src/view/view.c \
	src/view/view.h \
	src/view/views.h
