# Fuzz targets: tests/fuzz/fuzz.h. The program of all targets is called by the name of one. It is built for fuzzing alone
# (configure --enable-fuzzing); in `make check` the inputs that are kept run without a fuzzer.
fuzz_targets = \
	tests/fuzz/blocks.c \
	tests/fuzz/checksum.c \
	tests/fuzz/credentials.c \
	tests/fuzz/files.c \
	tests/fuzz/filters.c \
	tests/fuzz/fuzz.h \
	tests/fuzz/messages.c \
	tests/fuzz/mount.c \
	tests/fuzz/mount.h \
	tests/fuzz/remote.c \
	tests/fuzz/requests.c \
	tests/fuzz/server.c \
	tests/fuzz/server.h \
	tests/fuzz/targets.c \
	tests/fuzz/texts.c \
	tests/fuzz/untouched.c \
	tests/fuzz/untouched.h \
	tests/fuzz/walk.c \
	tests/fuzz/walk.h \
	tests/fuzz/write.c \
	tests/fuzz/write.h
tests_fuzz_replay_SOURCES = tests/fuzz/replay.c $(fuzz_targets) $(idle_fetcher)
# libcurl comes first, so that its own functions are linked, not those of src/remote/libcurl.c: server.c stands between it and the C library.
tests_fuzz_replay_LDADD = $(CURL_LIBS) $(LDADD)
EXTRA_PROGRAMS += tests/fuzz/fuzz
CLEANFILES += tests/fuzz/fuzz
tests_fuzz_fuzz_SOURCES = tests/fuzz/main.c $(fuzz_targets) $(idle_fetcher)
tests_fuzz_fuzz_LDADD = $(CURL_LIBS) $(LDADD)
tests_fuzz_fuzz_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
check_PROGRAMS += tests/fuzz/replay
TESTS += tests/fuzz/replay
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/finds tests/fuzz/run tests/fuzz/seeds.py

# FUZZ_TARGETS: names, none for all of them. FUZZ_SECONDS: for each. New inputs go to FUZZ_DIR, what is found to
# FUZZ_DIR/finds. fuzz-minimise: takes what covers more than the corpus has into it.
FUZZ_TARGETS =
FUZZ_SECONDS = 30
FUZZ_DIR = fuzz
fuzz_run = @srcdir=$(srcdir) PYTHON3=$(PYTHON3) FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_DIR=$(FUZZ_DIR) \
	FUZZ_MORE=$(CONFORMANCE) $(srcdir)/tests/fuzz/run
.PHONY: fuzz fuzz-minimise
fuzz: tests/fuzz/fuzz tests/data/stamp
	$(fuzz_run) fuzz $(FUZZ_TARGETS)
fuzz-minimise: tests/fuzz/fuzz
	$(fuzz_run) minimise $(FUZZ_TARGETS)
