#include "fuse/reply_buffer.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* frees it with its thread */
static _Thread_local void *buffer;
static _Thread_local size_t size;

static void make_key(void)
{
	if (pthread_key_create(&key, free))
		abort(); /* all of the more than a thousand keys are taken */
}

void *h5_reply_buffer(size_t n)
{
	if (n <= size)
		return buffer;
	pthread_once(&once, make_key);
	free(buffer);
	buffer = malloc(n);
	size = buffer ? n : 0;
	pthread_setspecific(key, buffer);
	return buffer;
}
