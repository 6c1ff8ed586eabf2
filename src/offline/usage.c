#include "offline/usage.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "dataset/removal.h"
#include "format/global_heap.h"
#include "object/file_space.h"
#include "object/shared_table.h"
#include "store/extension.h"

#include <stdlib.h>
#include <string.h>

enum {
	USES_MAX = 1 << 23, /* so many extents are remembered */
	PIECE = 1 << 18,    /* bytes that are searched at once */
	SIGNATURE = 4,	    /* bytes of the signature of a collection */
};

struct h5_use {
	uint64_t address, size;
	uint64_t owner; /* as in struct h5_usage */
};

/* True: the bytes lie before an end that the file states. */
static bool is_inside(const struct h5_usage *usage, uint64_t address, uint64_t n)
{
	struct h5_file_area areas[H5_FILE_AREAS_MAX];
	unsigned i = h5_file_areas(usage->file, areas) - 1;
	uint64_t end;

	while (areas[i].start > address)
		i--;
	return h5_add(address, n, &end) && end <= areas[i].end;
}

/* ---- gathering ---- */

static int add(void *arg, uint64_t address, uint64_t n)
{
	struct h5_usage *usage = arg;
	struct h5_use *last = usage->count ? &usage->uses[usage->count - 1] : NULL;
	int rc;

	/* A SWMR writer states the end only when it closes the file. */
	if (!is_inside(usage, address, n))
		return h5_fail(-ENOTSUP, address, "%ju bytes beyond the end of the file", (uintmax_t)n);
	if (last && last->owner == usage->owner && last->address + last->size == address) {
		last->size += n;
		return 0;
	}
	if (usage->count == USES_MAX)
		return h5_fail(-EFBIG, address, "more than %d pieces of space", USES_MAX);
	rc = h5_array_reserve(&usage->uses, &usage->capacity, usage->count + 1, NULL);
	if (!rc && n)
		usage->uses[usage->count++] = (struct h5_use){address, n, usage->owner};
	return rc;
}

static int note(struct h5_usage *usage, struct h5_damage *damage, int rc)
{
	usage->incomplete |= rc != 0;
	return rc == -EFBIG ? 0 : h5_damage_note(damage, rc);
}

/* False: addresses are not those of one file, or there are structures that are not known. */
static bool can_find_all(const struct h5_usage *usage)
{
	const struct h5_superblock *sb = h5_file_superblock(usage->file);

	if (sb->end == H5_UNDEF || sb->end < sb->base)
		return false;
	return h5_file_is_family(usage->file) ? sb->driver_info != 0
					      : h5_file_is_plain(usage->file) && sb->driver_info == H5_UNDEF;
}

/* The driver information block of a file in several pieces. */
static int add_driver_info(struct h5_usage *usage)
{
	const uint64_t address = h5_file_superblock(usage->file)->driver_info;
	uint8_t head[H5_DRIVER_BLOCK_HEAD];
	int rc = address == H5_UNDEF ? 0 : h5_file_read(usage->file, address, head, sizeof head);

	return rc || address == H5_UNDEF ? rc
					 : add(usage, address, sizeof head + h5_driver_info_block_size(head));
}

/* A structure that this version does not know is no damage. */
static int add_result(struct h5_usage *usage, struct h5_damage *damage, int rc)
{
	if (rc != -ENOTSUP)
		return note(usage, damage, rc);
	usage->incomplete = true;
	return 0;
}

int h5_usage_add_own(struct h5_usage *usage, struct h5_damage *damage)
{
	struct h5_file *file = usage->file;
	int rc;

	if (!can_find_all(usage))
		return add_result(usage, damage, -ENOTSUP);
	usage->owner = H5_UNDEF;
	rc = add(usage, 0, h5_superblock_size(h5_file_superblock(file)));
	if (!rc)
		rc = add_driver_info(usage);
	if (!rc)
		rc = h5_extension_extents(file, add, usage);
	if (!rc)
		rc = h5_shared_table_extents(file, add, usage);
	if (!rc)
		rc = h5_file_space_extents(file, add, usage);
	return add_result(usage, damage, rc);
}

