/* A buffer of each thread for the replies that it makes: fresh memory costs as much as copying into it. */
#ifndef H5_FUSE_BUFFER_H
#define H5_FUSE_BUFFER_H

#include <stddef.h>

/* n bytes, until the thread asks again, or ends; NULL: out of memory. */
void *h5_reply_buffer(size_t n);

#endif
