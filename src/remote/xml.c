#include "remote/xml.h"

#include "base/hex.h"
#include "remote/text.h"

#include <errno.h>

struct parser {
	const char *p, *end;
	struct h5_text open[H5_XML_DEPTH];
	size_t numbers[H5_XML_DEPTH];
	unsigned depth;
	size_t elements; /* that have begun */
	bool ended;	 /* the outermost element has ended */
	bool leaf;	 /* the innermost element has had no others in it so far */
	bool filled;	 /* the innermost element has had bytes that are no blanks, in front of p */
	char *text;	 /* owned: of the innermost element so far */
	size_t size;	 /* bytes of it */
	bool (*take)(void *arg, const struct h5_xml_leaf *leaf);
	void *arg;
};

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '-' || c == '.' || c == ':' || (c & 0x80);
}

static bool skip(struct parser *p, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(p->end - p->p) < n || memcmp(p->p, word, n))
		return false;
	p->p += n;
	return true;
}

/* True: there was one at least. */
static bool skip_blanks(struct parser *p)
{
	const char *begin = p->p;

	while (p->p < p->end && h5_text_is_blank(*p->p))
		p->p++;
	return p->p > begin;
}

static bool take_name(struct parser *p, struct h5_text *name)
{
	name->p = p->p;
	while (p->p < p->end && is_name(*p->p))
		p->p++;
	name->n = (size_t)(p->p - name->p);
	return name->n;
}

/* NAME="VALUE", whose first byte is one of a name; what it says has no meaning here. */
static bool skip_attribute(struct parser *p)
{
	struct h5_text name;
	char quote;

	take_name(p, &name);
	skip_blanks(p);
	if (!skip(p, "="))
		return false;
	skip_blanks(p);
	if (p->p == p->end || (*p->p != '"' && *p->p != '\''))
		return false;
	quote = *p->p++;
	while (p->p < p->end && *p->p != quote && *p->p != '<')
		p->p++;
	return p->p < p->end && *p->p++ == quote;
}

/* Up to the end of a tag or a declaration. */
static bool skip_attributes(struct parser *p)
{
	while (skip_blanks(p) && p->p < p->end && is_name(*p->p))
		if (!skip_attribute(p))
			return false;
	return true;
}

/* The element has ended. */
static bool end_element(struct parser *p)
{
	struct h5_xml_leaf leaf = {.depth = p->depth,
				   .names = p->open,
				   .text = p->text,
				   .around = p->depth > 1 ? p->numbers[p->depth - 2] : 0};
	bool good = true;

	while (p->size && h5_text_is_blank(p->text[p->size - 1]))
		p->size--;
	p->text[p->size] = 0;
	while (h5_text_is_blank(*leaf.text))
		leaf.text++;
	if (p->leaf)
		good = p->take(p->arg, &leaf);
	p->depth--;
	p->ended = !p->depth;
	p->leaf = p->filled = false;
	return good;
}

static bool take_end_tag(struct parser *p)
{
	struct h5_text name;

	if (!p->depth || !take_name(p, &name) || name.n != p->open[p->depth - 1].n ||
	    memcmp(name.p, p->open[p->depth - 1].p, name.n))
		return false;
	skip_blanks(p);
	return skip(p, ">") && end_element(p);
}

static bool take_begin_tag(struct parser *p)
{
	/* Text stands in leaves alone. */
	if (p->ended || p->filled || p->depth == H5_XML_DEPTH || !take_name(p, &p->open[p->depth]) ||
	    !skip_attributes(p))
		return false;
	p->numbers[p->depth++] = ++p->elements;
	p->leaf = true;
	p->size = 0;
	if (skip(p, "/>"))
		return end_element(p);
	return skip(p, ">");
}

/* "&#47;" or "&#x2F;", behind "&#". 0: it is no character of ASCII. */
static char take_number(struct parser *p)
{
	int base = skip(p, "x") ? 16 : 10, value = 0, digits = 0, digit;

	for (; p->p < p->end && digits < 4 && (digit = h5_hex_digit(*p->p)) >= 0; p->p++, digits++) {
		if (digit >= base)
			return 0;
		value = value * base + digit;
	}
	return digits && value < 0x80 && skip(p, ";") ? (char)value : 0;
}

/* 0: it stands for nothing that is known. */
static char take_entity(struct parser *p)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};

	for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
		if (skip(p, entities[i].name))
			return entities[i].c;
	return skip(p, "&#") ? take_number(p) : 0;
}

/* The text is never longer than what it stands in. */
static bool take_character(struct parser *p)
{
	char c = *p->p == '&' ? take_entity(p) : *p->p++;

	if (!c)
		return false;
	p->filled |= !h5_text_is_blank(c);
	p->text[p->size++] = c;
	return p->depth && (p->leaf || h5_text_is_blank(c));
}

/* Between elements there are blanks alone. */
static bool read_all(struct parser *p)
{
	if (skip(p, "<?xml") && (!skip_attributes(p) || !skip(p, "?>")))
		return false;
	while (p->p < p->end) {
		bool good;

		if (skip(p, "</"))
			good = take_end_tag(p);
		else if (skip(p, "<"))
			good = take_begin_tag(p);
		else if (!p->depth)
			good = skip_blanks(p);
		else
			good = take_character(p);
		if (!good)
			return false;
	}
	return p->ended;
}

int h5_xml_read(const char *text, size_t n, bool (*take)(void *arg, const struct h5_xml_leaf *leaf),
		void *arg)
{
	struct parser p = {.p = text, .end = text + n, .take = take, .arg = arg};
	bool good;

	p.text = malloc(n + 1);
	if (!p.text)
		return -ENOMEM;
	good = read_all(&p);
	explicit_bzero(p.text, n + 1);
	free(p.text);
	return good ? 0 : -EINVAL;
}

bool h5_xml_is(const struct h5_xml_leaf *leaf, const char *path)
{
	for (unsigned i = 0; i < leaf->depth; i++) {
		size_t n = strcspn(path, "/");

		if (n != leaf->names[i].n || memcmp(path, leaf->names[i].p, n))
			return false;
		path += n;
		if (!*path)
			return i + 1 == leaf->depth;
		path++;
	}
	return false;
}
