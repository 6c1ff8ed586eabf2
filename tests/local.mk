# Unit tests: one libcheck program a module. Their HDF5 files are made by the scripts in tests/fixtures.
UNIT_TESTS = \
	tests/check_attribute \
	tests/check_base \
	tests/check_btree \
	tests/check_btree1_write \
	tests/check_btree2_faults \
	tests/check_btree2_write \
	tests/check_change_unit \
	tests/check_chunk_damage \
	tests/check_chunk_index \
	tests/check_chunk_index_cursor \
	tests/check_chunk_index_write \
	tests/check_dataset \
	tests/check_dataset_faults \
	tests/check_dataset_write \
	tests/check_dataspace \
	tests/check_datatype \
	tests/check_filter \
	tests/check_filter_encode \
	tests/check_filter_libs \
	tests/check_fixed_array_write \
	tests/check_group \
	tests/check_header_edit \
	tests/check_heap \
	tests/check_holes \
	tests/check_journal \
	tests/check_layout \
	tests/check_malformed \
	tests/check_members \
	tests/check_name \
	tests/check_number \
	tests/check_object \
	tests/check_rare \
	tests/check_pipeline \
	tests/check_pool \
	tests/check_read_faults \
	tests/check_reading \
	tests/check_recovery \
	tests/check_selection \
	tests/check_structured \
	tests/check_transaction \
	tests/check_value \
	tests/check_virtual \
	tests/check_window \
	tests/check_write_faults \
	tests/crash_replay

EXTRA_DIST += tests/bytes.h tests/filter_data.h tests/filter_samples.h tests/objects.h tests/unit.h tests/values.h tests/chunk_index_account.h
# Folders of their own, with files whose calls are recorded and fail.
scratch = tests/scratch.c tests/scratch.h tests/fault_io.c tests/fault_io.h
index_target = tests/index_target.c tests/index_target.h $(scratch)
crash_image = tests/crash_image.c tests/crash_image.h tests/crash_workloads.h
tests_check_btree1_write_SOURCES = tests/check_btree1_write.c $(index_target) $(crash_image)
btree2_model = tests/btree2_model.c tests/btree2_model.h $(index_target)
tests_check_btree2_faults_SOURCES = tests/check_btree2_faults.c $(btree2_model) $(crash_image)
tests_check_btree2_write_SOURCES = tests/check_btree2_write.c $(btree2_model)
tests_check_chunk_index_write_SOURCES = tests/check_chunk_index_write.c $(index_target) $(crash_image)
tests_check_filter_encode_SOURCES = tests/check_filter_encode.c $(scratch)
tests_check_fixed_array_write_SOURCES = tests/check_fixed_array_write.c $(index_target)
tests_check_header_edit_SOURCES = tests/check_header_edit.c $(scratch)
tests_check_transaction_SOURCES = tests/check_transaction.c $(scratch)
dataset_model = tests/dataset_model.c tests/dataset_model.h $(scratch)
tests_check_dataset_faults_SOURCES = tests/check_dataset_faults.c $(dataset_model)
tests_check_dataset_write_SOURCES = tests/check_dataset_write.c $(dataset_model)
journal_scene = tests/journal_scene.c tests/journal_scene.h $(scratch)
tests_check_journal_SOURCES = tests/check_journal.c $(journal_scene)
tests_check_recovery_SOURCES = tests/check_recovery.c $(journal_scene)
tests_crash_replay_SOURCES = \
	tests/crash_image.c \
	tests/crash_image.h \
	tests/crash_opinion.c \
	tests/crash_opinion.h \
	tests/crash_replay.c \
	tests/crash_workloads.c \
	tests/crash_workloads.h \
	tests/fault_io.c \
	tests/fault_io.h
tests_check_malformed_SOURCES = tests/check_malformed.c tests/tree_facts.c tests/tree_facts.h
tests_check_malformed_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=free
tests_check_reading_SOURCES = tests/check_reading.c $(scratch)
# Allocations, and system calls of reading, that fail.
fault_alloc = tests/fault_alloc.c tests/fault_alloc.h
fault_alloc_flags = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup,--wrap=strndup,--wrap=asprintf,--wrap=vasprintf
fault_call_flags = -Wl,--wrap=pread64,--wrap=preadv64,--wrap=fstat64,--wrap=open64,--wrap=openat64,--wrap=syscall
tests_check_read_faults_SOURCES = tests/check_read_faults.c tests/fault_call.c tests/fault_call.h $(fault_alloc) $(scratch)
tests_check_read_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags) $(fault_call_flags)
tests_check_change_unit_SOURCES = tests/check_change_unit.c $(crash_image) $(fault_alloc) $(index_target)
tests_check_change_unit_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
tests_check_write_faults_SOURCES = tests/check_write_faults.c $(fault_alloc) $(scratch)
tests_check_write_faults_LDFLAGS = $(AM_LDFLAGS) $(fault_alloc_flags)
AM_CPPFLAGS += $(CHECK_CFLAGS)
LDADD = libh5fs.a $(CHECK_LIBS) $(FUSE_LIBS) $(ZLIB_LIBS) $(FILTER_LIBS)

