/* Filter 32014, fpzip: floating-point numbers, as differences from what the numbers before them predict.
 *
 * values: versions; then the header of the chunks (below) as it was in the writer's memory. The decoder takes
 * from these only the writer's order of bytes: each chunk has a header of its own.
 *
 * A chunk is one stream of a range coder. First the header:
 *
 *   bits  field
 *    4*8  "fpz" and 0
 *     16  version of the format
 *      8  how numbers are predicted; 1: in the machine's own floating point
 *      1  0: numbers of 4 bytes; 1: of 8
 *      7  bits of a number that are kept, the first ones; the others become 0; 0: all are
 *   3*32  sides, the one along which numbers are neighbours first
 *     32  number of arrays
 *
 * Then the arrays, each for itself. A number is predicted from seven that come before it: those one step back
 * along one side, or along all three, are added, those one step back along two sides are subtracted. Numbers
 * outside of the array are 0. The kept bits of a number are taken for an integer, so that a larger number is
 * a larger integer. The difference between the integers of a number and of its prediction is a symbol, if
 * few bits are kept; else its sign and its highest bit are the symbol, and its lower bits follow.
 *
 * The range coder has an interval of 32-bit numbers. Each symbol narrows it to a part that is as large as the
 * symbol is likely; then leading bits that are the same in all of the interval are stored. Fields and lower
 * bits come in pieces of 16 bits, the low ones first, and all values of a piece are equally likely. */
#include "base/checked.h"
#include "base/error.h"
#include "base/lower_bound.h"
#include "filter/filters.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
	FORMAT = 0x110,
	OWN_ARITHMETIC = 1,
	HEADER_VALUES = 6,
	ROOM_BEHIND = 8,   /* the coder looks at more bytes than a header has */
	PIECE = 16,	   /* bits that are coded at once */
	TOTAL_BITS = 16,   /* of the frequencies of all symbols */
	WIDE = 8,	   /* if more bits are kept, not each difference has a symbol */
	SYMBOLS_MAX = 511, /* 2 * 2^WIDE - 1 */
	PERIOD = 1024,	   /* symbols after which frequencies are halved */
	LEFT = 24,	   /* bits of the interval that leave last */
	NEIGHBOURS = 7,
};

static const uint8_t magic[] = {'f', 'p', 'z', 0};

/* ---- the range coder ---- */

/* It decodes if `out` is NULL; else it encodes. */
struct coder {
	uint32_t low, range;
	uint32_t code; /* of the bytes that were read */
	const uint8_t *at, *end;
	struct h5_filter_buf *out;
	bool damaged;
	int rc; /* of the encoder */
};

static uint8_t next_byte(struct coder *c)
{
	if (c->at == c->end) {
		c->damaged = true;
		return 0;
	}
	return *c->at++;
}

static void put_byte(struct coder *c, uint8_t byte)
{
	if (!c->rc)
		c->rc = h5_filter_buf_grow(c->out, 1);
	if (!c->rc)
		c->out->data[c->out->size++] = byte;
}

static void move(struct coder *c, unsigned bytes)
{
	for (; bytes; bytes--) {
		if (c->out)
			put_byte(c, (uint8_t)(c->low >> 24));
		else
			c->code = c->code << 8 | next_byte(c);
		c->low <<= 8;
	}
}

static void start(struct coder *c, const uint8_t *data, size_t n, struct h5_filter_buf *out)
{
	*c = (struct coder){.range = UINT32_MAX, .at = data, .end = data + n, .out = out};
	if (!out)
		move(c, 4);
}

/* The interval becomes the n parts of it from `first` on. It stays larger than 2^16. */
static void narrow(struct coder *c, uint32_t first, uint32_t n)
{
	c->low += c->range * first;
	c->range *= n;
	while (!((c->low ^ (c->low + c->range)) >> LEFT)) {
		move(c, 1);
		c->range <<= 8;
	}
	if (!(c->range >> 16)) {
		/* It lies across a border of its highest bits: it ends there. */
		move(c, 2);
		c->range = -c->low;
	}
}

/* Makes the interval one of its 2^bits parts; returns in which of them the code lies, or 0, if it is damaged.
 */
static uint32_t divide(struct coder *c, unsigned bits)
{
	uint32_t part;

	c->range >>= bits;
	if (c->out)
		return 0;
	part = (c->code - c->low) / c->range;
	if (!(part >> bits))
		return part;
	c->damaged = true;
	return 0;
}

