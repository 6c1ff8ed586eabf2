dist_man_MANS = doc/h5fs.1
EXTRA_DIST += doc/architecture.md doc/locking.md

.PHONY: check-doc
check-doc:
	mandoc -T lint -W warning $(srcdir)/doc/h5fs.1
