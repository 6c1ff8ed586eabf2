bin_PROGRAMS = src/h5fs
src_h5fs_SOURCES = \
	src/fuse/background.c \
	src/fuse/background.h \
	src/fuse/closer.c \
	src/fuse/closer.h \
	src/fuse/commit.c \
	src/fuse/commit.h \
	src/fuse/daemon.c \
	src/fuse/daemon.h \
	src/fuse/directories.c \
	src/fuse/directories.h \
	src/fuse/files.c \
	src/fuse/files.h \
	src/fuse/helper.c \
	src/fuse/helper.h \
	src/fuse/invalidate.c \
	src/fuse/invalidate.h \
	src/fuse/io_uring.c \
	src/fuse/io_uring.h \
	src/fuse/landlock.c \
	src/fuse/landlock.h \
	src/fuse/libfuse_arguments.c \
	src/fuse/libfuse_arguments.h \
	src/fuse/log.c \
	src/fuse/log.h \
	src/fuse/loop.c \
	src/fuse/loop.h \
	src/fuse/main.c \
	src/fuse/mountinfo.c \
	src/fuse/mountinfo.h \
	src/fuse/mountpoint.c \
	src/fuse/mountpoint.h \
	src/fuse/names.c \
	src/fuse/names.h \
	src/fuse/negotiate.c \
	src/fuse/negotiate.h \
	src/fuse/opening.c \
	src/fuse/opening.h \
	src/fuse/operations.c \
	src/fuse/operations.h \
	src/fuse/option_defaults.c \
	src/fuse/option_defaults.h \
	src/fuse/option_table.c \
	src/fuse/option_table.h \
	src/fuse/option_values.c \
	src/fuse/option_values.h \
	src/fuse/options.c \
	src/fuse/options.h \
	src/fuse/readahead.c \
	src/fuse/readahead.h \
	src/fuse/report.c \
	src/fuse/report.h \
	src/fuse/request.c \
	src/fuse/request.h \
	src/fuse/sandbox.c \
	src/fuse/sandbox.h \
	src/fuse/seccomp.c \
	src/fuse/seccomp.h \
	src/fuse/settings.h \
	src/fuse/signals.c \
	src/fuse/signals.h \
	src/fuse/status.h \
	src/fuse/tree_operations.c \
	src/fuse/tree_operations.h \
	src/fuse/xattrs.c \
	src/fuse/xattrs.h \
	src/fuse/unmount.c \
	src/fuse/unmount.h \
	src/fuse/unmounter.c \
	src/fuse/unmounter.h \
	src/fuse/watch.c \
	src/fuse/watch.h
if COVERAGE
src_h5fs_SOURCES += src/fuse/end_with_counts.c
src_h5fs_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=_exit
endif
src_h5fs_LDADD = libh5fs.a $(FUSE_LIBS) $(JSON_LIBS) $(MD_LIBS) $(SECCOMP_LIBS) $(ZLIB_LIBS) $(FILTER_LIBS)

# What mount(8) calls for the types h5fs and fuse.h5fs. It looks in /sbin alone: make install mountdir=/sbin, if the prefix is not /usr.
mountdir = $(sbindir)
install-exec-hook:
	$(MKDIR_P) "$(DESTDIR)$(mountdir)"
	cd "$(DESTDIR)$(mountdir)" && for name in mount.h5fs mount.fuse.h5fs; do rm -f $$name && $(LN_S) "$(bindir)/h5fs" $$name || exit 1; done
uninstall-hook:
	rm -f "$(DESTDIR)$(mountdir)/mount.h5fs" "$(DESTDIR)$(mountdir)/mount.fuse.h5fs" "$(DESTDIR)$(bashcompletiondir)/h5fs"
