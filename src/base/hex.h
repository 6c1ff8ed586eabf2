/* Hexadecimal digits. */
#ifndef H5_BASE_HEX_H
#define H5_BASE_HEX_H

/* 0 to 15; -1: it is no hexadecimal digit. */
static inline int h5_hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The byte of two digits; -1: they are none. Looks at the second only if the first is one, so a text may end
 * between them. */
static inline int h5_hex_byte(const char *text)
{
	int high = h5_hex_digit(text[0]), low = high < 0 ? -1 : h5_hex_digit(text[1]);

	return low < 0 ? -1 : high << 4 | low;
}

#endif
