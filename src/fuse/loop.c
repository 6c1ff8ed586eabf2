/* One thread at a time waits for a request: it leads. Before it works on a request that takes long, it lets
 * another thread lead. It answers the others itself and goes on leading, unless one turns out to take long
 * (base/wait.h). So one thread, with all it needs in its processor's cache, serves a program that asks for
 * many little things, such as `ls -l` or a writer of small records. (In libfuse's own loop all idle threads
 * wait, and take turns.)
 *
 * Large reads are worked on by as many threads as there are processors: more would only take processors, and
 * their caches, from each other. So the last of these threads goes on leading. Those that wait do not count.
 */
#include "fuse/loop.h"

#include "base/error.h"
#include "base/thread.h"
#include "base/wait.h"

#include <assert.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utlist.h>

enum {
	THREADS = 64, /* most threads: many, since they may wait long for each other, and one must be free to
			 read their interrupts */
	IDLE = 10,    /* idle threads that are kept */
	BRIEF_READ = 1 << 14,  /* bytes of the largest read that counts as brief */
	BRIEF_WRITE = 1 << 14, /* and of the largest write */
	LOOK_OUT = 50000,      /* nanoseconds that a thread polls for the next request before it sleeps */
	IN_VAIN = 4,	       /* after so many polls in a row without a request, */
	RARELY = 64,	       /* it polls after one request of so many */
	AGAIN = 10000000,      /* nanoseconds between two WAKE signals to a thread */
	SECOND = 1000000000,
};

#define WAKE SIGRTMIN /* ends a thread's wait for a request */

struct server {
	struct loop *loop;
	pthread_t thread;
	struct fuse_buf buf;	    /* mem is owned */
	bool leads;		    /* it waits for requests, or works on a brief one */
	unsigned in_vain;	    /* polls in a row without a request; at most IN_VAIN */
	unsigned passed;	    /* requests since the last poll; counted while polls are in vain */
	bool reads;		    /* it is one of loop->reading */
	bool ended;		    /* lock: to be joined */
	struct server *prev, *next; /* lock: in loop->servers */
};

struct loop {
	struct fuse_session *session;
	unsigned processors;
	sem_t over;	      /* posted when the session has ended */
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t free;  /* signalled when no thread waits for requests, or the session has ended */
	struct server *servers;
	unsigned count, idle;
	unsigned reading; /* threads that work on large reads, do not lead, and do not wait */
	bool waiting;	  /* some thread waits for a request */
	bool stopping;
	int error;
};

/* 0: it is no request at all. */
static uint32_t opcode_of(const struct fuse_buf *buf)
{
	struct fuse_in_header header;

	if (buf->size < sizeof header)
		return 0;
	memcpy(&header, buf->mem, sizeof header);
	return header.opcode;
}

static bool is_brief_read(const struct fuse_buf *buf)
{
	struct fuse_read_in in;

	if (buf->size < sizeof(struct fuse_in_header) + sizeof in)
		return false;
	memcpy(&in, (const char *)buf->mem + sizeof(struct fuse_in_header), sizeof in);
	return in.size <= BRIEF_READ;
}

/* True: most requests of the kind are answered from memory. To let another thread lead would take longer.
 * Those that commit, or move many bytes, are not brief. */
static bool is_brief(const struct fuse_buf *buf)
{
	switch (opcode_of(buf)) {
	case FUSE_LOOKUP:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_GETATTR:
	case FUSE_ACCESS:
	case FUSE_READLINK:
	case FUSE_STATFS:
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
	case FUSE_OPENDIR:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
	case FUSE_RELEASEDIR:
	case FUSE_OPEN:
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_IOCTL:
	case FUSE_INTERRUPT:
	/* These change names one after the other anyway. */
	case FUSE_CREATE:
	case FUSE_MKDIR:
	case FUSE_UNLINK:
	case FUSE_RMDIR:
		return true;
	case FUSE_READ:
		return is_brief_read(buf);
	case FUSE_WRITE:
		return buf->size <= BRIEF_WRITE;
	default:
		return false;
	}
}

