libh5fs_a_SOURCES += \
	src/chunk_index/chunk_index.h
