#include "vfs/sequence.h"

#include "base/checked.h"
#include "store/file.h"

enum {
	IN_ORDER = 4 << 20, /* most bytes between two reads that count as in order */
	LATE = 16, /* reads behind the front, one after another, that may still be of the same reader */
	READS = 2, /* number of reads in order after which chunks are decoded ahead */
	/* Bytes that are asked for ahead of a reader of a file that is far away: after the first read, and
	 * after some; and how many times as much as was read. */
	WANTED_FIRST = 1 << 20,
	WANTED_NEXT = 4 << 20,
	WANTED_TIMES = 32,
	WANTED_STEPS = 8, /* of the window: so often it is filled up while the reader goes through it */
};

/* Makes *to at least `value`, while other threads do the same. */
static void raise(atomic_uint_fast64_t *to, uint64_t value)
{
	uint_fast64_t now = atomic_load(to);

	while (now < value && !atomic_compare_exchange_weak(to, &now, value))
		;
}

/* Finds what comes next of a file that is far away, for the caller to ask for. False: nothing now. The window
 * grows with what was read, so a server is kept busy for as long as it takes to answer, up to `most` bytes.
 */
static bool find_wanted(struct h5_sequence *s, uint64_t size, uint64_t most, struct h5_io_range *range)
{
	uint64_t read_to = s->read_to, read = read_to - h5_min(read_to, s->begin);
	uint64_t least = s->in_order < READS ? WANTED_FIRST : WANTED_NEXT;
	uint64_t window = h5_min(h5_max(WANTED_TIMES * read, least), most);
	uint_fast64_t wanted = s->wanted;
	uint64_t from = h5_max(read_to, wanted), to = h5_min(size, read_to + window);

	if (from >= to || (to - from < window / WANTED_STEPS && to < size) ||
	    !atomic_compare_exchange_strong(&s->wanted, &wanted, to))
		return false;
	*range = (struct h5_io_range){.offset = from, .n = to - from};
	return true;
}

/* True: the offset is about where the sequence is. */
static bool is_near(const struct h5_sequence *s, uint64_t offset)
{
	uint64_t read_to = s->read_to;

	return offset <= read_to + IN_ORDER && read_to <= offset + IN_ORDER;
}

/* True: a read may be one of the sequence that comes late. The kernel reads ahead in several requests at
 * once, and each thread runs when it may, so some that were sent long ago lie behind where the reader is, but
 * not before where it began, and few of them come before it goes on. */
static bool may_be_late(struct h5_sequence *s, uint64_t offset)
{
	return offset < s->read_to && offset >= s->begin && ++s->late <= LATE;
}

/* The sequence that the read belongs to. NULL: to none; the read begins one in the place of the one that was
 * used longest ago. */
static struct h5_sequence *choose(struct h5_sequences *sequences, uint64_t size, uint64_t offset, size_t n)
{
	enum { COUNT = sizeof sequences->each / sizeof *sequences->each };
	struct h5_sequence *oldest = sequences->each;

	for (struct h5_sequence *s = sequences->each; s < sequences->each + COUNT; s++) {
		if (is_near(s, offset))
			return s;
		if (s->used < oldest->used)
			oldest = s;
	}
	for (struct h5_sequence *s = sequences->each; s < sequences->each + COUNT; s++)
		if (s->read_to < size && may_be_late(s, offset))
			return s;
	oldest->in_order = oldest->late = 0;
	oldest->read_to = oldest->ahead = oldest->wanted = offset + n;
	oldest->begin = offset;
	oldest->used = ++sequences->reads;
	return NULL;
}

/* Notes the read. The sequence that it goes on with; NULL: it is not in order. */
static struct h5_sequence *note(struct h5_sequences *sequences, uint64_t size, uint64_t offset, size_t n)
{
	struct h5_sequence *s = choose(sequences, size, offset, n);

	if (!s)
		return NULL;
	s->used = ++sequences->reads;
	if (offset + n > s->read_to)
		s->late = 0;
	raise(&s->read_to, offset + n);
	return s;
}

bool h5_sequences_want(struct h5_sequences *sequences, uint64_t size, uint64_t most, uint64_t offset,
		       size_t n, struct h5_io_range *range)
{
	struct h5_sequence *s = note(sequences, size, offset, n);

	if (!s)
		return false;
	if (!s->in_order) {
		s->in_order = 1;
		return false;
	}
	return most && find_wanted(s, size, most, range);
}

void h5_sequences_read(struct h5_sequences *sequences, const struct h5_dataset *dataset, uint64_t offset,
		       size_t n)
{
	uint64_t far = h5_file_window(dataset->file), read_to, window, from, to;
	struct h5_sequence *s = note(sequences, dataset->size, offset, n);
	struct h5_io_range range;
	uint_fast64_t ahead;

	if (!s)
		return;
	if (far && (s->in_order || !offset) && find_wanted(s, dataset->size, far, &range))
		h5_dataset_want(dataset, range.offset, range.n, H5_WANTED_SOON);
	if (s->in_order < READS) {
		s->in_order++;
		return;
	}
	window = h5_dataset_ahead(dataset);
	if (!window)
		return;
	ahead = s->ahead;
	read_to = s->read_to;
	from = h5_max(read_to, ahead);
	to = h5_dataset_ahead_end(dataset, read_to + window);
	/* Only one thread claims it; the others return. */
	if (from < to && atomic_compare_exchange_strong(&s->ahead, &ahead, to))
		h5_dataset_read_ahead(dataset, from, to - from);
}
