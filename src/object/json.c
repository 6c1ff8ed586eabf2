#include "object/json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static struct h5_json begin(struct h5_buf *out, char open, char close)
{
	h5_buf_byte(out, open);
	return (struct h5_json){.out = out, .bracket = close};
}

struct h5_json h5_json_array(struct h5_buf *out)
{
	return begin(out, '[', ']');
}

struct h5_json h5_json_object(struct h5_buf *out)
{
	return begin(out, '{', '}');
}

static void begin_line(struct h5_buf *out, unsigned indent)
{
	h5_buf_byte(out, '\n');
	while (indent--)
		h5_buf_byte(out, ' ');
}

struct h5_buf *h5_json_item(struct h5_json *json)
{
	assert(json->bracket);
	if (json->any)
		h5_buf_byte(json->out, ',');
	if (json->indent)
		begin_line(json->out, json->indent);
	else if (json->any && json->spaced)
		h5_buf_byte(json->out, ' ');
	json->any = true;
	return json->out;
}

struct h5_buf *h5_json_key(struct h5_json *json, const char *name)
{
	h5_json_text(h5_json_item(json), name);
	h5_buf_text(json->out, json->spaced ? ": " : ":");
	return json->out;
}

void h5_json_close(struct h5_json *json)
{
	assert(json->bracket);
	if (json->indent && json->any)
		begin_line(json->out, json->indent - 2);
	h5_buf_byte(json->out, json->bracket);
	json->bracket = 0;
}

void h5_json_number(struct h5_buf *out, uint64_t number)
{
	h5_buf_printf(out, "%" PRIu64, number);
}

void h5_json_text(struct h5_buf *out, const char *text)
{
	h5_json_string(out, text, strlen(text));
}

size_t h5_utf8_sequence(const uint8_t *p, size_t n)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t size;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	size = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (size > n)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0; /* below it a shorter form exists */
	else if (p[0] == 0xed)
		high = 0x9f; /* above it are surrogates */
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < size; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return size;
}

void h5_json_string(struct h5_buf *out, const char *bytes, size_t n)
{
	const uint8_t *p = (const uint8_t *)(n ? bytes : ""), *end = p + n, *plain = p;

	h5_buf_byte(out, '"');
	while (p < end && !out->err) {
		size_t size = h5_utf8_sequence(p, (size_t)(end - p));

		if (size > 1 || (size && *p >= 0x20 && *p != '"' && *p != '\\')) {
			p += size;
			continue;
		}
		h5_buf_add(out, plain, (size_t)(p - plain));
		if (!size)
			h5_buf_printf(out, "\\udc%02x", *p);
		else if (*p < 0x20)
			h5_buf_printf(out, "\\u%04x", *p);
		else
			h5_buf_printf(out, "\\%c", *p);
		plain = ++p;
	}
	h5_buf_add(out, plain, (size_t)(p - plain));
	h5_buf_byte(out, '"');
}