int h5_usage_add_object(struct h5_usage *usage, uint64_t address, struct h5_damage *damage)
{
	int rc;

	if (usage->incomplete)
		return 0;
	usage->owner = address;
	rc = h5_object_extents(usage->file, address, add, usage);
	return add_result(usage, damage, rc);
}

void h5_usage_release(struct h5_usage *usage)
{
	free(usage->uses);
	usage->uses = NULL;
	usage->count = usage->capacity = 0;
}

/* ---- collections ---- */

/* Space that is searched for collections. */
struct search {
	struct h5_file *file;
	uint64_t end;
	struct h5_extents *unused;
	struct h5_check_values *values; /* as in struct h5_usage */
	uint8_t *piece;			/* PIECE bytes; owned */
};

/* Bytes of the collection that may begin at the address; 0: none does. One whose size makes no sense takes
 * all up to the end. */
static int collection_size(const struct search *s, uint64_t address, uint64_t *size)
{
	uint8_t prefix[H5_GLOBAL_HEAP_PREFIX];
	struct h5_reader r;
	size_t n = (size_t)h5_min(sizeof prefix, s->end - address);
	int rc = h5_file_read(s->file, address, prefix, n);

	if (rc)
		return rc;
	r = h5_file_reader(s->file, prefix, n, address);
	if (h5_global_heap_size(&r, size) || *size < sizeof prefix || *size > s->end - address)
		*size = s->end - address;
	return 0;
}

/* True: nothing refers to the collection, all of which lies in space that nothing else uses. */
static bool is_lost(const struct search *s, uint64_t address, uint64_t size)
{
	return s->values && h5_check_values_lose(s->values, s->file, address, size);
}

/* Finds the next signature from the address on; s->end: there is none. */
static int find_signature(const struct search *s, uint64_t address, uint64_t *found)
{
	*found = s->end;
	while (s->end - address >= SIGNATURE) {
		size_t n = (size_t)h5_min(PIECE, s->end - address);
		const uint8_t *at;
		int rc = h5_interrupt_check();

		if (!rc)
			rc = h5_file_read(s->file, address, s->piece, n);
		if (rc)
			return rc;
		at = memmem(s->piece, n, "GCOL", SIGNATURE);
		if (at) {
			*found = address + (uint64_t)(at - s->piece);
			return 0;
		}
		address += n - (SIGNATURE - 1);
	}
	return 0;
}

/* Adds what is unused from the address to the end of the search. */
static int add_unused(const struct search *s, uint64_t address)
{
	int rc = 0;

	while (!rc && address < s->end) {
		uint64_t found, size = 0;

		rc = find_signature(s, address, &found);
		if (!rc)
			rc = h5_extents_add(s->unused, address, found - address);
		if (!rc && found < s->end)
			rc = collection_size(s, found, &size);
		if (!rc && found < s->end && is_lost(s, found, size))
			rc = h5_extents_add(s->unused, found, size);
		address = found + size;
	}
	return rc;
}

/* ---- what is left ---- */

static int compare(const void *a, const void *b)
{
	const struct h5_use *x = a, *y = b;

	return h5_compare(x->address, y->address);
}

static int fail_overlap(const struct h5_use *use, const struct h5_use *before)
{
	if (before->owner == H5_UNDEF)
		return h5_fail(-EUCLEAN, use->address,
			       "space of the object at %ju is also that of the file's own structures",
			       (uintmax_t)use->owner);
	return h5_fail(-EUCLEAN, use->address, "space of the object at %ju is also that of the object at %ju",
		       (uintmax_t)use->owner, (uintmax_t)before->owner);
}