/* Codes a number of so many bits, up to 64. */
static void code_number(struct coder *c, unsigned bits, uint64_t *number)
{
	uint64_t found = 0;

	for (unsigned at = 0;; at += PIECE) {
		unsigned n = (unsigned)h5_min(bits - at, PIECE);
		uint32_t piece = divide(c, n);

		if (c->out)
			piece = (uint32_t)(*number >> at & ((1u << n) - 1));
		narrow(c, piece, 1);
		found |= (uint64_t)piece << at;
		if (bits - at <= PIECE)
			break;
	}
	*number = found;
}

/* ---- symbols ---- */

/* How often symbols have come lately. */
struct model {
	unsigned symbols;
	uint32_t frequency[SYMBOLS_MAX];
	uint32_t before[SYMBOLS_MAX + 1]; /* the frequencies of smaller symbols, as of the last renewal */
	uint32_t step;			  /* what one symbol adds to its frequency */
	unsigned left, larger;		  /* symbols until the step changes; that have a larger step then */
	unsigned period;
};

/* Halves all frequencies. Until the next time, each symbol adds its share of what the total then lacks. */
static void renew(struct model *m)
{
	uint32_t lack = 1u << TOTAL_BITS;

	if (m->larger) {
		m->left = m->larger;
		m->larger = 0;
		m->step++;
		return;
	}
	m->period = (unsigned)h5_min(2 * m->period, PERIOD);
	for (unsigned i = 0; i < m->symbols; i++) {
		m->before[i + 1] = m->before[i] + m->frequency[i];
		m->frequency[i] = m->frequency[i] >> 1 | 1;
		lack -= m->frequency[i];
	}
	m->step = lack / m->period;
	m->larger = lack % m->period;
	m->left = m->period - m->larger;
}

static void model_init(struct model *m, unsigned symbols)
{
	const uint32_t total = 1u << TOTAL_BITS;

	*m = (struct model){.symbols = symbols, .period = symbols >> 4 | 2};
	for (unsigned i = 0; i < symbols; i++)
		m->frequency[i] = total / symbols + (i < total % symbols);
	renew(m);
}

static void code_symbol(struct coder *c, struct model *m, unsigned *symbol)
{
	uint32_t part = divide(c, TOTAL_BITS);

	if (!c->out)
		*symbol = (unsigned)h5_lower_bound(i, m->symbols, m->before[i + 1] <= part);
	narrow(c, m->before[*symbol], m->before[*symbol + 1] - m->before[*symbol]);
	if (!m->left)
		renew(m);
	m->left--;
	m->frequency[*symbol] += m->step;
}

/* ---- numbers ---- */

struct header {
	bool wide;	    /* numbers of 8 bytes */
	uint64_t precision; /* as it is stored */
	unsigned kept;	    /* bits of a number */
	uint64_t side[3];
};

static unsigned bits_of(const struct header *h)
{
	return h->wide ? 64 : 32;
}

static size_t bytes_of(const struct header *h)
{
	return bits_of(h) / 8;
}

