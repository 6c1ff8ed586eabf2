#include "format/extensible_array.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
#include <string.h>

enum { CHECKSUM_SIZE = 4 };

static bool power_of_two(unsigned n)
{
	return n && !(n & (n - 1));
}

/* Number and size of the data blocks of a super block. By turns, one of them doubles from each super block to
 * the next. */
static uint64_t data_blocks_of(unsigned super)
{
	return (uint64_t)1 << super / 2;
}

static uint64_t elements_of(const struct h5_extensible_array_header *h, unsigned super)
{
	return (uint64_t)h->min_elements << (super + 1) / 2;
}

/* With at most 63 bits for all elements together, no size that follows from them overflows. */
static int compute_geometry(struct h5_extensible_array_header *h,
			    const struct h5_extensible_array_parameters *p, unsigned size_of_offsets)
{
	const uint8_t fields[] = {p->client,	   p->element_size, p->max_bits, p->index_elements,
				  p->min_elements, p->min_pointers, p->page_bits};
	unsigned page_bits = p->page_bits;

	h->shape = h5_uint_from(fields, sizeof fields);
	h->client = p->client;
	h->element_size = p->element_size;
	h->max_bits = p->max_bits;
	h->index_elements = p->index_elements;
	h->min_elements = p->min_elements;
	h->min_pointers = p->min_pointers;
	if (!h->element_size || !power_of_two(h->min_elements) || !power_of_two(h->min_pointers) ||
	    !h->max_bits || h->max_bits > 63 || h->max_bits < h5_log2(h->min_elements) || page_bits > 63)
		return h5_fail(-EUCLEAN, h->address,
			       "extensible array header: %u bits, at least %u elements and %u pointers, %u "
			       "page bits",
			       h->max_bits, h->min_elements, h->min_pointers, page_bits);
	h->page_elements = (uint64_t)1 << page_bits;
	h->offset_size = (h->max_bits + 7u) / 8;
	h->super_blocks = 1 + h->max_bits - h5_log2(h->min_elements);
	h->index_super_blocks = 2 * h5_log2(h->min_pointers);
	h->index_data_blocks = 2 * (h->min_pointers - 1u);
	if (h->index_super_blocks > h->super_blocks)
		return h5_fail(-EUCLEAN, h->address, "extensible array header: %u pointers for %u bits",
			       h->min_pointers, h->max_bits);
	/* The bitmap of pages is in a super block, so data blocks without one must not be paged. */
	if (h->index_super_blocks && elements_of(h, h->index_super_blocks - 1) > h->page_elements)
		return h5_fail(-EUCLEAN, h->address,
			       "extensible array header: pages of 2^%u elements are too small", page_bits);
	h->index_super_pointers = h->super_blocks - h->index_super_blocks;
	h->index_block_size = 6 + size_of_offsets + (size_t)h->index_elements * h->element_size +
			      (h->index_data_blocks + h->index_super_pointers) * (size_t)size_of_offsets +
			      CHECKSUM_SIZE;
	return 0;
}

/* Header, specification VII.D.
 *
 *   offset  size  field
 *        0     4  signature "EAHD"
 *        4     1  version 0; 1 too if the client ID is 2 or 3
 *        5     1  client ID: 0 chunks, 1 filtered chunks, 2 structured chunks, 3 filtered structured chunks
 *        6     1  element size
 *        7     1  max nelmts bits
 *        8     1  index blk elmts
 *        9     1  data blk min elmts
 *       10     1  secondary blk min data ptrs
 *       11     1  max dblk page nelmts bits
 *       12   4*L  numbers and sizes of the secondary blocks and of the data blocks
 *   12+4*L     L  max index set
 *   12+5*L     L  num elmts
 *   12+6*L     O  index block address
 * 12+6*L+O     4  checksum                                                         */
int h5_extensible_array_header_decode(struct h5_reader *r, struct h5_extensible_array_header *h)
{
	uint64_t at = h5_reader_address(r);
	struct h5_extensible_array_parameters p;
	int rc;

	memset(h, 0, sizeof *h);
	h->address = at;
	if (!h5_read_signature(r, "EAHD"))
		return h5_fail(-EUCLEAN, at, "extensible array header: no signature");
	h->version = h5_read_u8(r);
	p.client = h5_read_u8(r);
	p.element_size = h5_read_u8(r);
	p.max_bits = h5_read_u8(r);
	p.index_elements = h5_read_u8(r);
	p.min_elements = h5_read_u8(r);
	p.min_pointers = h5_read_u8(r);
	p.page_bits = h5_read_u8(r);
	h->super_count = h5_read_length(r);
	h->super_bytes = h5_read_length(r);
	h->data_count = h5_read_length(r);
	h->data_bytes = h5_read_length(r);
	h->max_index = h5_read_length(r);
	h->elements = h5_read_length(r);
	h->index_block = h5_read_offset(r);
	rc = h5_reader_checksum(r, "extensible array header");
	if (rc)
		return rc;
	if (h->version > (p.client > 1))
		return h5_fail(-ENOTSUP, at, "extensible array header: version %u is not supported",
			       h->version);
	return compute_geometry(h, &p, r->size_of_offsets);
}

