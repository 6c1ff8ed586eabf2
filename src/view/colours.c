#include "view/colours.h"

#include <math.h>

static uint8_t to_byte(double part)
{
	return part <= 0 ? 0 : part >= 1 ? UINT8_MAX : (uint8_t)(part * UINT8_MAX + 0.5);
}

/* D. A. Green, "A colour scheme for the display of astronomical intensity images" (2011): a line from black
 * to white that winds around the diagonal of the colour cube, so that brightness increases evenly. */
static void helix(double x, uint8_t colour[3])
{
	const double turn = 6.283185307179586 * (0.5 / 3 + 1 - 1.5 * x), amplitude = x * (1 - x) / 2;
	const double c = amplitude * cos(turn), s = amplitude * sin(turn);

	colour[0] = to_byte(x - 0.14861 * c + 1.78277 * s);
	colour[1] = to_byte(x - 0.29227 * c - 0.90649 * s);
	colour[2] = to_byte(x + 1.97294 * c);
}

void h5_colours_of(enum h5_colours colours, double x, uint8_t colour[3])
{
	switch (colours) {
	case H5_COLOURS_GREY:
		colour[0] = colour[1] = colour[2] = to_byte(x);
		break;
	case H5_COLOURS_HEAT:
		for (int i = 0; i < 3; i++)
			colour[i] = to_byte(3 * x - i);
		break;
	case H5_COLOURS_HELIX:
		helix(x, colour);
		break;
	}
}