# Whole-mount tests: one program a topic.
MOUNT_TESTS = \
	tests/mount_append.py \
	tests/mount_automount.py \
	tests/mount_bad.py \
	tests/mount_bad_structures.py \
	tests/mount_big.py \
	tests/mount_bounds.py \
	tests/mount_command.py \
	tests/mount_compact.py \
	tests/cookbook.py \
	tests/mount_copied_pair.py \
	tests/mount_copy.py \
	tests/mount_errors.py \
	tests/mount_fsx.py \
	tests/mount_handles.py \
	tests/mount_holes.py \
	tests/mount_journals.py \
	tests/mount_kill.py \
	tests/mount_lazy.py \
	tests/mount_load.py \
	tests/mount_links.py \
	tests/mount_members.py \
	tests/mount_memmap.py \
	tests/mount_model.py \
	tests/mount_names.py \
	tests/mount_opens.py \
	tests/mount_nfs.py \
	tests/mount_options.py \
	tests/mount_paged.py \
	tests/mount_paged_append.py \
	tests/mount_partial_rows.py \
	tests/mount_rare.py \
	tests/mount_refused.py \
	tests/mount_properties.py \
	tests/mount_safety.py \
	tests/mount_sandbox.py \
	tests/mount_short_chunks.py \
	tests/mount_signals.py \
	tests/mount_space.py \
	tests/mount_statistics.py \
	tests/mount_structured.py \
	tests/mount_swmr.py \
	tests/mount_syncs.py \
	tests/mount_vbz.py \
	tests/mount_view_texts.py \
	tests/mount_views.py \
	tests/mount_wait.py \
	tests/mount_worked_example.py \
	tests/mount_write.py

# Commands that mount nothing.
OFFLINE_TESTS = \
	tests/completion.py \
	tests/offline_check.py \
	tests/offline_list.py \
	tests/offline_refused.py

EXTRA_DIST += $(MOUNT_TESTS) $(OFFLINE_TESTS) \
	tests/btree1_judge.py \
	tests/btree2_judge.py \
	tests/conformance-exceptions \
	tests/conformance.py \
	tests/copy_corpus.py \
	tests/memory_corpus.py \
	tests/copytree.py \
	tests/crash_judge.py \
	tests/judge_walk.py \
	tests/judges.py \
	tests/dataset_write_cuts.py \
	tests/dataset_write_judge.py \
	tests/header_edit_judge.py \
	tests/injectlib.py \
	tests/index_structure.py \
	tests/make_worked_example.py \
	tests/mountlib.py \
	tests/viewlib.py

TESTS = $(MOUNT_TESTS) $(OFFLINE_TESTS)
check_PROGRAMS =
if HAVE_CHECK
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(PYTHON3)
AM_TESTS_ENVIRONMENT = \
	H5FS='$(abs_builddir)/src/h5fs'; export H5FS; \
	H5FS_TEST_DATA='$(abs_builddir)/tests/data'; export H5FS_TEST_DATA; \
	H5FS_CONFORMANCE=$(CONFORMANCE); export H5FS_CONFORMANCE; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;

# Each script writes files named after itself: PYTHON script OUTPUT_FOLDER.
FIXTURES = \
	tests/fixtures/btree1_write.py \
	tests/fixtures/btree2_write.py \
	tests/fixtures/chunk_index.py \
	tests/fixtures/crash_replay.py \
	tests/fixtures/chunk_index_write.py \
	tests/fixtures/dataset.py \
	tests/fixtures/dataset_write.py \
	tests/fixtures/filter_encode.py \
	tests/fixtures/filter_libs.py \
	tests/fixtures/fixed_array_write.py \
	tests/fixtures/header_edit.py \
	tests/fixtures/holes.py \
	tests/fixtures/malformed.py \
	tests/fixtures/members.py \
	tests/fixtures/object.py \
	tests/fixtures/rare_headers.py \
	tests/fixtures/rare_heaps.py \
	tests/fixtures/rare_layouts.py \
	tests/fixtures/rare_sizes.py \
	tests/fixtures/read_faults.py \
	tests/fixtures/reading.py \
	tests/fixtures/structured.py \
	tests/fixtures/value.py \
	tests/fixtures/virtual.py \
	tests/fixtures/write_faults.py
# What several of them share.
FIXTURE_MODULES = \
	tests/fixtures/expected.py \
	tests/fixtures/h5bytes.py \
	tests/fixtures/h5dataset.py \
	tests/fixtures/h5heap.py \
	tests/fixtures/libhdf5.py \
	tests/fixtures/vbz.py
EXTRA_DIST += $(FIXTURES) $(FIXTURE_MODULES)
check_DATA = tests/data/stamp
tests/data/stamp: $(FIXTURES) $(FIXTURE_MODULES)
	@mkdir -p tests/data
	$(AM_V_GEN)for script in $(FIXTURES); do \
		PYTHONDONTWRITEBYTECODE=1 $(PYTHON3) $(srcdir)/$$script tests/data || exit 1; \
	done; touch $@

clean-local:
	rm -rf tests/data

