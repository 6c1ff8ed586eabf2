#include "format/journal.h"

#include "base/checked.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/little_endian.h"
#include "base/lookup3.h"
#include "base/reader.h"
#include "base/writer.h"

#include <stdlib.h>
#include <string.h>

static const char header_signature[8] = {'h', '5', 'f', 's', '-', 'j', 'n', 'l'};
/* Of records, by their version. */
static const char record_signatures[][8] = {
	[1] = {'h', '5', 'f', 's', '-', 'r', 'e', 'c'},
	[H5_JOURNAL_VERSION] = {'h', '5', 'f', 's', '-', 'r', 'c', '2'},
};

enum {
	SIGNATURE = 8,
	LANES = 8, /* lanes of the hash */
	FLAG_SWMR = 1,
	FLAG_GUARD = 1,
	HEADER_USED = 40, /* bytes of the header with its checksum */
	FILE_USED = 32, /* bytes behind the header, which say whose journal it is, with their own checksum */
	EXTENT_SIZE = 24,
	OBJECT_SIZE = 8,
	PATCH_SIZE = 16,	/* bytes of a patch's fixed fields, without the bytes before and after */
	GUARD_MAX = UINT16_MAX, /* most bytes of a guard: only messages are guarded */
};

/* ---- hash ---- */

/* Version 1: two lookup3 hashes, each of which begins with its value of the piece before. */
static uint64_t hash_lookup3(uint64_t before, const void *piece, size_t n)
{
	uint32_t low = h5_lookup3(piece, n, (uint32_t)before);
	uint32_t high = h5_lookup3(piece, n, ~(uint32_t)(before >> 32));

	return (uint64_t)high << 32 | low;
}

/* Odd, so that no two numbers have the same product. */
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

static uint64_t stir(uint64_t lane, uint64_t word)
{
	lane ^= word;
	return (lane << 29 | lane >> 35) * FACTOR;
}

static void stir_block(uint64_t lanes[LANES], const uint8_t *block)
{
	/* Unrolled, the lanes stay in registers, which is twice as fast. */
#pragma GCC unroll 8
	for (unsigned i = 0; i < LANES; i++)
		lanes[i] = stir(lanes[i], h5_le64(block + i * sizeof *lanes));
}

/* Version 2, fast enough for gigabytes of raw data: independent lanes, which a processor multiplies side by
 * side. Each step maps the states of a lane one to one, so data that differ in one word always have different
 * hashes. */
static uint64_t hash_lanes(uint64_t before, const uint8_t *piece, size_t n)
{
	uint8_t rest[LANES * 8] = {0};
	uint64_t lanes[LANES], hash = n;

	for (unsigned i = 0; i < LANES; i++)
		lanes[i] = stir(before, i + 1);
	for (; n >= sizeof rest; piece += sizeof rest, n -= sizeof rest)
		stir_block(lanes, piece);
	if (n) {
		memcpy(rest, piece, n);
		stir_block(lanes, rest);
	}
	for (unsigned i = 0; i < LANES; i++)
		hash = stir(hash, lanes[i]);
	hash = (hash ^ hash >> 32) * FACTOR;
	return hash ^ hash >> 29;
}

uint64_t h5_journal_hash_next(unsigned version, uint64_t before, const void *piece, size_t n)
{
	return version == 1 ? hash_lookup3(before, piece, n) : hash_lanes(before, piece, n);
}

static uint64_t hash_all(unsigned version, const void *data, size_t n)
{
	const uint8_t *p = data;
	uint64_t hash = 0;

	do {
		size_t piece = (size_t)h5_min(n, H5_JOURNAL_PIECE);

		hash = h5_journal_hash_next(version, hash, p, piece);
		p += piece;
		n -= piece;
	} while (n);
	return hash;
}

uint64_t h5_journal_hash(const void *data, size_t n)
{
	return hash_all(H5_JOURNAL_VERSION, data, n);
}

/* ---- header ---- */

bool h5_journal_is_zero(const uint8_t *p, size_t n)
{
	return !n || (!p[0] && !memcmp(p, p + 1, n - 1));
}

static void encode_file(const struct h5_journal_file *file, struct h5_writer *w, const uint8_t *data)
{
	if (!file->inode) {
		h5_write_fill(w, 0, FILE_USED);
		return;
	}
	h5_write_u64(w, file->inode);
	h5_write_u64(w, file->born);
	h5_write_u32(w, file->nanoseconds);
	h5_write_u32(w, 0);
	h5_write_u64(w, h5_journal_hash(data + HEADER_USED, FILE_USED - 8));
}

