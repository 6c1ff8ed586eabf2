/* Errors.
 *
 * Every function that can fail returns 0 (or a count) or a negative errno:
 *
 *   -EUCLEAN    the file is damaged: bounds, checksum, cycle, nonsense
 *   -ENOTSUP    valid HDF5 that this version cannot do, or a filter that is not built in
 *   -EIO        the device failed
 *   -ENOMEM, -EFBIG, -ENOENT, ... as POSIX has them
 *
 * Beside the number there is a detail: what was wrong, at which address. It is kept per thread, like errno.
 * The function that finds the error sets it; the layer that answers the user logs it, once. */
#ifndef H5_BASE_ERROR_H
#define H5_BASE_ERROR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* The undefined address of the format, and "no address" in errors. */
#define H5_UNDEF UINT64_MAX

struct h5_error {
	int code;	  /* the negative errno that was returned, 0: none */
	uint64_t address; /* in the HDF5 file, relative to its base; H5_UNDEF: none */
	char text[240];
};

/* Records the detail and returns `code`, so that callers write: return h5_fail(-EUCLEAN, address, "...",
 * ...). */
int h5_fail(int code, uint64_t address, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* True for an error that says nothing about the file or the device: memory ran out, or the request was
 * interrupted. */
static inline bool h5_is_own(int code)
{
	return code == -ENOMEM || code == -EINTR;
}

/* True for an error of this moment, not of the file: memory or descriptors ran out, the request was
 * interrupted, or the device failed. The next time it may not happen, so no result of it may be kept. */
static inline bool h5_is_passing(int code)
{
	return h5_is_own(code) || code == -EIO || code == -EMFILE || code == -ENFILE;
}

/* Puts the formatted text and `: ` before the text of this thread's last error, if that is `code`; returns
 * `code`. */
int h5_fail_in(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* This thread's last detail; valid until the thread's next h5_fail. It has a meaning only if its code is the
 * one that a function has just returned. */
const struct h5_error *h5_error_last(void);

/* Forgets the detail. To be called when a request begins. */
void h5_error_clear(void);

#endif
