#include "store/onion.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/fletcher32.h"
#include "base/interrupt.h"
#include "format/onion.h"
#include "io/pages.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".onion"

/* Marks the devices of revisions: no device of a file has it. */
#define MARK (UINT64_C(1) << 63)

enum {
	RUNS_MAX = 1 << 22,			/* of the indexes of all open revisions: 96 MiB */
	PIECE = 3 * 1024 * H5_ONION_PLACE_SIZE, /* bytes of a list that are read at once */
};

struct h5_onion {
	struct h5_io *origin, *pages; /* owned */
	struct h5_onion_header header;
	struct h5_io_stat origin_stat;
	uint64_t size; /* of `pages` */
	uint64_t revisions;
	struct h5_onion_place *places; /* of the records of revisions 1 to `revisions` */
	size_t runs;		       /* of all open revisions */
};

/* ---- opening ---- */

int h5_onion_find(const struct h5_folder *folder, const char *file, struct h5_io *origin,
		  struct h5_io **pages)
{
	char name[NAME_MAX + 1];
	size_t n = strlen(file);
	int rc;

	*pages = NULL;
	if (n + sizeof SUFFIX > sizeof name || (folder->fd < 0 && !folder->remote))
		return 0;
	memcpy(name, file, n);
	memcpy(name + n, SUFFIX, sizeof SUFFIX);
	rc = h5_folder_open_beside(folder, file, name, folder->external == H5_EXTERNAL_NONE ? origin : NULL,
				   false, pages);
	if (rc == -ENOENT || rc == -EINVAL || rc == -EISDIR)
		return 0;
	if (!rc && !h5_io_begins_with(*pages, H5_ONION_SIGNATURE, sizeof H5_ONION_SIGNATURE - 1)) {
		h5_io_close(*pages);
		*pages = NULL;
	}
	return h5_fail_in(rc, "the history of the file (%s)", name);
}

/* Bytes that lie one after the other in FILE.onion, and their checksum. */
struct stretch {
	const struct h5_onion *onion;
	uint64_t offset;
	struct h5_fletcher32 sum;
};

/* Reads the next n bytes, which are a multiple of 2 unless they are the last. */
static int read_next(struct stretch *s, void *buf, size_t n, struct h5_reader *r)
{
	int rc = h5_io_read(s->onion->pages, s->offset, buf, n);

	if (rc)
		return rc;
	*r = h5_reader_init(buf, n, s->offset, 8, 8);
	h5_fletcher32_add(&s->sum, buf, n);
	s->offset += n;
	return 0;
}

/* Verifies the checksum of all that was read. */
static int check_end(const struct stretch *s, const char *what)
{
	uint8_t data[H5_ONION_CHECKSUM_SIZE];
	int rc = h5_io_read(s->onion->pages, s->offset, data, sizeof data);
	struct h5_reader r;

	if (rc)
		return rc;
	r = h5_reader_init(data, sizeof data, s->offset, 8, 8);
	return h5_onion_checksum(&r, h5_fletcher32_end(&s->sum), what);
}

static int check_inside(const struct h5_onion *onion, uint64_t offset, uint64_t n, const char *what)
{
	return offset <= onion->size && n <= onion->size - offset
		       ? 0
		       : h5_fail(-EUCLEAN, offset, "%s: reaches beyond the end of the onion file", what);
}

static int read_places(struct h5_onion *onion, struct stretch *s)
{
	uint8_t *data = malloc(PIECE);
	int rc = data ? 0 : -ENOMEM;

	for (uint64_t i = 0; i < onion->revisions && !rc;) {
		uint64_t n = h5_min(onion->revisions - i, PIECE / H5_ONION_PLACE_SIZE);
		struct h5_reader r;

		rc = read_next(s, data, (size_t)n * H5_ONION_PLACE_SIZE, &r);
		for (; n && !rc; n--, i++)
			rc = h5_onion_place_decode(&r, &onion->places[i]);
	}
	free(data);
	return rc ? rc : check_end(s, "history");
}

static int read_history(struct h5_onion *onion)
{
	const struct h5_onion_header *header = &onion->header;
	struct stretch s = {.onion = onion, .offset = header->history};
	uint8_t prefix[H5_ONION_HISTORY_PREFIX_SIZE];
	struct h5_reader r;
	int rc;

	/* The program that makes a file has not finished its first revision. */
	if (header->is_written && !header->history)
		return 0;
	rc = check_inside(onion, header->history, header->history_size, "history");
	if (!rc)
		rc = read_next(&s, prefix, sizeof prefix, &r);
	if (!rc)
		rc = h5_onion_history_decode(&r, header->history_size, &onion->revisions);
	if (rc)
		return rc;
	if (onion->revisions > H5_REVISIONS_MAX)
		return h5_fail(-ENOTSUP, header->history, "history: more than %d revisions",
			       H5_REVISIONS_MAX);
	onion->places = h5_calloc(onion->revisions + 1, sizeof *onion->places);
	return onion->places ? read_places(onion, &s) : -ENOMEM;
}

