libh5fs_a_SOURCES += \
	src/filter/deflate.c \
	src/filter/filter.c \
	src/filter/filter.h \
	src/filter/filters.h \
	src/filter/fletcher32.c \
	src/filter/shuffle.c
