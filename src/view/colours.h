/* Colours that stand for numbers, and their names as an option of the mount has them. */
#ifndef H5_VIEW_COLOURS_H
#define H5_VIEW_COLOURS_H

#include <stdint.h>

enum h5_colours {
	H5_COLOURS_GREY,  /* black to white */
	H5_COLOURS_HEAT,  /* black, red, yellow, white */
	H5_COLOURS_HELIX, /* all hues, each brighter than those before */
};

/* The colour of a number from 0 (the least) to 1 (the greatest): red, green, blue. */
void h5_colours_of(enum h5_colours colours, double number, uint8_t colour[3]);

#endif
