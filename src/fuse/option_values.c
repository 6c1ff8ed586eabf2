#include "fuse/option_values.h"

#include "base/checked.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong(const struct h5_option *option, const char *value, const char *allowed)
{
	fprintf(stderr, "h5fs: -o %s=%s: must be %s\n", option->name, value, allowed);
	return -EINVAL;
}

static int parse_word(const struct h5_option *option, const char *value, uint64_t *number)
{
	const struct h5_option_word *word = option->words;
	char allowed[64] = "";
	size_t used = 0;

	for (; word->text; word++) {
		const char *before = word == option->words ? "" : word[1].text ? ", " : " or ";

		*number = word->value;
		if (!strcmp(value, word->text))
			return 0;
		used += (size_t)snprintf(allowed + used, sizeof allowed - used, "%s%s", before, word->text);
		assert(used < sizeof allowed);
	}
	return wrong(option, value, allowed);
}

static int parse_number(const struct h5_option *option, const char *value, uint64_t *number)
{
	bool octal = option->kind == H5_OPTION_OCTAL;
	char allowed[80], *end;

	errno = 0;
	*number = strtoull(value, &end, octal ? 8 : 10);
	if (!errno && !*end && isdigit((unsigned char)*value) && *number >= option->least &&
	    *number <= option->most)
		return 0;
	snprintf(allowed, sizeof allowed,
		 octal ? "an octal number from %#jo to %#jo" : "a number from %ju to %ju",
		 (uintmax_t)option->least, (uintmax_t)option->most);
	return wrong(option, value, allowed);
}

static int parse_size(const struct h5_option *option, const char *value, uint64_t *size)
{
	static const char units[] = "KMG";
	const char *allowed = "a size such as 64M", *unit;
	char bounds[64], *end;

	errno = 0;
	*size = strtoull(value, &end, 10);
	if (errno || !isdigit((unsigned char)*value))
		return wrong(option, value, allowed);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (*end && (!unit || end[1]))
		return wrong(option, value, allowed);
	for (const char *u = units; unit && u <= unit; u++)
		if (!h5_mul(*size, 1024, size))
			return wrong(option, value, allowed);
	if (*size >= option->least && *size <= option->most)
		return 0;
	snprintf(bounds, sizeof bounds, "a size from %ju to %juG", (uintmax_t)option->least,
		 (uintmax_t)option->most >> 30);
	return wrong(option, value,
		     option->most == SIZE_MAX ? "a size that fits in this machine's address space" : bounds);
}

/* Sets the member of the option. It may have any type of whole numbers: bool, enum, uid_t, size_t, ... */
static void set_member(struct h5_options *o, const struct h5_option *option, uint64_t value)
{
	void *member = (char *)o + option->member;
	uint32_t number = (uint32_t)value;
	bool truth = value;

	assert(option->size == sizeof value || option->size == sizeof number || option->size == sizeof truth);
	if (option->size == sizeof value)
		memcpy(member, &value, sizeof value);
	else if (option->size == sizeof number)
		memcpy(member, &number, sizeof number);
	else
		memcpy(member, &truth, sizeof truth);
}

void h5_option_set_flag(struct h5_options *options, const struct h5_option *option)
{
	set_member(options, option, option->most);
}

int h5_option_set(struct h5_options *options, const struct h5_option *option, char **text)
{
	uint64_t number = 0;
	int rc;

	switch (option->kind) {
	case H5_OPTION_TEXT:
		*(char **)((char *)options + option->member) = *text;
		*text = NULL;
		return 0;
	case H5_OPTION_WORD:
		rc = parse_word(option, *text, &number);
		break;
	case H5_OPTION_SIZE:
		rc = parse_size(option, *text, &number);
		break;
	default:
		rc = parse_number(option, *text, &number);
	}
	if (!rc)
		set_member(options, option, number);
	return rc;
}