static uint64_t ones(unsigned n)
{
	return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/* The first bits of a number as an integer that is larger for a larger number. */
static uint64_t to_integer(const struct header *h, uint64_t number)
{
	uint64_t integer = (~number & ones(bits_of(h))) >> (bits_of(h) - h->kept);

	return integer >> (h->kept - 1) ? integer ^ ones(h->kept - 1) : integer;
}

static uint64_t to_number(const struct header *h, uint64_t integer)
{
	if (integer >> (h->kept - 1))
		integer ^= ones(h->kept - 1);
	return (~integer & ones(h->kept)) << (bits_of(h) - h->kept);
}

static uint64_t load(const struct header *h, const uint8_t *at)
{
	uint64_t number;
	uint32_t half;

	if (h->wide) {
		memcpy(&number, at, sizeof number);
		return number;
	}
	memcpy(&half, at, sizeof half);
	return half;
}

static void store(const struct header *h, uint8_t *at, uint64_t number)
{
	uint32_t half = (uint32_t)number;

	memcpy(at, h->wide ? (void *)&number : (void *)&half, bytes_of(h));
}

/* The order in which the neighbours are added matters, as each sum is rounded. */
static uint64_t predict_wide(const uint64_t *neighbour)
{
	double n[NEIGHBOURS], sum;
	uint64_t bits;

	memcpy(n, neighbour, sizeof n);
	sum = n[0] - n[1] + n[2] - n[3] + n[4] - n[5] + n[6];
	memcpy(&bits, &sum, sizeof bits);
	return bits;
}

static uint64_t predict_narrow(const uint64_t *neighbour)
{
	float n[NEIGHBOURS], sum;
	uint32_t bits;

	for (unsigned i = 0; i < NEIGHBOURS; i++) {
		bits = (uint32_t)neighbour[i];
		memcpy(&n[i], &bits, sizeof bits);
	}
	sum = n[0] - n[1] + n[2] - n[3] + n[4] - n[5] + n[6];
	memcpy(&bits, &sum, sizeof bits);
	return bits;
}

/* `integer`: the integer of the number that is coded; `predicted`: the integer of its prediction. */
static void code_narrow(struct coder *c, struct model *m, unsigned kept, uint64_t predicted,
			uint64_t *integer)
{
	const unsigned none = (unsigned)ones(kept);
	unsigned symbol = (unsigned)(none + *integer - predicted);

	code_symbol(c, m, &symbol);
	*integer = predicted + symbol - none;
}

static void code_wide(struct coder *c, struct model *m, unsigned kept, uint64_t predicted, uint64_t *integer)
{
	const bool above = *integer > predicted;
	uint64_t difference = above ? *integer - predicted : predicted - *integer, low;
	unsigned high = h5_log2(difference), symbol = kept;

	if (difference)
		symbol = above ? kept + 1 + high : kept - 1 - high;
	code_symbol(c, m, &symbol);
	*integer = predicted;
	if (symbol == kept)
		return;
	high = symbol > kept ? symbol - kept - 1 : kept - 1 - symbol;
	low = difference - (UINT64_C(1) << high);
	code_number(c, high, &low);
	difference = (UINT64_C(1) << high) + low;
	*integer += symbol > kept ? difference : -difference;
}

static void code_integer(struct coder *c, struct model *m, unsigned kept, uint64_t predicted,
			 uint64_t *integer)
{
	if (kept > WIDE)
		code_wide(c, m, kept, predicted, integer);
	else
		code_narrow(c, m, kept, predicted, integer);
	if (*integer > ones(kept)) {
		c->damaged = true;
		*integer = 0;
	}
}

/* ---- arrays ---- */

/* The row that is coded, the one before it, and the same two of the plane before; NULL: outside. */
struct rows {
	uint8_t *row; /* not const, as a decoder writes it */
	const uint8_t *above, *behind, *both;
};

static uint64_t look(const struct header *h, const uint8_t *row, size_t at)
{
	return row ? load(h, row + at) & ~ones(bits_of(h) - h->kept) : 0;
}

static void code_row(struct coder *c, struct model *m, const struct header *h, const struct rows *rows)
{
	const size_t step = bytes_of(h), size = (size_t)h->side[0] * step;
	uint64_t n[NEIGHBOURS] = {0}, integer;

	for (size_t at = 0; at < size && !c->damaged && !c->rc; at += step) {
		const uint64_t above = look(h, rows->above, at), behind = look(h, rows->behind, at);

		n[1] = look(h, rows->both, at);
		n[2] = above;
		n[4] = behind;
		integer = c->out ? to_integer(h, load(h, rows->row + at)) : 0;
		code_integer(c, m, h->kept, to_integer(h, h->wide ? predict_wide(n) : predict_narrow(n)),
			     &integer);
		n[0] = to_number(h, integer);
		if (!c->out)
			store(h, rows->row + at, n[0]);
		n[3] = behind;
		n[5] = above;
		n[6] = n[1];
	}
}

static void code_array(struct coder *c, const struct header *h, uint8_t *data)
{
	const size_t row = (size_t)h->side[0] * bytes_of(h), plane = row * (size_t)h->side[1];
	struct model m;

	model_init(&m, h->kept > WIDE ? 2 * h->kept + 1 : (unsigned)(2 * ones(h->kept) + 1));
	for (uint64_t z = 0; z < h->side[2]; z++)
		for (uint64_t y = 0; y < h->side[1] && !c->damaged && !c->rc; y++, data += row) {
			struct rows rows = {.row = data};

			rows.above = y ? data - row : NULL;
			rows.behind = z ? data - plane : NULL;
			rows.both = y && z ? data - plane - row : NULL;
			code_row(c, &m, h, &rows);
		}
}

/* ---- chunks ---- */

/* All but the number of arrays. */
static int code_header(struct coder *c, struct header *h)
{
	uint64_t version = FORMAT, arithmetic = OWN_ARITHMETIC, wide = h->wide;
	bool good = true;

	for (unsigned i = 0; i < sizeof magic; i++) {
		uint64_t byte = magic[i];

		code_number(c, 8, &byte);
		good &= byte == magic[i];
	}
	code_number(c, 16, &version);
	code_number(c, 8, &arithmetic);
	code_number(c, 1, &wide);
	code_number(c, 7, &h->precision);
	for (unsigned i = 0; i < 3; i++)
		code_number(c, 32, &h->side[i]);
	if (c->damaged || !good)
		return h5_fail(-EUCLEAN, H5_UNDEF, "fpzip: bad header");
	if (version != FORMAT || arithmetic != OWN_ARITHMETIC)
		return h5_fail(-ENOTSUP, H5_UNDEF, "fpzip: version %#jx, arithmetic %ju", (uintmax_t)version,
			       (uintmax_t)arithmetic);
	h->wide = wide;
	h->kept = h->precision ? (unsigned)h->precision : bits_of(h);
	if (h->kept < 2 || h->kept > bits_of(h) || (wide && (h->kept < 4 || h->kept % 2)))
		return h5_fail(-EUCLEAN, H5_UNDEF, "fpzip: %u bits of numbers of %u", h->kept, bits_of(h));
	return 0;
}

/* The header in the writer's memory begins with "f". */
static bool is_big_endian(const uint32_t *values, unsigned count)
{
	return count > 1 && values[1] >> 24 == magic[0];
}

/* Decodes the header in the values. Its end, the number of arrays, may be missing there. */
static int decode_values(const uint32_t *values, unsigned count, struct header *h)
{
	const bool swapped = is_big_endian(values, count);
	uint8_t bytes[HEADER_VALUES * 4 + ROOM_BEHIND] = {0};
	struct coder c;

	if (count <= HEADER_VALUES)
		return h5_fail(-EUCLEAN, H5_UNDEF, "fpzip: %u parameters", count);
	for (unsigned i = 0; i < HEADER_VALUES * 4; i++)
		bytes[i] = (uint8_t)(values[1 + i / 4] >> 8 * (swapped ? 3 - i % 4 : i % 4));
	start(&c, bytes, sizeof bytes, NULL);
	return code_header(&c, h);
}

/* Bytes of so many arrays. */
static bool size_of(const struct header *h, uint64_t arrays, uint64_t *size)
{
	const uint64_t factors[] = {h->side[0], h->side[1], h->side[2], arrays, bytes_of(h)};

	return h5_product(factors, 5, size);
}

int h5_fpzip_decode(const uint32_t *values, unsigned count, struct h5_filter_buf *in,
		    struct h5_filter_buf *out, size_t limit)
{
	struct header h = {0};
	uint64_t arrays = 0, size;
	struct coder c;
	int rc;

	start(&c, in->data, in->size, NULL);
	rc = code_header(&c, &h);
	if (rc)
		return rc;
	code_number(&c, 32, &arrays);
	if (!size_of(&h, arrays, &size) || size > limit)
		return h5_filter_too_long("fpzip", limit);
	rc = h5_filter_buf_reserve(out, (size_t)size);
	if (rc)
		return rc;
	for (size_t at = 0; at < size && !c.damaged; at += (size_t)(size / arrays))
		code_array(&c, &h, out->data + at);
	if (c.damaged)
		return h5_fail(-EUCLEAN, H5_UNDEF, "fpzip: bad data, or truncated");
	out->size = (size_t)size;
	h5_filter_to_order(out->data, out->size, bytes_of(&h), is_big_endian(values, count));
	return 0;
}

/* The bytes are in this machine's order. */
static int encode(struct header *h, uint8_t *data, size_t size, struct h5_filter_buf *out)
{
	uint64_t arrays = 1;
	struct coder c;
	/* Most numbers need fewer bytes than they have. */
	int rc = h5_filter_buf_reserve(out, size);

	if (rc)
		return rc;
	start(&c, data, 0, out);
	rc = code_header(&c, h);
	assert(!rc); /* it was checked when it came from the values */
	(void)rc;
	code_number(&c, 32, &arrays);
	code_array(&c, h, data);
	move(&c, 4);
	return c.rc;
}

int h5_fpzip_encode(const uint32_t *values, unsigned count, const uint8_t *data, size_t size,
		    struct h5_filter_buf *out)
{
	struct h5_filter_buf copy = {0};
	struct header h = {0};
	uint64_t whole;
	int rc = decode_values(values, count, &h);

	if (rc || !size)
		return rc;
	if (!size_of(&h, 1, &whole) || size != whole)
		return h5_fail(
			-ENOTSUP, H5_UNDEF, "fpzip: %zu bytes are no array of %ju x %ju x %ju numbers of %zu",
			size, (uintmax_t)h.side[2], (uintmax_t)h.side[1], (uintmax_t)h.side[0], bytes_of(&h));
	rc = h5_filter_buf_copy(&copy, data, size);
	if (!rc) {
		h5_filter_to_order(copy.data, size, bytes_of(&h), is_big_endian(values, count));
		rc = encode(&h, copy.data, size, out);
	}
	h5_filter_buf_release(&copy);
	return rc;
}