static void decode_file(const uint8_t *data, size_t n, struct h5_journal_file *file)
{
	struct h5_reader r;

	if (n < HEADER_USED + FILE_USED)
		return;
	r = h5_reader_init(data + HEADER_USED, FILE_USED, H5_UNDEF, 8, 8);
	file->inode = h5_read_u64(&r);
	file->born = h5_read_u64(&r);
	file->nanoseconds = h5_read_u32(&r);
	h5_reader_skip(&r, 4);
	if (!h5_checksum_matches(h5_read_u64(&r), h5_journal_hash(data + HEADER_USED, FILE_USED - 8)))
		*file = (struct h5_journal_file){0};
}

bool h5_journal_same_file(const struct h5_journal_file *a, const struct h5_journal_file *b)
{
	return a->inode && a->inode == b->inode && (a->born || a->nanoseconds) && a->born == b->born &&
	       a->nanoseconds == b->nanoseconds;
}

/*   offset  size  field
 *        0     8  signature "h5fs-jnl"
 *        8     4  version, 2; 1: records have hashes of another kind, and none of raw data
 *       12     4  flags: bit 0 swmr
 *       16    16  id
 *       32     8  hash of the bytes before
 *       40     8  inode number of the HDF5 file
 *       48     8  when that was made: seconds since 1970
 *       56     4  nanoseconds
 *       60     4  zero
 *       64     8  hash of the 24 bytes before
 *       72   440  zero
 *
 * If the file is not known, all bytes behind the first hash are zero: earlier versions wrote nothing there.
 */
void h5_journal_header_encode(const struct h5_journal_header *header, uint8_t data[H5_JOURNAL_HEADER])
{
	struct h5_writer w = h5_writer_init(data, H5_JOURNAL_HEADER, 8, 8);

	h5_write_bytes(&w, header_signature, sizeof header_signature);
	h5_write_u32(&w, H5_JOURNAL_VERSION);
	h5_write_u32(&w, header->swmr ? FLAG_SWMR : 0);
	h5_write_bytes(&w, header->id, sizeof header->id);
	h5_write_u64(&w, h5_journal_hash(data, h5_writer_at(&w)));
	encode_file(&header->file, &w, data);
	h5_write_fill(&w, 0, H5_JOURNAL_HEADER - HEADER_USED - FILE_USED);
}

int h5_journal_header_decode(const uint8_t *data, size_t n, struct h5_journal_header *header)
{
	struct h5_reader r = h5_reader_init(data, n, H5_UNDEF, 8, 8);
	const uint8_t *signature = h5_read_bytes(&r, sizeof header_signature);
	uint32_t version = h5_read_u32(&r), flags = h5_read_u32(&r);
	const uint8_t *id = h5_read_bytes(&r, sizeof header->id);
	uint64_t hash = h5_read_u64(&r);

	memset(header, 0, sizeof *header);
	if (h5_journal_is_zero(data, n))
		return -ENODATA;
	if (!signature || memcmp(signature, header_signature, sizeof header_signature))
		return h5_fail(-EUCLEAN, H5_UNDEF, "journal: this is none");
	if (r.err)
		return -ENODATA;
	if (!version || version > H5_JOURNAL_VERSION)
		return h5_fail(-ENOTSUP, H5_UNDEF, "journal: version %u is not supported", version);
	if (!h5_checksum_matches(hash, hash_all(version, data, HEADER_USED - 8)))
		return -ENODATA;
	memcpy(header->id, id, sizeof header->id);
	header->swmr = flags & FLAG_SWMR;
	decode_file(data, n, &header->file);
	return 0;
}

/* ---- record ---- */

struct range {
	uint64_t offset, size;
};

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return h5_compare(x->offset, y->offset);
}

/* True: no range overlaps another one, and all end at `size` or before. */
static bool are_apart(struct range *ranges, size_t n, uint64_t size)
{
	uint64_t end = 0;

	if (n)
		qsort(ranges, n, sizeof *ranges, compare_ranges);
	for (size_t i = 0; i < n; i++)
		if (ranges[i].offset < end || !h5_add(ranges[i].offset, ranges[i].size, &end))
			return false;
	return end <= size;
}

