#include "io/remote_plan.h"

#include "base/checked.h"

enum {
	BLOCK = 1 << 20, /* what is not announced comes in blocks */
	SMALL_READ = 32 << 10,
	BLOCK_CELLS = BLOCK / H5_REMOTE_CELL,
	AT_ONCE = 16,		 /* parts of a long span that somebody waits for */
	GAP = 256 << 10,	 /* ranges with fewer bytes between them are asked for together */
	AROUND_PART = 4 << 20,	 /* bytes of a request for blocks of metadata, at most */
	AROUND_MOST = 32 << 20,	 /* bytes that are brought at once of what lies around metadata */
	AMONG_MOST = 64 << 20,	 /* and of what they lie among, if that is read as well */
	MARGIN_MOST = 512 << 10, /* bytes of these on each side */
	MARGIN_LEAST = 128 << 10,
	AHEAD = 4, /* parts, at least, of a long one that is read soon, beside others */
	/* A reader in order announces its window in so many steps: each is cut into parts for as large a
	 * share of the connections. */
	STEPS = 8,
	CACHE_SHARE = 2,     /* of the cells for what a reader waits for */
	ANNOUNCED_SHARE = 4, /* of the cells are never for what was announced */
	WINDOW_SHARE = 5,    /* of WINDOW_SHARE_OF of the cells are for what one reader in order will read */
	WINDOW_SHARE_OF = 8,
	/* Requests that may be under way before one is sent for what is read soon, or at once, more than
	 * there are connections: the rest is for those who wait. */
	SOON_MORE = 4,
	NOW_MORE = 24,
};

/* Cells of a request: long spans are cut, so that many parts come at once, but none is smaller than a block.
 */
static uint64_t part_of(uint64_t first, uint64_t end, unsigned pieces)
{
	uint64_t bytes = (end - first) * H5_REMOTE_CELL / pieces;

	return h5_min(h5_max(bytes, BLOCK), H5_REMOTE_PART) / H5_REMOTE_CELL;
}

