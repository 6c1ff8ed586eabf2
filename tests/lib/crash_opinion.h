/* What we and libhdf5 think of an image: this machine's, and those of other releases that are there
 * (contrib/judges), a process of crash_judge.py each. For tests/unit/crash_replay.c. */
#ifndef H5_TESTS_CRASH_OPINION_H
#define H5_TESTS_CRASH_OPINION_H

#include "crash_image.h"
#include "crash_workloads.h"

#include <stdio.h>
#include <sys/types.h>

enum { CRASH_JUDGES_MAX = 8 };

struct crash_judge {
	pid_t pid;
	FILE *to, *from;
	struct crash_image sent; /* its image */
};

struct crash_opinion {
	const struct crash_run *run; /* borrowed */
	unsigned first, last;	     /* states that its datasets may be in */
	char label[128];	     /* which crash this is, for complaints */
	/* the rest is crash_opinion.c's */
	struct crash_judge judges[CRASH_JUDGES_MAX]; /* this machine's own is the first */
	unsigned count;
	unsigned each; /* of so many images the other judges see one */
	unsigned long checks;
	struct crash_image cleared; /* an image without marks */
};

void crash_opinion_start(struct crash_opinion *o);
/* True: libhdf5 has found nothing wrong. */
bool crash_opinion_end(struct crash_opinion *o);

/* A new `run`. */
void crash_opinion_begin(struct crash_opinion *o);
/* Each dataset is in one of the states. Ends the program if it is not by our opinion; libhdf5's comes later.
 */
void crash_opinion_check(struct crash_opinion *o, const struct crash_image *image);
/* Lets this machine's libhdf5 change the file, in one of the ways that crash_judge.py knows, and write it to
 * the path. False: it can't. */
bool crash_opinion_change(struct crash_opinion *o, const struct crash_image *image, char kind,
			  const char *path);
/* What it has changed is in the image. */
void crash_opinion_verify(struct crash_opinion *o, const struct crash_image *image);

/* Ends the program: this crash has left something wrong, in the dataset or (NULL) in the file. */
void crash_wrong(const struct crash_opinion *o, const struct crash_dataset *d, const char *what);
/* Clears the marks in the superblock, as h5clear does it. */
void crash_clear_marks(struct crash_image *image, const struct crash_run *run);

#endif