# For an hour and more: readers along with a writer, load, random sequences, crashes and killed daemons, each with other seeds than in `make check`.
SOAK_SECONDS = 3600
SOAK_SEQUENCES = 20000
SOAK_KILLS = 2000
SOAK_SEEDS = 20
.PHONY: soak
soak: src/h5fs tests/crash_replay tests/data/stamp
	@$(AM_TESTS_ENVIRONMENT) \
	H5FS_FOLLOW_SECONDS=$(SOAK_SECONDS) $(PYTHON3) $(srcdir)/tests/mount_swmr.py && \
	H5FS_LOAD_SECONDS=60 $(PYTHON3) $(srcdir)/tests/mount_load.py && \
	H5FS_MODEL_SEED=random H5FS_MODEL_SEQUENCES=$(SOAK_SEQUENCES) $(PYTHON3) $(srcdir)/tests/mount_model.py && \
	H5FS_KILLS=$(SOAK_KILLS) $(PYTHON3) $(srcdir)/tests/mount_kill.py && \
	for seed in `seq 2 $(SOAK_SEEDS)`; do \
		srcdir=$(srcdir) H5FS_CRASH_SEED=$$seed tests/crash_replay || exit 1; \
	done

# What asks libhdf5 about files that h5fs has written. `make check` asks the newer versions too, about some of the files, where
# contrib/judges has made them; this makes them, and asks about every file.
JUDGED_TESTS = \
	tests/check_btree1_write \
	tests/check_btree2_faults \
	tests/check_btree2_write \
	tests/check_chunk_index_write \
	tests/check_dataset_faults \
	tests/check_dataset_write \
	tests/check_fixed_array_write \
	tests/check_header_edit \
	tests/check_transaction \
	tests/check_write_faults \
	tests/crash_replay \
	tests/cookbook.py \
	tests/mount_append.py \
	tests/mount_fsx.py \
	tests/mount_kill.py \
	tests/mount_load.py \
	tests/mount_model.py \
	tests/mount_paged_append.py \
	tests/mount_sandbox.py \
	tests/mount_space.py \
	tests/mount_swmr.py \
	tests/mount_syncs.py \
	tests/mount_write.py \
	tests/offline_refused.py
.PHONY: judge-newer
judge-newer:
	$(srcdir)/contrib/judges make
	@status=0; H5FS_JUDGE=all CK_TIMEOUT_MULTIPLIER=6 $(MAKE) check TESTS="$(JUDGED_TESTS)" || status=1; \
	for test in $(JUDGED_TESTS); do \
		log=$${test%.py}; \
		sed -n 's/^:test-result: /result /p' $$log.trs; \
		sed -nE 's/.*Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+)(, Skipped: ([0-9]+))?.*/checks \1 \2 \3 \5/p' $$log.log; \
	done | awk '$$1 == "result" { if ($$2 != "PASS") bad++; else good++ } \
		$$1 == "checks" { good += $$2 - $$3 - $$4 - ($$3 + $$4 == 0); missed += $$5 } \
		END { printf "%d passed, %d failed, %d skipped\n", good, bad, missed }'; \
	exit $$status

# Every byte of the files that `make check` takes some of.
.PHONY: malformed
malformed: tests/check_malformed tests/data/stamp
	@$(AM_TESTS_ENVIRONMENT) H5FS_MALFORMED=all tests/check_malformed

# Real files and what libhdf5 says of them; not part of the project.
CONFORMANCE = $(top_srcdir)/../shared/conformance
need_conformance = \
	test -f $(CONFORMANCE)/check.py || { \
		echo "no conformance files at $(CONFORMANCE): skipped"; \
		echo "0 passed, 0 failed, 1 skipped"; exit 0; }; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE

# conformance: the common files, the corners, and malformed ones; conformance-all: every file there is; -copy: copies of the mounts; -memory: what
# the daemon takes.
.PHONY: conformance conformance-all conformance-copy conformance-memory
conformance: src/h5fs
	@$(need_conformance); status=0; \
	check() { $(PYTHON3) $(CONFORMANCE)/check.py --h5fs src/h5fs "$$@" || status=1; }; \
	check --corpus $(CONFORMANCE)/corpus --truth $(CONFORMANCE)/truth --list $(CONFORMANCE)/core.txt; \
	check --corpus $(CONFORMANCE)/edge/corpus --truth $(CONFORMANCE)/edge/truth; \
	check --bad $(CONFORMANCE)/bad; \
	exit $$status

conformance-all: src/h5fs
	@$(need_conformance); \
	H5FS='$(abs_builddir)/src/h5fs' $(PYTHON3) $(srcdir)/tests/conformance.py $(CONFORMANCE) $(srcdir)/tests/conformance-exceptions

conformance-memory: src/h5fs
	@$(need_conformance); \
	H5FS='$(abs_builddir)/src/h5fs' $(PYTHON3) $(srcdir)/tests/memory_corpus.py $(CONFORMANCE)/corpus

conformance-copy: src/h5fs
	@$(need_conformance); \
	H5FS='$(abs_builddir)/src/h5fs' $(PYTHON3) $(srcdir)/tests/copy_corpus.py $(CONFORMANCE)/corpus $(CONFORMANCE)/core.txt