int h5_extensible_array_header_init(struct h5_extensible_array_header *h, uint64_t address,
				    const struct h5_extensible_array_parameters *parameters,
				    unsigned size_of_offsets)
{
	*h = (struct h5_extensible_array_header){
		.address = address, .version = parameters->client > 1, .index_block = H5_UNDEF};
	return compute_geometry(h, parameters, size_of_offsets);
}

size_t h5_extensible_array_header_size(unsigned size_of_offsets, unsigned size_of_lengths)
{
	return 12 + 6 * size_of_lengths + size_of_offsets + CHECKSUM_SIZE;
}

void h5_extensible_array_header_encode(struct h5_writer *w, const struct h5_extensible_array_header *h)
{
	h5_write_bytes(w, "EAHD", 4);
	h5_write_u8(w, h->version);
	h5_write_uint(w, h->shape, 7);
	h5_write_length(w, h->super_count);
	h5_write_length(w, h->super_bytes);
	h5_write_length(w, h->data_count);
	h5_write_length(w, h->data_bytes);
	h5_write_length(w, h->max_index);
	h5_write_length(w, h->elements);
	h5_write_offset(w, h->index_block);
	h5_write_checksum(w);
}

void h5_extensible_array_super(const struct h5_extensible_array_header *h, unsigned number,
			       unsigned size_of_offsets, struct h5_extensible_array_super *s)
{
	uint64_t prefix = 6 + size_of_offsets + h->offset_size;

	assert(number < h->super_blocks);
	memset(s, 0, sizeof *s);
	s->number = number;
	s->data_blocks = data_blocks_of(number);
	s->elements = elements_of(h, number);
	s->first_element = (((uint64_t)1 << number) - 1) * h->min_elements;
	for (unsigned i = 0; i < number; i++)
		s->first_data_block += data_blocks_of(i);
	if (s->elements > h->page_elements) {
		s->pages = s->elements / h->page_elements;
		s->page_size = h->page_elements * h->element_size + CHECKSUM_SIZE;
		s->bitmap_size = s->data_blocks * ((s->pages - 1) / 8 + 1);
	}
	s->block_size = prefix + s->bitmap_size + s->data_blocks * size_of_offsets + CHECKSUM_SIZE;
	s->data_block_size = prefix + (s->pages ? 0 : s->elements * h->element_size) + CHECKSUM_SIZE;
	s->data_block_space = s->data_block_size + s->pages * s->page_size;
}

unsigned h5_extensible_array_super_of(const struct h5_extensible_array_header *h, uint64_t element)
{
	return h5_log2(element / h->min_elements + 1);
}

/* What all blocks begin with.
 *
 *   offset  size  field
 *        0     4  signature
 *        4     1  version, as in the header
 *        5     1  client ID
 *        6     O  header address */
static int decode_prefix(struct h5_reader *r, const struct h5_extensible_array_header *h,
			 const char signature[4], const char *what)
{
	unsigned version, client;
	uint64_t owner;
	int rc;

	if (!h5_read_signature(r, signature))
		return h5_fail(-EUCLEAN, r->address, "%s: no signature", what);
	version = h5_read_u8(r);
	client = h5_read_u8(r);
	owner = h5_read_offset(r);
	rc = h5_reader_check(r, what);
	if (rc)
		return rc;
	if (version > (client > 1))
		return h5_fail(-ENOTSUP, r->address, "%s: version %u is not supported", what, version);
	if (client != h->client || owner != h->address)
		return h5_fail(-EUCLEAN, r->address, "%s: it belongs to another header", what);
	return 0;
}

static void encode_prefix(struct h5_writer *w, const struct h5_extensible_array_header *h,
			  const char signature[4])
{
	h5_write_bytes(w, signature, 4);
	h5_write_u8(w, h->version);
	h5_write_u8(w, h->client);
	h5_write_offset(w, h->address);
}

void h5_extensible_array_block_adopt(uint8_t *block, const struct h5_extensible_array_header *h,
				     unsigned size_of_offsets)
{
	h5_uint_to(block + 6, h->address, size_of_offsets);
}

/* Index block "EAIB", specification VII.D: after the prefix
 *
 *   size  field
 *         elements
 *         data block addresses, O each
 *         secondary block addresses, O each
 *      4  checksum                          */
