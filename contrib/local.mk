EXTRA_DIST += contrib/check-format contrib/check-layers contrib/install-deps contrib/spec-coverage contrib/test-all contrib/try
TESTS += contrib/check-layers contrib/spec-coverage

.PHONY: check-format
check-format:
	$(srcdir)/contrib/check-format
