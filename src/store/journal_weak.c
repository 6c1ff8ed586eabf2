#include "store/journal.h"

#include <stdlib.h>
#include <string.h>

uint64_t __attribute__((weak)) h5_journal_hash(const void *data, size_t n)
{
	(void)data;
	return n;
}

int __attribute__((weak))
h5_journal_create(const struct h5_journal_place *place, bool swmr, struct h5_journal **journal)
{
	(void)place;
	(void)swmr;
	*journal = NULL;
	return 0;
}

int __attribute__((weak)) h5_journal_write(struct h5_journal *journal, struct h5_journal_record *record)
{
	(void)journal;
	(void)record;
	return 0;
}

int __attribute__((weak)) h5_journal_clear(struct h5_journal *journal)
{
	(void)journal;
	return 0;
}

void __attribute__((weak)) h5_journal_close(struct h5_journal *journal, bool done)
{
	(void)journal;
	(void)done;
}

int __attribute__((weak))
h5_journal_recover(const struct h5_journal_place *place, struct h5_io *io, bool write, struct h5_io **overlay,
		   struct h5_recovered *recovered)
{
	(void)place;
	(void)io;
	(void)write;
	*overlay = NULL;
	memset(recovered, 0, sizeof *recovered);
	return 0;
}

void __attribute__((weak)) h5_recovered_release(struct h5_recovered *recovered)
{
	(void)recovered;
}

int __attribute__((weak))
h5_journal_set_aside(const struct h5_journal_place *place, const struct h5_recovered *recovered)
{
	(void)place;
	(void)recovered;
	return 0;
}

int __attribute__((weak)) h5_journal_remove(const struct h5_journal_place *place)
{
	(void)place;
	return 0;
}
