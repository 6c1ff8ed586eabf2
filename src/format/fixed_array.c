#include "format/fixed_array.h"

#include "base/checked.h"
#include "base/error.h"

#include <assert.h>
#include <string.h>

enum { CHECKSUM_SIZE = 4 };

/* Computes the shape of the data block. */
static int compute(struct h5_fixed_array_header *h, uint8_t size_of_offsets)
{
	uint64_t body, pages = 0;
	bool fits = h->page_bits <= 63 && h->element_size && h5_mul(h->elements, h->element_size, &body);

	if (fits) {
		h->page_elements = (uint64_t)1 << h->page_bits;
		if (h->elements > h->page_elements) {
			h->pages = (h->elements - 1) / h->page_elements + 1;
			fits = h5_mul(h->pages, CHECKSUM_SIZE, &pages) && h5_add(pages, body, &pages);
			body = (h->pages - 1) / 8 + 1;
		}
	}
	if (!fits || !h5_add(body, 6u + size_of_offsets + CHECKSUM_SIZE, &h->block_size) ||
	    !h5_add(h->block_size, pages, &h->block_space))
		return h5_fail(-EUCLEAN, h->address,
			       "fixed array header: %ju entries of %u bytes, %u page bits",
			       (uintmax_t)h->elements, h->element_size, h->page_bits);
	return 0;
}

int h5_fixed_array_header_init(struct h5_fixed_array_header *h, unsigned client, unsigned element_size,
			       unsigned page_bits, uint64_t elements, uint8_t size_of_offsets)
{
	*h = (struct h5_fixed_array_header){.address = H5_UNDEF,
					    .version = client > 1,
					    .client = (uint8_t)client,
					    .element_size = (uint8_t)element_size,
					    .page_bits = (uint8_t)page_bits,
					    .elements = elements,
					    .data_block = H5_UNDEF};
	return compute(h, size_of_offsets);
}

/* Header, specification VII.C.
 *
 *   offset  size  field
 *        0     4  signature "FAHD"
 *        4     1  version 0; 1 too if the client ID is 2 or 3
 *        5     1  client ID: 0 chunks, 1 filtered chunks, 2 structured chunks, 3 filtered structured chunks
 *        6     1  entry size
 *        7     1  page bits: a page has 2^bits entries
 *        8     L  max num entries
 *      8+L     O  data block address
 *    8+L+O     4  checksum                               */
int h5_fixed_array_header_decode(struct h5_reader *r, struct h5_fixed_array_header *h)
{
	uint64_t at = h5_reader_address(r), end;
	int rc;

	memset(h, 0, sizeof *h);
	h->address = at;
	if (!h5_read_signature(r, "FAHD"))
		return h5_fail(-EUCLEAN, at, "fixed array header: no signature");
	h->version = h5_read_u8(r);
	h->client = h5_read_u8(r);
	h->element_size = h5_read_u8(r);
	h->page_bits = h5_read_u8(r);
	h->elements = h5_read_length(r);
	h->data_block = h5_read_offset(r);
	rc = h5_reader_checksum(r, "fixed array header");
	if (rc)
		return rc;
	if (h->version > (h->client > 1))
		return h5_fail(-ENOTSUP, at, "fixed array header: version %u is not supported", h->version);
	rc = compute(h, r->size_of_offsets);
	if (!rc && h->data_block != H5_UNDEF && !h5_add(h->data_block, h->block_space, &end))
		rc = h5_fail(-EUCLEAN, at, "fixed array header: the data block reaches beyond 2^64 bytes");
	return rc;
}

void h5_fixed_array_header_encode(struct h5_writer *w, const struct h5_fixed_array_header *h)
{
	h5_write_bytes(w, "FAHD", 4);
	h5_write_u8(w, h->version);
	h5_write_u8(w, h->client);
	h5_write_u8(w, h->element_size);
	h5_write_u8(w, h->page_bits);
	h5_write_length(w, h->elements);
	h5_write_offset(w, h->data_block);
	h5_write_checksum(w);
}

/* Data block, specification VII.C.
 *
 *   offset  size  field
 *        0     4  signature "FADB"
 *        4     1  version, as in the header
 *        5     1  client ID
 *        6     O  header address
 *      6+O        paged: a bit for each page, most significant first, set if the page is initialised;
 *                 else the elements
 *              4  checksum                                                                             */
int h5_fixed_array_block_decode(struct h5_reader *r, const struct h5_fixed_array_header *h,
				struct h5_fixed_array_block *block)
{
	uint64_t at = h5_reader_address(r), owner;
	unsigned version, client;
	const uint8_t *body;
	int rc;

	if (!h5_read_signature(r, "FADB"))
		return h5_fail(-EUCLEAN, at, "fixed array data block: no signature");
	version = h5_read_u8(r);
	client = h5_read_u8(r);
	owner = h5_read_offset(r);
	body = h5_read_bytes(r, h->block_size - 6 - r->size_of_offsets - CHECKSUM_SIZE);
	rc = h5_reader_checksum(r, "fixed array data block");
	if (rc)
		return rc;
	if (version > (client > 1))
		return h5_fail(-ENOTSUP, at, "fixed array data block: version %u is not supported", version);
	if (client != h->client || owner != h->address)
		return h5_fail(-EUCLEAN, at, "fixed array data block: it belongs to another header");
	block->bitmap = h->pages ? body : NULL;
	block->elements = h->pages ? NULL : body;
	return 0;
}

void h5_fixed_array_block_encode(struct h5_writer *w, const struct h5_fixed_array_header *h)
{
	h5_write_bytes(w, "FADB", 4);
	h5_write_u8(w, h->version);
	h5_write_u8(w, h->client);
	h5_write_offset(w, h->address);
}

void h5_fixed_array_set_page(uint8_t *bitmap, uint64_t page)
{
	bitmap[page / 8] |= (uint8_t)(0x80 >> page % 8);
}

bool h5_fixed_array_has_page(const struct h5_fixed_array_block *block, uint64_t page)
{
	return block->bitmap[page / 8] & 0x80 >> page % 8;
}

void h5_fixed_array_page(const struct h5_fixed_array_header *h, uint64_t page, uint64_t *address,
			 uint64_t *size)
{
	uint64_t full = h->page_elements * h->element_size;
	uint64_t elements = h5_min(h->page_elements, h->elements - page * h->page_elements);

	assert(page < h->pages);
	/* Nothing overflows: the page lies in the array, whose space was checked with the header. */
	*size = elements * h->element_size;
	*address = h->data_block + h->block_size + page * (full + CHECKSUM_SIZE);
}