static int read_onion(struct h5_onion *onion)
{
	uint8_t data[H5_ONION_HEADER_SIZE];
	struct h5_io_stat st;
	struct h5_reader r;
	int rc = h5_io_stat(onion->origin, &onion->origin_stat);

	if (!rc)
		rc = h5_io_stat(onion->pages, &st);
	if (!rc)
		rc = h5_io_read(onion->pages, 0, data, sizeof data);
	if (rc)
		return rc;
	r = h5_reader_init(data, sizeof data, 0, 8, 8);
	rc = h5_onion_header_decode(&r, &onion->header);
	if (rc)
		return rc;
	onion->size = st.size;
	if (onion->header.origin_end > onion->origin_stat.size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "the file has %ju bytes, but %ju when its history began",
			       (uintmax_t)onion->origin_stat.size, (uintmax_t)onion->header.origin_end);
	return read_history(onion);
}

int h5_onion_open(struct h5_io *origin, struct h5_io *pages, struct h5_onion **out)
{
	struct h5_onion *onion = calloc(1, sizeof *onion);
	int rc;

	if (!onion) {
		h5_io_close(origin);
		h5_io_close(pages);
		return -ENOMEM;
	}
	onion->origin = origin;
	onion->pages = pages;
	rc = h5_fail_in(read_onion(onion), "onion file");
	if (rc)
		h5_onion_close(onion);
	else
		*out = onion;
	return rc;
}

void h5_onion_close(struct h5_onion *onion)
{
	if (!onion)
		return;
	h5_io_close(onion->origin);
	h5_io_close(onion->pages);
	free(onion->places);
	free(onion);
}

uint64_t h5_onion_first(const struct h5_onion *onion)
{
	return onion->header.origin_end ? 0 : 1;
}

uint64_t h5_onion_newest(const struct h5_onion *onion)
{
	return onion->revisions;
}

bool h5_onion_is_written(const struct h5_onion *onion)
{
	return onion->header.is_written;
}

/* ---- a revision ---- */

/* The index of a revision while it is read; `paged` is filled in meanwhile. */
struct index {
	struct h5_onion *onion;
	struct h5_onion_record record;
	struct h5_io_paged paged;
	size_t capacity;
	struct h5_onion_page last; /* not yet among the runs */
	bool has_last;
};

/* Adds the last page to the runs. */
static int add_last(struct index *x)
{
	struct h5_io_paged *p = &x->paged;
	struct h5_io_run *run = p->count ? &p->runs[p->count - 1] : NULL;
	const struct h5_onion_page *page = &x->last;
	int rc;

	if (!x->has_last)
		return 0;
	if (run && run->start + run->n == page->address && run->offset + run->n == page->offset) {
		run->n += x->record.page_size;
		return 0;
	}
	if (x->onion->runs + p->count == RUNS_MAX)
		return h5_fail(-ENOTSUP, H5_UNDEF, "index of a revision: more than %d pieces", RUNS_MAX);
	rc = h5_array_reserve(&p->runs, &x->capacity, p->count + 1, NULL);
	if (!rc)
		p->runs[p->count++] = (struct h5_io_run){page->address, x->record.page_size, page->offset};
	return rc;
}

/* libhdf5 may leave a page of an earlier revision in the index, beside the new one. Since it only appends to
 * the file, the page that lies behind the other is the newer one. */
static int add_page(struct index *x, const struct h5_onion_page *page)
{
	uint32_t size = x->record.page_size;
	int rc = check_inside(x->onion, page->offset, size, "index of a revision");

	if (rc)
		return rc;
	if (page->address > (uint64_t)INT64_MAX - size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "index of a revision: a page at %ju",
			       (uintmax_t)page->address);
	if (x->has_last && page->address < x->last.address)
		return h5_fail(-EUCLEAN, H5_UNDEF, "index of a revision: not sorted");
	if (x->has_last && page->address == x->last.address) {
		x->last.offset = h5_max(x->last.offset, page->offset);
		return 0;
	}
	rc = add_last(x);
	x->last = *page;
	x->has_last = true;
	return rc;
}

