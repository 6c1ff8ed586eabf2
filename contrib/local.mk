EXTRA_DIST += contrib/check-format contrib/check-layers contrib/coverage contrib/h5wasm contrib/install-deps contrib/judges contrib/spec-coverage contrib/suites contrib/test-all contrib/try
TESTS += contrib/check-layers contrib/spec-coverage

# For contrib/test-all.
.PHONY: list-tests
list-tests:
	@echo $(TESTS)

.PHONY: check-format
check-format:
	$(srcdir)/contrib/check-format

# make coverage: which lines `make check` runs (contrib/install-deps test coverage). A build that does not count them makes one below it
# that does.
.PHONY: coverage
if COVERAGE
coverage:
	find . -name '*.gcda' -delete
	status=0; $(MAKE) check || status=1; \
	PYTHONDONTWRITEBYTECODE=1 $(PYTHON3) $(srcdir)/contrib/coverage $(srcdir) . || status=1; exit $$status
else
coverage:
	$(MKDIR_P) coverage
	cd coverage && { test -f Makefile || "$(abs_srcdir)/configure" -q --enable-coverage; } && $(MAKE) && $(MAKE) coverage
endif

# make check-sanitized: all tests with AddressSanitizer and UndefinedBehaviorSanitizer, in a build below this one (contrib/install-deps test fuzz).
# contrib/test-all runs only some of them.
.PHONY: check-sanitized
check-sanitized:
	$(MKDIR_P) sanitized
	cd sanitized && { test -f Makefile || "$(abs_srcdir)/configure" -q CC=clang CFLAGS='-O2 -g1' --enable-asan --enable-ubsan; } && \
		$(MAKE) && $(MAKE) check

# make suites: fio and stress-ng on mounts (contrib/install-deps test suites); what they may expect is written in the script.
.PHONY: suites
suites: src/h5fs
	@$(srcdir)/contrib/suites src/h5fs

# make bench: measures h5fs against libhdf5 and the limits of the machine (contrib/install-deps bench); doc/performance.md says how.
# Its programs are built for it alone.
bench_programs = contrib/bench/bare contrib/bench/bare_tree contrib/bench/files contrib/bench/inflate contrib/bench/libhdf5
bench_common = contrib/bench/bench.c contrib/bench/bench.h
hdf5_cflags = `$(PKG_CONFIG) --cflags hdf5 | sed 's/-I/-isystem /g'`
hdf5_libs = `$(PKG_CONFIG) "--libs" hdf5`
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)
contrib_bench_bare_SOURCES = contrib/bench/bare.c $(bench_common)
contrib_bench_bare_LDADD = $(FUSE_LIBS)
contrib_bench_bare_tree_SOURCES = contrib/bench/bare_tree.c $(bench_common)
contrib_bench_bare_tree_LDADD = $(FUSE_LIBS)
contrib_bench_files_SOURCES = contrib/bench/files.c $(bench_common)
contrib_bench_inflate_SOURCES = contrib/bench/inflate.c $(bench_common)
contrib_bench_inflate_LDADD = -ldeflate
contrib_bench_libhdf5_SOURCES = contrib/bench/libhdf5.c $(bench_common)
contrib_bench_libhdf5_CPPFLAGS = $(AM_CPPFLAGS) $(hdf5_cflags)
contrib_bench_libhdf5_LDADD = $(hdf5_libs)
contrib_bench_libhdf5_DEPENDENCIES =
EXTRA_DIST += \
	contrib/bench/arrays.py \
	contrib/bench/bench.py \
	contrib/bench/data.py \
	contrib/bench/h5py_side.py \
	contrib/bench/lines.py \
	contrib/bench/names.py \
	contrib/bench/processes.py \
	contrib/bench/remote.py \
	contrib/bench/rows.py \
	contrib/bench/io_uring.py \
	contrib/bench/locks.c \
	contrib/bench/locks.py \
	contrib/bench/small.py

