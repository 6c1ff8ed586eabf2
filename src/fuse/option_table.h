/* The table of all options: their names, their values, and what the help says of them. */
#ifndef H5_FUSE_OPTION_TABLE_H
#define H5_FUSE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	H5_OPTIONS_MAX = 96, /* that the table may have */
	H5_WORKERS_MAX = 64,
};

/* The values of an option, and what they set in struct h5_options. */
enum h5_option_kind {
	H5_OPTION_FLAG,	  /* no value: the member becomes `most` */
	H5_OPTION_NUMBER, /* decimal, from `least` to `most` */
	H5_OPTION_OCTAL,  /* octal, from `least` to `most` */
	H5_OPTION_SIZE,	  /* bytes, with K, M, G for powers of 1024, from `least` to `most` */
	H5_OPTION_WORD,	  /* one of `words` */
	H5_OPTION_TEXT,	  /* any text, an owned char * */
};

/* A word that an option can be set to; the last of a list has no text. */
struct h5_option_word {
	const char *text;
	unsigned value;
};

struct h5_option {
	const char *name;
	const char *rest; /* what follows the name in the help */
	enum h5_option_kind kind;
	size_t member, size; /* where the value is in struct h5_options, in bytes */
	uint64_t most, least;
	const struct h5_option_word *words;
	const char *help; /* NULL: another name for the option before */
};

/* In the order of the help; the last one has no name. */
extern const struct h5_option h5_option_table[];

/* True: the option is for others, and means nothing here. */
bool h5_option_is_ignored(const char *arg);
/* Prints the help of mount options, or of the others. */
void h5_option_help(bool of_mount);

#endif
