/* For those that open a file (file_open.c) and change it (change/). */
#ifndef H5_STORE_FILE_PRIVATE_H
#define H5_STORE_FILE_PRIVATE_H

#include "io/overlay.h"
#include "store/file.h"

/* Makes a file of io, which has its superblock: at the offset, if that is not 0. Takes io over, also on
 * failure; `shared` is borrowed. */
int h5_file_new(const struct h5_file_shared *shared, struct h5_io *io, uint64_t offset,
		struct h5_file **file);
/* From now on the file is read through `io`, which has taken over the io before. If this fails, the file can
 * only be closed. */
int h5_file_read_through(struct h5_file *file, struct h5_io *io);
/* The same for a file that was opened by its stub: also reads the superblock again, from `io`. */
int h5_file_read_whole(struct h5_file *file, struct h5_io *io);
/* Closes the file, but not its io, which is returned. */
struct h5_io *h5_file_leave_io(struct h5_file *file);
/* The file cannot be changed. `what`: what it is, in words; a constant. */
void h5_file_fix(struct h5_file *file, const char *what);
/* The file is one of several pieces, or may become one. */
void h5_file_set_in_pieces(struct h5_file *file);
/* The file is in members of the multi driver, which have these areas. */
void h5_file_set_areas(struct h5_file *file, const struct h5_file_area *areas, unsigned count);
/* The same with the blocks of a metadata cache image (cache_image.h) laid over the io before. */
int h5_file_read_image(struct h5_file *file, struct h5_overlay *image);
/* Takes the text for h5_file_missing() over. */
void h5_file_set_missing(struct h5_file *file, char *missing);

/* The io that the file is read through, by absolute offsets. Borrowed. */
struct h5_io *h5_file_io(const struct h5_file *file);
/* Lets the io of the file end its work (`finish` of io/io.h). To be called once, before the caches and the
 * file are closed. */
void h5_file_finish(struct h5_file *file);
/* From now on the file is read through `changes`, which has taken over the io before. Only who has made it
 * changes the file. Once. */
void h5_file_lay_over(struct h5_file *file, struct h5_overlay *changes);
/* What h5_file_lay_over() was given, borrowed; NULL: nothing. */
struct h5_overlay *h5_file_changes(const struct h5_file *file);
/* What h5_file_read_image() was given, borrowed. Its patches are the blocks of the image. NULL: there is
 * none, or h5_file_drop_image() was called. */
const struct h5_overlay *h5_file_image(const struct h5_file *file);
/* The blocks of the image were written to their addresses, so the file is read without it from now on. No
 * other thread may read the file meanwhile. */
void h5_file_drop_image(struct h5_file *file);
/* The file, or the area that the byte before is in, reaches at least up to this address. */
void h5_file_extend(struct h5_file *file, uint64_t end);
/* The file, or the area that the byte before is in, ends at this address. Nothing is cached of what was
 * behind it. */
void h5_file_cut(struct h5_file *file, uint64_t end);
/* Gives the file a new number, so that nothing decoded before is found again. */
void h5_file_renumber(struct h5_file *file);
/* 0: the file can be changed. -ENOTSUP: h5_file_fix(). */
int h5_file_can_change(const struct h5_file *file);

#endif
