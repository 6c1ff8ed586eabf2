/* Reads the little XML that object stores and their token servers answer with (XML 1.0). Pure. The text may
 * be hostile: declarations of types, comments, processing instructions and sections of CDATA are refused. */
#ifndef H5_REMOTE_XML_H
#define H5_REMOTE_XML_H

#include "remote/text.h"

enum { H5_XML_DEPTH = 16 }; /* elements within each other, at most */

/* An element that has no others in it. */
struct h5_xml_leaf {
	unsigned depth;		     /* of this one: 1 is the whole text */
	const struct h5_text *names; /* of the elements around it, and its own: `depth` of them */
	const char *text;	     /* decoded, without blanks around it */
	/* The number of the element around it: elements are numbered from 1 in the order of their begins. 0:
	 * it is the outermost. */
	size_t around;
};

/* True: the names are those of the path, "a/b/c". */
bool h5_xml_is(const struct h5_xml_leaf *leaf, const char *path);

/* Calls `take` for each leaf, in their order. -EINVAL: the text is no such XML, or `take` says no; -ENOMEM.
 */
int h5_xml_read(const char *text, size_t n, bool (*take)(void *arg, const struct h5_xml_leaf *leaf),
		void *arg);

#endif