/* Waits for a request. False: the session is over. */
static bool receive(struct server *s, int *error)
{
	struct fuse_session *session = s->loop->session;
	int n;

	do
		n = fuse_session_receive_buf(session, &s->buf);
	while (n == -EINTR && !fuse_session_exited(session));
	*error = n < 0 && n != -EINTR ? n : 0;
	return n > 0 && !fuse_session_exited(session);
}

static _Thread_local struct server *self; /* NULL: not one of these threads */

static void *serve(void *arg);

static int start_server(struct loop *l)
{
	struct server *s = calloc(1, sizeof *s);
	int rc;

	if (!s)
		return -ENOMEM;
	s->loop = l;
	rc = h5_thread_start(&s->thread, serve, s, WAKE);
	if (rc) {
		free(s);
		return rc;
	}
	DL_PREPEND(l->servers, s);
	l->count++;
	return 0;
}

/* With the lock: lets another thread lead, if there is one or one can be started. */
static void pass_on(struct server *s)
{
	struct loop *l = s->loop;

	assert(s->leads && l->waiting);
	h5_wait_set(NULL);
	s->leads = false;
	l->waiting = false;
	if (l->idle)
		pthread_cond_signal(&l->free);
	else if (l->count < THREADS && !l->stopping)
		start_server(l);
}

void h5_serve_others(void)
{
	struct server *s = self;

	if (!s || !s->leads)
		return;
	pthread_mutex_lock(&s->loop->lock);
	pass_on(s);
	pthread_mutex_unlock(&s->loop->lock);
}

/* With the lock. */
static void end_reading(struct server *s)
{
	s->loop->reading -= s->reads;
	s->reads = false;
}

/* While a thread waits, another one may read. */
static void stop_reading(void)
{
	struct server *s = self;

	pthread_mutex_lock(&s->loop->lock);
	end_reading(s);
	pthread_mutex_unlock(&s->loop->lock);
}

/* Before a large read. Another thread leads from now on; or, if all processors would have work then, from
 * when this one has to wait. */
static void begin_reading(struct server *s)
{
	struct loop *l = s->loop;

	pthread_mutex_lock(&l->lock);
	if (l->reading + 1 < l->processors) {
		pass_on(s);
		l->reading++;
		s->reads = true;
		h5_wait_set(stop_reading);
	} else {
		h5_wait_set(h5_serve_others);
	}
	pthread_mutex_unlock(&l->lock);
}

bool h5_is_unwanted(void *request)
{
	const struct h5_mount *m = fuse_req_userdata(request);

	h5_serve_others(); /* an interrupt is a request, too, which another thread must read */
	return fuse_req_interrupted(request) || fuse_session_exited(m->session);
}

/* With the lock: waits until this thread can lead. False: it is not needed. */
static bool take_over(struct loop *l)
{
	if (l->waiting && l->idle >= IDLE)
		return false;
	l->idle++;
	while (l->waiting && !l->stopping)
		pthread_cond_wait(&l->free, &l->lock);
	assert(l->idle);
	l->idle--;
	return !l->stopping;
}

static void free_server(struct server *s)
{
	free(s->buf.mem);
	free(s);
}

/* With the lock: joins threads that have ended because there was no work. */
static void join_ended(struct loop *l)
{
	struct server *s, *next;

	if (l->stopping)
		return;
	DL_FOREACH_SAFE(l->servers, s, next)
	{
		if (!s->ended)
			continue;
		DL_DELETE(l->servers, s);
		pthread_join(s->thread, NULL);
		free_server(s);
	}
}

