/* Sets the signals of the daemon, whatever the program that has started it does with them. */
#ifndef H5_FUSE_SIGNALS_H
#define H5_FUSE_SIGNALS_H

#include <stdbool.h>

/* To be called before the first fork: gives each signal that h5fs uses or depends on the action that it
 * needs, and unblocks all but SIGUSR1, which fuse/watch waits for. In the foreground SIGHUP and SIGINT stay
 * ignored if they were: nohup and shells protect programs from the signals of a terminal in this way. */
void h5_signals_begin(bool foreground);

#endif
