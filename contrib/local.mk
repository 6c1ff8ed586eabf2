EXTRA_DIST += contrib/check-format contrib/check-layers contrib/install-deps contrib/test-all contrib/try
TESTS += contrib/check-layers

.PHONY: check-format
check-format:
	$(srcdir)/contrib/check-format
