/* A commit to a file in a folder of its own, for tests of the journal: what the file was before, what it is
 * afterwards, and the journal between these. */
#ifndef H5_TESTS_JOURNAL_SCENE_H
#define H5_TESTS_JOURNAL_SCENE_H

#include "change/journal.h"
#include "scratch.h"

#define SCENE_JOURNAL "a.h5.h5fs-journal"

enum { SCENE_SIZE = 300000 }; /* bytes of the file */

struct scene {
	int dirfd;
	struct h5_journal_place place;
	uint8_t before[SCENE_SIZE], after[SCENE_SIZE];
	struct h5_journal_patch patches[8];
	struct h5_journal_extent extents[8];
	uint64_t objects[2];
	struct h5_journal_record record;
	struct h5_journal *journal; /* NULL: closed */
};

/* Made anew for each test. */
extern struct scene scene;

void scene_setup(void);
void scene_teardown(void);

#define SCENE_MAIN(name, ...) UNIT_MAIN_AROUND(name, scene_setup, scene_teardown, __VA_ARGS__)

/* A file in the folder. */
void scene_put(const char *name, const void *data, size_t n);
size_t scene_get(const char *name, uint8_t *data, size_t n);
bool scene_exists(const char *name);
struct h5_io *scene_open(bool writable);
/* To the record: changed bytes, bytes around them, bytes that must stay. */
void scene_add_patch(uint64_t offset, uint32_t size);
void scene_add_guard(uint64_t offset, uint32_t size);
void scene_add_extent(uint64_t offset, uint64_t size);
/* Patches that lie in one sector, cross one edge, cross several, and share a sector; a guard around two. */
void scene_usual_record(void);
void scene_write_journal(bool swmr);
/* The writer is no more. */
void scene_crash(void);
/* The HDF5 file is this. */
void scene_check_file(const uint8_t *expected);
/* h5_journal_recover() of the file. */
int scene_recover(bool write, struct h5_recovered *recovered);
/* Recovers, with writing and before without; both must come to this. */
void scene_expect(enum h5_recovery what);

#endif
