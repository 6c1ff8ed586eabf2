#include "format/fixed_array.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

enum { CHECKSUM_SIZE = 4 };

/* Header, specification VII.C.
 *
 *   offset  size  field
 *        0     4  signature "FAHD"
 *        4     1  version 0; 1 too where the client ID is 2 or 3
 *        5     1  client ID: 0 chunks, 1 filtered chunks, 2 structured chunks, 3 filtered structured chunks
 *        6     1  entry size
 *        7     1  page bits: a page has 2^bits entries
 *        8     L  max num entries
 *      8+L     O  data block address
 *    8+L+O     4  checksum                               */
int h5_fixed_array_header_decode(struct h5_reader *r, struct h5_fixed_array_header *h)
{
	uint64_t at = h5_reader_address(r), bytes;
	unsigned version, page_bits;
	int rc;

	memset(h, 0, sizeof *h);
	h->address = at;
	if (!h5_read_signature(r, "FAHD"))
		return h5_fail(-EUCLEAN, at, "fixed array header: no signature");
	version = h5_read_u8(r);
	h->client = h5_read_u8(r);
	h->element_size = h5_read_u8(r);
	page_bits = h5_read_u8(r);
	h->elements = h5_read_length(r);
	h->data_block = h5_read_offset(r);
	rc = h5_reader_checksum(r, "fixed array header");
	if (rc)
		return rc;
	if (version > (h->client > 1))
		return h5_fail(-ENOTSUP, at, "fixed array header: version %u is not supported", version);
	if (page_bits > 63 || !h->element_size || !h5_mul(h->elements, h->element_size, &bytes))
		return h5_fail(-EUCLEAN, at, "fixed array header: %ju entries of %u bytes, %u page bits",
			       (uintmax_t)h->elements, h->element_size, page_bits);
	h->page_elements = (uint64_t)1 << page_bits;
	if (h->elements > h->page_elements) {
		h->pages = (h->elements - 1) / h->page_elements + 1;
		bytes = (h->pages - 1) / 8 + 1;
	}
	if (!h5_add(bytes, 6u + r->size_of_offsets + CHECKSUM_SIZE, &h->block_size))
		return h5_fail(-EUCLEAN, at, "fixed array header: %ju entries", (uintmax_t)h->elements);
	return 0;
}

/* Data block, specification VII.C.
 *
 *   offset  size  field
 *        0     4  signature "FADB"
 *        4     1  version, as in the header
 *        5     1  client ID
 *        6     O  header address
 *      6+O        paged: a bit for each page, most significant first, set where the page is initialised;
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
	body = h5_read_bytes(r, (size_t)h->block_size - 6 - r->size_of_offsets - CHECKSUM_SIZE);
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

bool h5_fixed_array_has_page(const struct h5_fixed_array_block *block, uint64_t page)
{
	return block->bitmap[page / 8] & 0x80 >> page % 8;
}

bool h5_fixed_array_page(const struct h5_fixed_array_header *h, uint64_t page, uint64_t *address,
			 uint64_t *size)
{
	uint64_t full = h->page_elements * h->element_size, before;
	uint64_t elements = h5_min(h->page_elements, h->elements - page * h->page_elements);

	/* No page has more bytes than all elements together, whose product was checked with the header. */
	*size = elements * h->element_size;
	return h5_mul(page, full + CHECKSUM_SIZE, &before) && h5_add(before, h->block_size, &before) &&
	       h5_add(before, h->data_block, address);
}