# BENCH_ROWS: keys of rows, or parts of keys. BENCH_SCALE: below 1, a trial of the benchmark itself. BENCH_OTHER: another h5fs, measured
# beside this one.
BENCH_DIR = bench
BENCH_ROWS =
BENCH_SCALE = 1
BENCH_OTHER =
.PHONY: bench
bench: src/h5fs $(bench_programs)
	@PYTHONDONTWRITEBYTECODE=1 $(PYTHON3) $(srcdir)/contrib/bench/bench.py --h5fs src/h5fs --programs contrib/bench \
		--folder "$(BENCH_DIR)" --scale $(BENCH_SCALE) --rows "$(BENCH_ROWS)" --other "$(BENCH_OTHER)"

# make bench-locks: what the daemon's locks cost, by the number of workers and readers.
CLEANFILES += contrib/bench/locks.so
contrib/bench/locks.so: contrib/bench/locks.c
	@$(MKDIR_P) contrib/bench
	$(CC) $(CPPFLAGS) $(CFLAGS) -D_GNU_SOURCE -shared -fPIC -o $@ $(srcdir)/contrib/bench/locks.c
.PHONY: bench-locks
bench-locks: src/h5fs $(bench_programs) contrib/bench/locks.so
	@PYTHONDONTWRITEBYTECODE=1 $(PYTHON3) $(srcdir)/contrib/bench/locks.py src/h5fs "$(BENCH_DIR)" contrib/bench

# What belongs to an installed h5fs beside the program and its manual.
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/vendor-completions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
applicationsdir = $(datadir)/applications
mimedir = $(datadir)/mime/packages
dist_zshcompletion_DATA = contrib/completion/_h5fs
dist_fishcompletion_DATA = contrib/completion/h5fs.fish
dist_applications_DATA = contrib/desktop/h5fs.desktop
dist_mime_DATA = contrib/desktop/h5fs.xml
EXTRA_DIST += contrib/completion/h5fs.bash
install-data-hook:
	$(MKDIR_P) "$(DESTDIR)$(bashcompletiondir)"
	$(INSTALL_DATA) $(srcdir)/contrib/completion/h5fs.bash "$(DESTDIR)$(bashcompletiondir)/h5fs"

# make deb: the Debian package, in the build folder (contrib/install-deps test). make check-deb: installs it in a clean root of
# Debian 12 and mounts a file there; as root.
EXTRA_DIST += \
	contrib/debian/changelog \
	contrib/debian/control \
	contrib/debian/copyright \
	contrib/debian/rules \
	contrib/debian/source/format \
	contrib/make-deb \
	contrib/test-deb
.PHONY: deb check-deb
deb: dist
	$(srcdir)/contrib/make-deb $(distdir).tar.xz .
check-deb: deb
	$(srcdir)/contrib/test-deb ./h5fs_*.deb

# By hand and before a release, as root (contrib/install-deps test); doc/portability.md has the last results. check-bare: README's two
# commands on a bare Debian 12. check-releases: make check on newer Debians. check-machines: unit tests for other processors.
EXTRA_DIST += contrib/check-bare contrib/check-machines contrib/check-releases contrib/copy-sources contrib/in-root contrib/make-root
.PHONY: check-bare check-machines check-releases
check-bare check-machines check-releases:
	$(srcdir)/contrib/$@

# make mutate: which defects no test sees. MUTATE: options, as --seed 2 --count 300 --folders "vfs view".
MUTATE = --seed 1 --count 100
EXTRA_DIST += contrib/mutate contrib/mutants-alike
.PHONY: mutate
mutate:
	@PYTHONDONTWRITEBYTECODE=1 $(PYTHON3) $(srcdir)/contrib/mutate $(srcdir) $(MUTATE)

# How many source files one has to open to follow a request: doc/architecture.md.
EXTRA_DIST += contrib/hops contrib/hops.c
.PHONY: hops
hops:
	$(PYTHON3) $(srcdir)/contrib/hops $(srcdir) -v
