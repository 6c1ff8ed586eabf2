/* Each thread has a buffer for its replies, since new memory costs as much as copying into it. */
#ifndef H5_FUSE_REPLY_BUFFER_H
#define H5_FUSE_REPLY_BUFFER_H

#include <stddef.h>

/* n bytes, valid until the thread calls this again or ends; NULL: out of memory. */
void *h5_reply_buffer(size_t n);

#endif
