bin_PROGRAMS = src/h5fs
src_h5fs_SOURCES = \
	src/fuse/main.c
src_h5fs_LDADD = libh5fs.a $(FUSE_LIBS) $(ZLIB_LIBS)
