/* Signals that end a command which has something to tidy up first. */
#ifndef H5_OFFLINE_STOP_H
#define H5_OFFLINE_STOP_H

/* From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, only make h5_stop_signal() tell. */
void h5_stop_hear(void);
/* The last signal that came; 0: none. */
int h5_stop_signal(void);
/* Ends the process by the signal that came, as if it had not been heard; returns if none came. */
void h5_stop_obey(void);

#endif
