# Unit tests: one libcheck program a module. Their HDF5 files are made by the scripts in tests/fixtures.
UNIT_TESTS = \
	tests/check_base \
	tests/check_name

EXTRA_DIST += tests/unit.h
AM_CPPFLAGS += $(CHECK_CFLAGS)
LDADD = libh5fs.a $(CHECK_LIBS) $(FUSE_LIBS) $(ZLIB_LIBS)

if HAVE_CHECK
check_PROGRAMS = $(UNIT_TESTS)
TESTS = $(UNIT_TESTS)
endif
AM_TESTS_ENVIRONMENT = H5FS_TEST_DATA=$(abs_builddir)/tests/data; export H5FS_TEST_DATA;

# Each script writes files named after itself: PYTHON script OUTPUT_FOLDER.
FIXTURES =
EXTRA_DIST += $(FIXTURES)
check_DATA = tests/data/stamp
tests/data/stamp: $(FIXTURES)
	@mkdir -p tests/data
	$(AM_V_GEN)for script in $(FIXTURES); do \
		$(PYTHON3) $(srcdir)/$$script tests/data || exit 1; \
	done; touch $@

clean-local:
	rm -rf tests/data
