/* Strings of fixed length as NumPy has them: what follows the text is zeros. */
#ifndef H5_VIEW_STRINGS_H
#define H5_VIEW_STRINGS_H

#include "format/datatype.h"

#include <stdbool.h>
#include <stdint.h>

/* True: elements of the type have strings that are padded with spaces, as by Fortran programs, or end at a
 * NUL, behind which any bytes may be stored. The recursion is bounded, since the decoder of types bounds
 * their depth.
 */
bool h5_strings_have_padding(const struct h5_datatype *type);
/* Makes the padding of all strings in one element zeros. */
void h5_strings_pad_with_zeros(const struct h5_datatype *type, uint8_t *element);

#endif
