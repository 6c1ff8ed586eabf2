/* The folder of the disk cache: one file for each version of each remote file (remote/disk_format.h), which
 * several processes share. Who uses a file holds a shared lock of it; so none is taken away under anybody.
 *
 * Nothing in the folder is believed because of its name. Files are opened without following links, and must
 * be this user's own regular files that nobody else can write. One that is not as it must be is thrown away.
 */
#ifndef H5_REMOTE_DISK_FOLDER_H
#define H5_REMOTE_DISK_FOLDER_H

#include "remote/disk_file.h"

struct h5_disk_folder {
	bool there; /* false: there is no disk cache, and nothing else counts */
	int fd;
	uint64_t budget;	   /* bytes of all files */
	uint64_t room;		   /* bytes that may be written before the files are counted anew */
	int64_t counted;	   /* when that was, if there was no room; seconds of CLOCK_MONOTONIC */
	bool stopped;		   /* nothing more is written */
	unsigned open;		   /* files */
	char note[H5_REMOTE_TEXT]; /* for the log; "": none */
};

/* Opens the folder, which is made if it is not there, and tries whether files can be made and locked in it: a
 * descriptor, or a negative errno with detail. */
int h5_disk_folder_open(const char *path);

/* Opens the version of the URL that was used last. NULL: there is none. */
struct h5_disk_file *h5_disk_find(struct h5_disk_folder *folder, const uint8_t url[H5_SHA256]);
/* Opens the file of that version; makes it if it is not there. NULL: it is not to be had. */
struct h5_disk_file *h5_disk_open(struct h5_disk_folder *folder, const struct h5_disk_header *header);
/* Removes its name, since it is damaged, and closes it. `why` is for the log. */
void h5_disk_discard(struct h5_disk_folder *folder, struct h5_disk_file *file, const char *why);
/* It counts as used: now, and when it is closed. h5_disk_open() has done so. */
void h5_disk_use(struct h5_disk_file *file);
/* NULL is fine. */
void h5_disk_close(struct h5_disk_folder *folder, struct h5_disk_file *file);

/* ---- remote/disk_budget.c ---- */

/* True: n bytes may be written; files that nobody uses make room, those first that were not used for longest.
 */
bool h5_disk_has_room(struct h5_disk_folder *folder, uint64_t n);
/* Ends all writing, since it has failed with that error; the log hears of it once. */
void h5_disk_stop(struct h5_disk_folder *folder, int code);

#endif