int h5_extensible_array_index_block_decode(struct h5_reader *r, const struct h5_extensible_array_header *h,
					   struct h5_extensible_array_index_block *block)
{
	const char *what = "extensible array index block";
	size_t size_of_offsets = r->size_of_offsets;
	int rc = decode_prefix(r, h, "EAIB", what);

	if (rc)
		return rc;
	block->elements = h5_read_bytes(r, (size_t)h->index_elements * h->element_size);
	block->data_blocks = h5_read_bytes(r, h->index_data_blocks * size_of_offsets);
	block->super_blocks = h5_read_bytes(r, h->index_super_pointers * size_of_offsets);
	return h5_reader_checksum(r, what);
}

void h5_extensible_array_index_block_encode(struct h5_writer *w, const struct h5_extensible_array_header *h)
{
	encode_prefix(w, h, "EAIB");
	h5_write_fill(w, 0xff, h->index_block_size - CHECKSUM_SIZE - h5_writer_at(w));
	h5_write_checksum(w);
}

/* Secondary block "EASB", specification VII.D: after the prefix
 *
 *   size  field
 *         block offset
 *         paged data blocks: a bit for each page, most significant first, set if the page is initialised;
 *         page p of data block d has bit d * pages + p
 *         data block addresses, O each
 *      4  checksum                                                                                         */
int h5_extensible_array_super_block_decode(struct h5_reader *r, const struct h5_extensible_array_header *h,
					   const struct h5_extensible_array_super *s,
					   struct h5_extensible_array_super_block *block)
{
	const char *what = "extensible array super block";
	size_t size_of_offsets = r->size_of_offsets;
	int rc = decode_prefix(r, h, "EASB", what);

	if (rc)
		return rc;
	block->block_offset = h5_read_uint(r, h->offset_size);
	block->bitmap = s->pages ? h5_read_bytes(r, s->bitmap_size) : NULL;
	block->data_blocks = h5_read_bytes(r, s->data_blocks * size_of_offsets);
	return h5_reader_checksum(r, what);
}

void h5_extensible_array_super_block_encode(struct h5_writer *w, const struct h5_extensible_array_header *h,
					    const struct h5_extensible_array_super *s)
{
	encode_prefix(w, h, "EASB");
	h5_write_uint(w, s->first_element, h->offset_size);
	h5_write_fill(w, 0, (size_t)s->bitmap_size);
	h5_write_fill(w, 0xff, (size_t)s->data_blocks * w->size_of_offsets);
	h5_write_checksum(w);
}

/* Data block "EADB", specification VII.D: after the prefix
 *
 *   size  field
 *         block offset
 *         elements, unless they are in pages
 *      4  checksum                           */
int h5_extensible_array_data_block_decode(struct h5_reader *r, const struct h5_extensible_array_header *h,
					  const struct h5_extensible_array_super *s,
					  struct h5_extensible_array_data_block *block)
{
	const char *what = "extensible array data block";
	int rc = decode_prefix(r, h, "EADB", what);

	if (rc)
		return rc;
	block->block_offset = h5_read_uint(r, h->offset_size);
	block->elements = s->pages ? NULL : h5_read_bytes(r, s->elements * h->element_size);
	return h5_reader_checksum(r, what);
}

/* The block offset is the number of the first element. For data blocks below the index block writers count
 * from the first of all data blocks, not from the first one of their super block. */
void h5_extensible_array_data_block_encode(struct h5_writer *w, const struct h5_extensible_array_header *h,
					   const struct h5_extensible_array_super *s, uint64_t data_block)
{
	if (s->number < h->index_super_blocks)
		data_block += s->first_data_block;
	encode_prefix(w, h, "EADB");
	h5_write_uint(w, s->first_element + data_block * s->elements, h->offset_size);
	h5_write_fill(w, 0xff, (size_t)s->data_block_size - CHECKSUM_SIZE - h5_writer_at(w));
	h5_write_checksum(w);
}

void h5_extensible_array_set_page(const struct h5_extensible_array_super *s, uint8_t *bitmap,
				  uint64_t data_block, uint64_t page)
{
	uint64_t bit = data_block * s->pages + page;

	assert(data_block < s->data_blocks && page < s->pages);
	bitmap[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

bool h5_extensible_array_has_page(const struct h5_extensible_array_super *s,
				  const struct h5_extensible_array_super_block *block, uint64_t data_block,
				  uint64_t page)
{
	uint64_t bit = data_block * s->pages + page;

	assert(data_block < s->data_blocks && page < s->pages);
	return block->bitmap[bit / 8] & 0x80 >> bit % 8;
}