/* Checks what the header file says about patches and extents, for reading and for writing. */
static int check_ranges(const struct h5_journal_record *record)
{
	size_t most = (size_t)record->patch_count + record->extent_count + 1, n = 0;
	struct range *ranges = malloc(most * sizeof *ranges);
	bool good = true;

	if (!ranges)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	for (unsigned i = 0; i < record->patch_count; i++) {
		struct range one = {record->patches[i].offset, record->patches[i].size};

		if (record->patches[i].guard)
			good &= are_apart(&one, 1, record->size);
		else
			ranges[n++] = one;
	}
	good &= are_apart(ranges, n, record->size);
	for (n = 0; n < record->extent_count; n++)
		ranges[n] = (struct range){record->extents[n].offset, record->extents[n].size};
	good &= are_apart(ranges, n, record->size);
	free(ranges);
	return good ? 0
		    : h5_fail(-EUCLEAN, H5_UNDEF, "journal: patches or extents that overlap or lie outside");
}

int h5_journal_record_size(const struct h5_journal_record *record, size_t *size)
{
	/* None of these sums can overflow: the counts have 32 bits. */
	uint64_t total = H5_JOURNAL_RECORD_MIN + (uint64_t)record->extent_count * EXTENT_SIZE +
			 (uint64_t)record->object_count * OBJECT_SIZE +
			 (uint64_t)record->patch_count * PATCH_SIZE;

	for (unsigned i = 0; i < record->patch_count; i++)
		total += (uint64_t)record->patches[i].size * (record->patches[i].guard ? 1 : 2);
	if (total > H5_JOURNAL_RECORD_MAX)
		return h5_fail(-EFBIG, H5_UNDEF, "journal: a record of %llu bytes",
			       (unsigned long long)total);
	*size = (size_t)total;
	return check_ranges(record);
}

/*   offset  size  field
 *        0     8  signature "h5fs-rc2"; of version 1 "h5fs-rec"
 *        8     8  hash of all bytes behind it
 *       16     8  bytes of the record
 *       24    16  id of the journal
 *       40     8  sequence number of the commit
 *       48     8  bytes of the file
 *       56     4  patches P
 *       60     4  extents E
 *       64     4  objects O
 *       68     4  zero
 *       72  24*E  extents: offset, size, hash: 8 bytes each
 *            8*O  addresses of object headers
 *                 P patches: offset (8), size n (4), flags (4; bit 0 guard), n bytes before, n bytes after; a
 *                 guard has none after */
int h5_journal_record_encode(const struct h5_journal_record *record, uint8_t *data, size_t size)
{
	struct h5_writer w = h5_writer_init(data, size, 8, 8);

	h5_write_bytes(&w, record_signatures[H5_JOURNAL_VERSION], SIGNATURE);
	h5_write_u64(&w, 0);
	h5_write_u64(&w, size);
	h5_write_bytes(&w, record->id, sizeof record->id);
	h5_write_u64(&w, record->sequence);
	h5_write_u64(&w, record->size);
	h5_write_u32(&w, record->patch_count);
	h5_write_u32(&w, record->extent_count);
	h5_write_u32(&w, record->object_count);
	h5_write_u32(&w, 0);
	for (unsigned i = 0; i < record->extent_count; i++) {
		h5_write_u64(&w, record->extents[i].offset);
		h5_write_u64(&w, record->extents[i].size);
		h5_write_u64(&w, record->extents[i].hash);
	}
	for (unsigned i = 0; i < record->object_count; i++)
		h5_write_u64(&w, record->objects[i]);
	for (unsigned i = 0; i < record->patch_count; i++) {
		const struct h5_journal_patch *patch = &record->patches[i];

		h5_write_u64(&w, patch->offset);
		h5_write_u32(&w, patch->size);
		h5_write_u32(&w, patch->guard ? FLAG_GUARD : 0);
		h5_write_bytes(&w, patch->before, patch->size);
		if (!patch->guard)
			h5_write_bytes(&w, patch->after, patch->size);
	}
	if (!w.err)
		h5_uint_to(data + 8, h5_journal_hash(data + 16, size - 16), 8);
	return h5_writer_check(&w, "journal");
}

/* 0: there is no record. */
unsigned h5_journal_record_version(const uint8_t *data, size_t n)
{
	for (unsigned version = 1; n >= H5_JOURNAL_RECORD_MIN && version <= H5_JOURNAL_VERSION; version++)
		if (!memcmp(data, record_signatures[version], SIGNATURE))
			return version;
	return 0;
}

size_t h5_journal_record_length(const uint8_t *data, size_t n)
{
	uint64_t length;

	if (!h5_journal_record_version(data, n))
		return 0;
	length = h5_uint_from(data + 16, 8);
	return length < H5_JOURNAL_RECORD_MIN || length > H5_JOURNAL_RECORD_MAX ? 0 : (size_t)length;
}