/* Finds it in one area. *i is the first use there, and becomes the first one behind it. */
static int find_in_area(struct h5_usage *usage, struct h5_damage *damage, struct search *s,
			const struct h5_file_area *area, size_t *i)
{
	const struct h5_use *before = NULL; /* the one that ends last */
	uint64_t end = area->start;
	int rc = 0;

	for (; *i < usage->count && usage->uses[*i].address < area->end && !rc; ++*i) {
		const struct h5_use *use = &usage->uses[*i];

		if (before && use->address < end)
			rc = note(usage, damage, fail_overlap(use, before));
		s->end = use->address;
		if (!rc && use->address > end)
			rc = add_unused(s, end);
		if (use->address + use->size > end) {
			end = use->address + use->size;
			before = use;
		}
	}
	/* A member that is not the first has at least so many bytes. */
	if (!before && area->start)
		end += h5_min(area->end - area->start, H5_FILE_AREA_LEAST);
	s->end = area->end;
	return rc ? rc : add_unused(s, end);
}

static int find_unused(struct h5_usage *usage, struct h5_damage *damage, struct search *s)
{
	struct h5_file_area areas[H5_FILE_AREAS_MAX];
	unsigned count = h5_file_areas(usage->file, areas);
	size_t i = 0;
	int rc = 0;

	for (unsigned k = 0; k < count && !rc; k++)
		rc = find_in_area(usage, damage, s, &areas[k], &i);
	return rc;
}

/* ---- what counts as free ---- */

static int add_section(void *free, unsigned manager, const struct h5_free_section *section)
{
	(void)manager;
	return h5_extents_add(free, section->offset, section->size);
}

/* Used space that the file records as free, so that a writer will overwrite it. */
struct overlap {
	struct h5_usage *usage;
	struct h5_damage *damage;
	struct search *search;
	struct h5_extents free;
};

static int check_use(struct overlap *o, const struct h5_use *use)
{
	if (!h5_extents_touches(&o->free, use->address, use->size))
		return 0;
	return note(o->usage, o->damage,
		    use->owner == H5_UNDEF ? h5_fail(-EUCLEAN, use->address,
						     "space of the file's own structures is recorded as free")
					   : h5_fail(-EUCLEAN, use->address,
						     "space of the object at %ju is recorded as free",
						     (uintmax_t)use->owner));
}

static int check_collection(void *arg, uint64_t address, const struct h5_heap_objects *objects)
{
	struct overlap *o = arg;
	uint64_t size;
	int rc = collection_size(o->search, address, &size);

	(void)objects;
	if (rc || !h5_extents_touches(&o->free, address, size))
		return rc;
	return note(o->usage, o->damage,
		    h5_fail(-EUCLEAN, address, "space of values in the global heap is recorded as free"));
}

static int check_free(struct h5_usage *usage, struct h5_damage *damage, struct search *s)
{
	struct overlap o = {usage, damage, s, {0}};
	int rc = h5_file_space_sections(usage->file, add_section, &o.free);

	for (size_t i = 0; i < usage->count && !rc; i++)
		rc = check_use(&o, &usage->uses[i]);
	s->end = h5_file_end(usage->file);
	if (!rc && usage->values)
		rc = h5_heap_set_each(&usage->values->found, check_collection, &o);
	h5_extents_release(&o.free);
	return rc;
}

int h5_usage_find_unused(struct h5_usage *usage, struct h5_damage *damage, struct h5_extents *unused)
{
	struct search s = {
		.file = usage->file, .unused = unused, .values = usage->values, .piece = malloc(PIECE)};
	int rc;

	if (!s.piece)
		return h5_fail(-ENOMEM, H5_UNDEF, "check: out of memory");
	if (usage->count)
		qsort(usage->uses, usage->count, sizeof *usage->uses, compare);
	rc = find_unused(usage, damage, &s);
	if (!rc)
		rc = check_free(usage, damage, &s);
	if (rc == -EUCLEAN || rc == -EIO || rc == -EFBIG)
		rc = note(usage, damage, rc);
	free(s.piece);
	return rc;
}
