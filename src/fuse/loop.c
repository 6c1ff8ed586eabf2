/* One thread at a time waits for a request. Before it works on what may take long, it leaves the waiting to
 * another one; what is brief it answers itself and goes on, unless that turns out to take long. So a program
 * that asks for one little thing after the other, as `ls -l` and a writer of small records do, is served by
 * one thread, which has it all in its processor's cache. (In libfuse's own loop all idle threads wait, and
 * take turns.) */
#include "fuse/loop.h"

#include "base/error.h"
#include "base/thread.h"

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
	THREADS =
		64, /* some may wait long for one another; that they are interrupted comes as a request too */
	IDLE = 10,  /* that are kept */
	BRIEF_WRITE = 1 << 14, /* bytes of a request that writes */
	LOOK_OUT = 50000,      /* nanoseconds */
	AGAIN = 10000000,      /* nanoseconds */
	SECOND = 1000000000,
};

#define WAKE SIGRTMIN /* ends the waiting */

struct server {
	struct loop *loop;
	pthread_t thread;
	struct fuse_buf buf; /* mem is owned */
	bool leads;	     /* it is the one that waits for requests, or would be but for a brief one */
	bool ended;	     /* lock: to be joined */
	struct server *prev, *next; /* lock: in loop->servers */
};

struct loop {
	struct fuse_session *session;
	sem_t over;	      /* posted when the session has ended */
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t free;  /* nobody waits for requests, or the session has ended */
	struct server *servers;
	unsigned count, idle;
	bool waiting; /* some thread waits for a request */
	bool stopping;
	int error;
};

/* What is answered without looking at the file, and small writes. */
static bool is_brief(const struct fuse_buf *buf)
{
	struct fuse_in_header header;
	const char *name = (const char *)buf->mem + sizeof header + sizeof(struct fuse_getxattr_in);

	if (buf->size < sizeof header)
		return false;
	memcpy(&header, buf->mem, sizeof header);
	switch (header.opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return true;
	case FUSE_WRITE:
		return buf->size <= BRIEF_WRITE;
	case FUSE_GETXATTR: /* the kernel ends the name by a NUL */
		return buf->size > sizeof header + sizeof(struct fuse_getxattr_in) &&
		       (!strncmp(name, "security.", 9) || !strncmp(name, "system.", 7));
	default:
		return false;
	}
}

/* One request, which may be waited for long. False: the session is over. */
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

/* With the lock: somebody else shall wait for requests, as far as there is or can be one. */
static void pass_on(struct server *s)
{
	struct loop *l = s->loop;

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

/* With the lock: waits until this thread is the one that waits for requests; false: it is not needed. */
static bool take_over(struct loop *l)
{
	if (l->waiting && l->idle >= IDLE)
		return false;
	l->idle++;
	while (l->waiting && !l->stopping)
		pthread_cond_wait(&l->free, &l->lock);
	l->idle--;
	return !l->stopping;
}

static void free_server(struct server *s)
{
	free(s->buf.mem);
	free(s);
}

/* With the lock: those that have ended for want of work. */
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

/* Who has had a brief answer often asks the next thing at once: waking up for it would take longer than
 * everything else. */
static void look_out(struct fuse_session *session)
{
	struct pollfd fd = {.fd = fuse_session_fd(session), .events = POLLIN};
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		sched_yield(); /* to the one who was answered, if it is to run here */
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!poll(&fd, 1, 0) &&
		 (int64_t)(now.tv_sec - begin.tv_sec) * SECOND + now.tv_nsec - begin.tv_nsec < LOOK_OUT);
}

/* Hears of requests and answers them as long as they are brief; the first that is not it answers when another
 * thread has taken over. False: the session is over. */
static bool lead(struct server *s, int *error)
{
	struct fuse_session *session = s->loop->session;

	while (s->leads) {
		if (!receive(s, error))
			return false;
		if (!is_brief(&s->buf))
			h5_serve_others();
		fuse_session_process_buf(session, &s->buf);
		if (s->leads)
			look_out(session);
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
			l->stopping = true;
			pthread_cond_broadcast(&l->free);
			sem_post(&l->over);
			break;
		}
		pthread_mutex_lock(&l->lock);
	}
	s->ended = true;
	l->count--;
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* The session is over: the thread will see it once it does not wait for a request. The signal may come before
 * it waits, so it comes again. */
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

/* Ends all threads; what they work on is answered first. */
static void stop(struct loop *l)
{
	struct server *s, *next;

	pthread_mutex_lock(&l->lock);
	l->stopping = true;
	pthread_cond_broadcast(&l->free);
	pthread_mutex_unlock(&l->lock);
	/* None is added any more. */
	DL_FOREACH_SAFE(l->servers, s, next)
	end_server(s);
}

static void wake(int number)
{
	(void)number;
}

int h5_serve(struct fuse_session *session)
{
	struct loop l = {.session = session};
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
	pthread_mutex_destroy(&l.lock);
	sem_destroy(&l.over);
	return rc ? rc : l.error;
}