int h5_journal_record_check(const uint8_t *data, uint64_t file_size, uint64_t file_end)
{
	uint64_t length = h5_uint_from(data + 16, 8), size = h5_uint_from(data + 48, 8);
	uint64_t patches = h5_uint_from(data + 56, 4), extents = h5_uint_from(data + 60, 4);
	uint64_t objects = h5_uint_from(data + 64, 4), most;

	/* None of these sums can overflow: the counts have 32 bits, and a file's size fewer than 64. */
	if (patches > file_size || extents > file_size || objects > file_size)
		return h5_fail(-EUCLEAN, H5_UNDEF, "journal: more parts than the file has bytes");
	most = H5_JOURNAL_RECORD_MIN + extents * EXTENT_SIZE + objects * OBJECT_SIZE +
	       patches * (PATCH_SIZE + GUARD_MAX) + 2 * h5_min(file_size, INT64_MAX / 4);
	/* If the file was cut since, the record may describe more than it has. */
	if (size <= file_end && length > most)
		return h5_fail(-EUCLEAN, H5_UNDEF, "journal: longer than the file allows");
	return 0;
}

/* Decodes the parts behind the fixed ones into arrays that are allocated. */
static void decode_parts(struct h5_reader *r, struct h5_journal_extent *extents, uint64_t *objects,
			 struct h5_journal_patch *patches, const struct h5_journal_record *record)
{
	for (unsigned i = 0; i < record->extent_count; i++) {
		extents[i].offset = h5_read_u64(r);
		extents[i].size = h5_read_u64(r);
		extents[i].hash = h5_read_u64(r);
	}
	for (unsigned i = 0; i < record->object_count; i++)
		objects[i] = h5_read_u64(r);
	for (unsigned i = 0; i < record->patch_count; i++) {
		patches[i].offset = h5_read_u64(r);
		patches[i].size = h5_read_u32(r);
		patches[i].guard = h5_read_u32(r) & FLAG_GUARD;
		patches[i].before = h5_read_bytes(r, patches[i].size);
		patches[i].after = patches[i].guard ? NULL : h5_read_bytes(r, patches[i].size);
	}
}

static int decode(struct h5_reader *r, struct h5_journal_record *record)
{
	struct h5_journal_extent *extents;
	struct h5_journal_patch *patches;
	uint64_t *objects;

	h5_reader_skip(r, 24);
	memcpy(record->id, h5_read_bytes(r, sizeof record->id), sizeof record->id);
	record->sequence = h5_read_u64(r);
	record->size = h5_read_u64(r);
	record->patch_count = h5_read_u32(r);
	record->extent_count = h5_read_u32(r);
	record->object_count = h5_read_u32(r);
	h5_reader_skip(r, 4);
	if ((uint64_t)record->extent_count * EXTENT_SIZE + (uint64_t)record->object_count * OBJECT_SIZE +
		    (uint64_t)record->patch_count * PATCH_SIZE >
	    h5_reader_left(r))
		return h5_fail(-EUCLEAN, H5_UNDEF, "journal: more parts than bytes");
	record->extents = extents = calloc((size_t)record->extent_count + 1, sizeof *extents);
	record->objects = objects = calloc((size_t)record->object_count + 1, sizeof *objects);
	record->patches = patches = calloc((size_t)record->patch_count + 1, sizeof *patches);
	if (!extents || !objects || !patches)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	decode_parts(r, extents, objects, patches, record);
	if (r->err || h5_reader_left(r))
		return h5_fail(-EUCLEAN, H5_UNDEF, "journal: its parts are not what its length says");
	return check_ranges(record);
}

int h5_journal_record_decode(const uint8_t *data, size_t n, struct h5_journal_record *record)
{
	size_t length = h5_journal_record_length(data, n);
	struct h5_reader r = h5_reader_init(data, length, H5_UNDEF, 8, 8);
	int rc;

	memset(record, 0, sizeof *record);
	if (!length || length > n ||
	    !h5_checksum_matches(h5_uint_from(data + 8, 8),
				 hash_all(h5_journal_record_version(data, n), data + 16, length - 16)))
		return -ENODATA;
	record->version = h5_journal_record_version(data, n);
	rc = decode(&r, record);
	if (rc)
		h5_journal_record_release(record);
	return rc;
}

void h5_journal_record_release(struct h5_journal_record *record)
{
	free((void *)record->patches);
	free((void *)record->extents);
	free((void *)record->objects);
	memset(record, 0, sizeof *record);
}