static int read_pages(struct index *x, struct stretch *s, uint8_t *data)
{
	int rc = 0;

	for (uint64_t left = x->record.pages; left && !rc;) {
		uint64_t n = h5_min(left, PIECE / H5_ONION_PAGE_SIZE);
		struct h5_onion_page page;
		struct h5_reader r;

		rc = h5_interrupt_check();
		if (!rc)
			rc = read_next(s, data, (size_t)n * H5_ONION_PAGE_SIZE, &r);
		for (left -= n; n && !rc; n--) {
			rc = h5_onion_page_decode(&r, x->record.page_size, &page);
			if (!rc)
				rc = add_page(x, &page);
		}
	}
	return rc ? rc : add_last(x);
}

/* Passes over the bytes before the offset. */
static int read_up_to(struct stretch *s, uint64_t end, uint8_t *data)
{
	int rc = 0;

	while (s->offset < end && !rc) {
		struct h5_reader r;

		rc = h5_interrupt_check();
		if (!rc)
			rc = read_next(s, data, (size_t)h5_min(end - s->offset, PIECE), &r);
	}
	return rc;
}

static int read_record(struct index *x, const struct h5_onion_place *place, uint8_t *data)
{
	struct stretch s = {.onion = x->onion, .offset = place->offset};
	struct h5_reader r;
	int rc = check_inside(x->onion, place->offset, place->size, "record of a revision");

	if (!rc)
		rc = read_next(&s, data, H5_ONION_RECORD_PREFIX_SIZE, &r);
	if (!rc)
		rc = h5_onion_record_decode(&r, place->size, &x->record);
	if (!rc && x->record.end > INT64_MAX)
		rc = h5_fail(-EUCLEAN, place->offset, "record of a revision: a file of %ju bytes",
			     (uintmax_t)x->record.end);
	if (!rc)
		rc = read_pages(x, &s, data);
	if (!rc)
		rc = read_up_to(&s, place->offset + place->size - H5_ONION_CHECKSUM_SIZE, data);
	return rc ? rc : check_end(&s, "record of a revision");
}

/* 0 if the text is no time. */
static time_t decode_time(const char *text)
{
	struct tm tm = {0};
	int n;

	for (unsigned i = 0; i < 15; i++)
		if (i == 8 ? text[i] != 'T' : !isdigit((unsigned char)text[i]))
			return 0;
	n = sscanf(text, "%4d%2d%2dT%2d%2d%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &tm.tm_sec);
	assert(n == 6);
	(void)n;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return timegm(&tm);
}

/* Fills in what is known of the revision, but for its identity. On failure, too, the runs are to be freed. */
static int read_revision(struct index *x, uint64_t revision)
{
	const struct h5_onion *onion = x->onion;
	uint8_t *data;
	int rc;

	if (revision < h5_onion_first(onion) || revision > onion->revisions)
		return h5_fail(-ENOENT, H5_UNDEF, "no revision %ju: the file has %ju to %ju",
			       (uintmax_t)revision, (uintmax_t)h5_onion_first(onion),
			       (uintmax_t)onion->revisions);
	x->paged = (struct h5_io_paged){.origin = onion->origin,
					.pages = onion->pages,
					.origin_end = onion->header.origin_end,
					.end = onion->header.origin_end,
					.time = onion->origin_stat.mtime};
	if (!revision)
		return 0;
	data = malloc(PIECE);
	rc = data ? read_record(x, &onion->places[revision - 1], data) : -ENOMEM;
	free(data);
	x->paged.end = x->record.end;
	x->paged.time = (struct timespec){.tv_sec = decode_time(x->record.time)};
	return h5_fail_in(rc, "revision %ju", (uintmax_t)revision);
}

int h5_onion_open_revision(struct h5_onion *onion, uint64_t revision, bool is_file, struct h5_io **io)
{
	struct index x = {.onion = onion};
	int rc = read_revision(&x, revision);

	x.paged.open_runs = &onion->runs;
	x.paged.device = onion->origin_stat.device | (is_file ? 0 : MARK);
	x.paged.inode = onion->origin_stat.inode ^ (is_file ? 0 : revision << 40);
	if (!rc)
		rc = h5_io_open_paged(&x.paged, io);
	if (rc)
		free(x.paged.runs);
	else
		onion->runs += x.paged.count;
	return rc;
}

int h5_onion_check(struct h5_onion *onion, uint64_t revision)
{
	struct index x = {.onion = onion};
	int rc = read_revision(&x, revision);

	free(x.paged.runs);
	return rc;
}