static uint64_t cells_of(const struct h5_remote *r, uint32_t file)
{
	return (r->sizes[file] + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL;
}

static bool is_there(const struct h5_remote *r, uint32_t file, uint64_t number)
{
	return h5_cells_find(&r->cells, file, number) != H5_NO_CELL;
}

/* Where a request that begins a run of missing cells ends: after one part, but a small rest is no request of
 * its own. */
static uint64_t end_of_request(const struct h5_remote *r, const struct h5_remote_span *span)
{
	uint64_t most = h5_min(span->part + span->part / 2, H5_REMOTE_PART_CELLS), end = span->first;

	while (end < span->end && end - span->first <= most && !is_there(r, span->file, end))
		end++;
	return end - span->first <= most ? end : span->first + span->part;
}

/* Asks for the first run of cells of the span that are not there, which then begins behind them. */
static int ask(struct h5_remote *r, struct h5_remote_span *span, bool urgent)
{
	uint64_t end;
	uint32_t taken;
	int rc;

	while (span->first < span->end && is_there(r, span->file, span->first))
		span->first++;
	end = end_of_request(r, span);
	if (end == span->first)
		return 0;
	rc = h5_remote_ask(r, span->file, span->first,
			   h5_min((end - span->first) * H5_REMOTE_CELL,
				  r->sizes[span->file] - span->first * H5_REMOTE_CELL),
			   urgent, &taken);
	span->first += taken;
	return rc;
}

/* ---- what somebody waits for ---- */

/* What is asked for if these cells are missing for a read of n bytes: the blocks around a small one, which is
 * of metadata, and nothing else if it is larger. Not more than may be under way. */
static struct h5_remote_span around_missing(const struct h5_remote *r, uint32_t file, uint64_t first,
					    uint64_t end, uint64_t n)
{
	uint64_t most = h5_max(r->cells.count / CACHE_SHARE, BLOCK_CELLS);
	struct h5_remote_span span = {.file = file, .first = first, .end = end};

	if (n <= SMALL_READ) {
		span.first = first / BLOCK_CELLS * BLOCK_CELLS;
		span.end = ((end - 1) / BLOCK_CELLS + 1) * BLOCK_CELLS;
	}
	span.end = h5_min(h5_min(span.end, cells_of(r, file)), span.first + most);
	span.part = part_of(span.first, span.end, AT_ONCE);
	return span;
}

/* What was announced and has not been asked for, from the cell on; false: nothing. */
static bool find_announced(const struct h5_remote *r, uint32_t file, uint64_t number,
			   struct h5_remote_span *span)
{
	for (uint32_t i = 0; i < r->announced_count; i++) {
		*span = r->announced[(r->announced_first + i) % H5_REMOTE_ANNOUNCED];
		if (span->file == file && span->first <= number && number < span->end) {
			span->first = number;
			return true;
		}
	}
	return false;
}

int h5_remote_fetch(struct h5_remote *r, uint32_t file, uint64_t offset, uint64_t n)
{
	uint64_t first = offset / H5_REMOTE_CELL, end = (offset + n - 1) / H5_REMOTE_CELL + 1;
	struct h5_remote_span span;
	int rc = 0;

	h5_remote_feed(r);
	while (first < end && is_there(r, file, first))
		first++;
	while (first < end && is_there(r, file, end - 1))
		end--;
	if (first == end)
		return 0;
	if (find_announced(r, file, first, &span))
		return ask(r, &span, true);
	span = around_missing(r, file, first, end, n);
	while (span.first < span.end && !rc)
		rc = ask(r, &span, true);
	return rc;
}

/* ---- what was announced ---- */

/* Ranges of a file that become spans. */
struct wanted {
	const struct h5_remote *r;
	const struct h5_io_range *ranges;
	size_t count, next;
	uint32_t file;
	uint64_t margin; /* bytes that are asked for before and behind each range */
	uint64_t gap;	 /* most bytes between the ranges of one span */
	uint64_t part;	 /* cells of a request; 0: by the length of the span */
	unsigned pieces; /* and into how many of these a long one is cut */
	uint64_t most;	 /* but a piece has no more cells than these */
};

static bool is_missing(const struct wanted *w, const struct h5_io_range *range)
{
	uint64_t end = (range->offset + range->n - 1) / H5_REMOTE_CELL;

	for (uint64_t number = range->offset / H5_REMOTE_CELL; number <= end; number++)
		if (!is_there(w->r, w->file, number))
			return true;
	return false;
}

/* The span of the next ranges that are not there, as far as the gaps between them are small; false: there are
 * none. */
static bool next_span(struct wanted *w, struct h5_remote_span *span)
{
	uint64_t end = 0;
	bool any = false;

	for (; w->next < w->count; w->next++) {
		const struct h5_io_range *range = &w->ranges[w->next];
		uint64_t begin = range->offset - h5_min(range->offset, w->margin);

		if (!is_missing(w, range))
			continue;
		if (any && begin > end && begin - end > w->gap)
			break;
		if (!any)
			*span = (struct h5_remote_span){.file = w->file, .first = begin / H5_REMOTE_CELL};
		any = true;
		end = h5_max(end, range->offset + range->n + w->margin);
	}
	if (!any)
		return false;
	span->end = h5_min(cells_of(w->r, w->file), (end + H5_REMOTE_CELL - 1) / H5_REMOTE_CELL);
	span->part = w->part ? w->part : h5_min(part_of(span->first, span->end, w->pieces), w->most);
	return true;
}

/* Bytes of all spans. */
static uint64_t size_of(struct wanted w)
{
	struct h5_remote_span span;
	uint64_t size = 0;

	while (next_span(&w, &span))
		size += (span.end - span.first) * H5_REMOTE_CELL;
	return size;
}

/* Metadata that lie near each other come with all that is around them, which may be more metadata, or the
 * data that they lie among. Those of a large file may lie so far apart that this would be all of its data:
 * then less around each comes, and at last only the gaps that are worth a request each, as long as they are
 * not too much, either. */
static void plan_around(struct wanted *w, uint64_t most)
{
	most = h5_min(most, (uint64_t)w->r->cells.count / CACHE_SHARE * H5_REMOTE_CELL);

	for (w->margin = MARGIN_MOST; w->margin >= MARGIN_LEAST; w->margin /= 2) {
		uint64_t size = size_of(*w);

		if (size <= most) {
			w->part = h5_min(part_of(0, size / H5_REMOTE_CELL, AT_ONCE),
					 AROUND_PART / H5_REMOTE_CELL);
			return;
		}
	}
	w->margin = 0;
	while (w->gap && size_of(*w) > most)
		w->gap /= 2;
}

/* Cells of a request for what is read soon, at most: each connection has one if the whole window is under
 * way.
 */
static uint64_t part_ahead(const struct h5_remote *r)
{
	uint64_t part = h5_remote_window(r) / H5_REMOTE_CELL / r->connections;

	return h5_min(h5_max(part, BLOCK_CELLS), H5_REMOTE_PART_CELLS);
}

/* If there is no room, what was announced first is forgotten: it was not read so far. */
static void announce(struct h5_remote *r, const struct h5_remote_span *span)
{
	if (r->announced_count == H5_REMOTE_ANNOUNCED) {
		r->announced_first = (r->announced_first + 1) % H5_REMOTE_ANNOUNCED;
		r->announced_count--;
	}
	r->announced[(r->announced_first + r->announced_count++) % H5_REMOTE_ANNOUNCED] = *span;
}

void h5_remote_announce(struct h5_remote *r, uint32_t file, const struct h5_io_range *ranges, size_t count,
			enum h5_wanted when)
{
	struct wanted wanted = {
		.r = r,
		.ranges = ranges,
		.count = count,
		.file = file,
		.gap = GAP,
		.pieces = when == H5_WANTED_SOON ? (unsigned)h5_max(r->connections / STEPS, AHEAD) : AT_ONCE,
		.most = when == H5_WANTED_SOON ? part_ahead(r) : H5_REMOTE_PART_CELLS};
	struct h5_remote_span span;
	int rc = 0;

	if (when == H5_WANTED_AROUND || when == H5_WANTED_AMONG)
		plan_around(&wanted, when == H5_WANTED_AROUND ? AROUND_MOST : AMONG_MOST);
	while (next_span(&wanted, &span)) {
		while (when != H5_WANTED_SOON && !rc && span.first < span.end &&
		       r->under_way < r->connections + NOW_MORE)
			rc = ask(r, &span, true);
		if (span.first < span.end)
			announce(r, &span);
	}
	h5_remote_feed(r);
}

uint64_t h5_remote_window(const struct h5_remote *r)
{
	return (uint64_t)r->cells.count * H5_REMOTE_CELL / WINDOW_SHARE_OF * WINDOW_SHARE;
}

void h5_remote_feed(struct h5_remote *r)
{
	uint32_t most = r->cells.count - r->cells.count / ANNOUNCED_SHARE, soon = r->connections + SOON_MORE;

	if (r->under_way >= soon)
		h5_remote_take(r);
	while (r->announced_count && r->under_way < soon && !r->ended) {
		struct h5_remote_span *span = &r->announced[r->announced_first];
		bool stale = r->stale[span->file];

		if (!stale && (r->cells.waiting + span->part > most || ask(r, span, false)))
			return;
		if (stale || span->first >= span->end) {
			r->announced_first = (r->announced_first + 1) % H5_REMOTE_ANNOUNCED;
			r->announced_count--;
		}
	}
}
