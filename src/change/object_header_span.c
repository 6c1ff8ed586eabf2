#include "change/object_header_span.h"

#include "base/error.h"

/* One message with the bytes of both and of those between, from the first one's data on. */
static struct h5_message joined(const struct h5_message *first, const struct h5_message *last)
{
	struct h5_message span = *first;

	span.size = (uint32_t)(last->address + last->size - first->address);
	return span;
}

/* True: behind a continuation message the span has no bytes left, or enough for a NIL message. */
static bool fits(const struct h5_message *span, unsigned least, unsigned head)
{
	return span->size == least || span->size >= least + head;
}

/* True: it is large enough, and the better choice. */
static bool is_better(const struct h5_message *span, const struct h5_message *best, unsigned least,
		      unsigned head)
{
	if (span->size < least)
		return false;
	if (!best->size || fits(span, least, head) != fits(best, least, head))
		return !best->size || fits(span, least, head);
	return span->size < best->size;
}

int h5_header_span(struct h5_file *file, const struct h5_object_header *prefix,
		   const struct h5_header_chunk *chunk, const struct h5_message *message, unsigned least,
		   struct h5_message *span)
{
	struct h5_reader r = h5_header_chunk_messages(file, prefix, chunk);
	unsigned head = h5_message_prefix_size(prefix);
	struct h5_message m, before[2], candidate;
	unsigned count = 0; /* of those before the message */
	bool passed = false;

	span->size = 0;
	while (h5_object_header_next(&r, prefix, &m) > 0) {
		passed |= m.address == message->address;
		if (passed) {
			candidate = joined(message, &m);
			if (is_better(&candidate, span, least, head))
				*span = candidate;
			for (unsigned i = 0; i < count; i++) {
				candidate = joined(&before[i], &m);
				if (is_better(&candidate, span, least, head))
					*span = candidate;
			}
			if (span->size && m.address > message->address)
				break;
		} else {
			if (count == 2) {
				before[0] = before[1];
				count = 1;
			}
			before[count++] = m;
		}
	}
	if (span->size)
		return 0;
	return h5_fail(-ENOTSUP, message->address, "object header: a message of %u bytes cannot be moved",
		       message->size);
}
