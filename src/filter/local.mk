libh5fs_a_SOURCES += \
	src/filter/filter.h
