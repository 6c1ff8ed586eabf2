dist_man_MANS = doc/h5fs.1 doc/mount.fuse.h5fs.8 doc/mount.h5fs.8
dist_doc_DATA = README doc/cookbook.md
EXTRA_DIST += doc/architecture.md doc/locking.md doc/performance.md doc/portability.md doc/security.md doc/writing.md

# Which file reads what of the specification.
EXTRA_DIST += doc/format-coverage.md
CLEANFILES += doc/format-coverage.md
doc/format-coverage.md: contrib/spec-coverage $(libh5fs_a_SOURCES)
	@mkdir -p doc
	$(AM_V_GEN)$(PYTHON3) $(srcdir)/contrib/spec-coverage >$@.tmp && mv $@.tmp $@

.PHONY: format-coverage
format-coverage: doc/format-coverage.md

.PHONY: check-doc
check-doc:
	! mandoc -T lint $(srcdir)/doc/h5fs.1 2>&1 | grep -v "outdated mandoc.db"
	desktop-file-validate $(srcdir)/contrib/desktop/h5fs.desktop