/* True: there is a request. Polls for a moment. */
static bool is_next_there(struct fuse_session *session)
{
	struct pollfd fd = {.fd = fuse_session_fd(session), .events = POLLIN};
	struct timespec begin, now;
	bool there;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		sched_yield(); /* so that the program that was answered can run */
		clock_gettime(CLOCK_MONOTONIC, &now);
		there = poll(&fd, 1, 0);
	} while (!there &&
		 (int64_t)(now.tv_sec - begin.tv_sec) * SECOND + now.tv_nsec - begin.tv_nsec < LOOK_OUT);
	return there;
}

/* A program that has got a brief answer often asks the next thing at once. To sleep and wake up again would
 * take longer than all else, so this polls first. But polling slows down a program that needs longer, if both
 * processors are one core. So after some polls in vain it polls rarely. */
static void look_out(struct server *s)
{
	if (s->in_vain >= IN_VAIN && ++s->passed < RARELY)
		return;
	s->passed = 0;
	if (is_next_there(s->loop->session))
		s->in_vain = 0;
	else if (s->in_vain < IN_VAIN)
		s->in_vain++;
}

/* Waits for requests and answers them, as long as this thread leads. False: the session is over. */
static bool lead(struct server *s, int *error)
{
	struct fuse_session *session = s->loop->session;

	while (s->leads) {
		if (!receive(s, error))
			return false;
		if (is_brief(&s->buf))
			h5_wait_set(h5_serve_others);
		else if (opcode_of(&s->buf) == FUSE_READ)
			begin_reading(s);
		else
			h5_serve_others();
		fuse_session_process_buf(session, &s->buf);
		if (s->leads)
			look_out(s);
	}
	return true;
}

static void *serve(void *arg)
{
	struct server *s = arg;
	struct loop *l = s->loop;
	int error = 0;

	self = s;
	pthread_mutex_lock(&l->lock);
	join_ended(l);
	while (take_over(l)) {
		l->waiting = s->leads = true;
		pthread_mutex_unlock(&l->lock);
		if (!lead(s, &error)) {
			fuse_session_exit(l->session);
			pthread_mutex_lock(&l->lock);
			l->error = error;
			sem_post(&l->over);
			break;
		}
		pthread_mutex_lock(&l->lock);
		end_reading(s);
	}
	s->ended = true;
	assert(l->count);
	l->count--;
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* Wakes and joins a thread after the session is over. The signal may come before the thread waits for a
 * request, so it is sent again. */
static void end_server(struct server *s)
{
	struct timespec until;

	do {
		pthread_kill(s->thread, WAKE);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += AGAIN;
		until.tv_sec += until.tv_nsec / SECOND;
		until.tv_nsec %= SECOND;
	} while (pthread_timedjoin_np(s->thread, NULL, &until) == ETIMEDOUT);
	free_server(s);
}

/* Ends all threads, after they have answered their requests. */
static void stop(struct loop *l)
{
	struct server *s, *next;

	pthread_mutex_lock(&l->lock);
	l->stopping = true;
	pthread_cond_broadcast(&l->free);
	pthread_mutex_unlock(&l->lock);
	/* No thread is added any more. */
	DL_FOREACH_SAFE(l->servers, s, next)
	end_server(s);
	assert(!l->count && !l->idle);
}

static void wake(int number)
{
	(void)number;
}

int h5_serve(struct fuse_session *session)
{
	struct loop l = {.session = session, .processors = h5_processors()};
	struct sigaction action = {.sa_handler = wake}; /* no SA_RESTART: read(2) shall end */
	int rc;

	sigaction(WAKE, &action, NULL);
	sem_init(&l.over, 0, 0);
	pthread_mutex_init(&l.lock, NULL);
	pthread_cond_init(&l.free, NULL);
	pthread_mutex_lock(&l.lock);
	rc = start_server(&l);
	pthread_mutex_unlock(&l.lock);
	while (!rc && !fuse_session_exited(session))
		sem_wait(&l.over); /* a signal ends it, too */
	if (!rc)
		stop(&l);
	pthread_cond_destroy(&l.free);
	h5_mutex_destroy(&l.lock);
	sem_destroy(&l.over);
	return rc ? rc : l.error;
}
