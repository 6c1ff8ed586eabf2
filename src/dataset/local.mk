libh5fs_a_SOURCES += \
	src/dataset/dataset.h
