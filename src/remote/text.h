/* Pieces of text in memory that is somebody else's, and texts that are secret. */
#ifndef H5_REMOTE_TEXT_H
#define H5_REMOTE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct h5_text {
	const char *p;
	size_t n;
};

static inline bool h5_text_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Without the blanks around it. */
static inline struct h5_text h5_text_trim(struct h5_text t)
{
	while (t.n && h5_text_is_blank(*t.p)) {
		t.p++;
		t.n--;
	}
	while (t.n && h5_text_is_blank(t.p[t.n - 1]))
		t.n--;
	return t;
}

static inline bool h5_text_is(struct h5_text t, const char *text)
{
	return t.n == strlen(text) && !memcmp(t.p, text, t.n);
}

/* Overwrites and frees the text, which becomes NULL; that may be so before. */
static inline void h5_text_forget(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

#endif
