/* What mounts ask the kernel for, and the answer to its first request (fuse/negotiate), with a socket in
 * place of the kernel. */
#include "fuse/negotiate.h"
#include "unit.h"

#include <errno.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	int ours, theirs; /* ends of the socket */
	int interrupted;  /* receives that are to come before the request */
	bool exited, ends;
	int result; /* of the receive, if there is no request */
	uint8_t request[128];
	size_t request_size;
	uint8_t reply[512];
	size_t reply_size;
	unsigned processed;
	const void *direct; /* which may be mapped directly */
} kernel;

static struct fuse_session *const session = (struct fuse_session *)&kernel;
static struct h5_vfs *const vfs = (struct h5_vfs *)&kernel.request;
static struct h5_tree *const tree = (struct h5_tree *)&kernel.reply;

int __wrap_fuse_session_receive_buf(struct fuse_session *se, struct fuse_buf *buf);
void __wrap_fuse_session_process_buf(struct fuse_session *se, const struct fuse_buf *buf);
int __wrap_fuse_session_fd(struct fuse_session *se);
int __wrap_fuse_session_exited(struct fuse_session *se);
void __wrap_fuse_session_exit(struct fuse_session *se);
void __wrap_h5_vfs_set_maps_direct(struct h5_vfs *of);
void __wrap_h5_tree_set_maps_direct(struct h5_tree *of);

int __wrap_fuse_session_receive_buf(struct fuse_session *se, struct fuse_buf *buf)
{
	ck_assert(se == session);
	if (kernel.interrupted) {
		kernel.interrupted--;
		kernel.exited = kernel.ends;
		return -EINTR;
	}
	if (!kernel.request_size)
		return kernel.result;
	/* Of its size, so that reading more is seen. */
	buf->mem = malloc(kernel.request_size);
	memcpy(buf->mem, kernel.request, kernel.request_size);
	buf->size = kernel.request_size;
	return (int)buf->size;
}

void __wrap_fuse_session_process_buf(struct fuse_session *se, const struct fuse_buf *buf)
{
	ck_assert(se == session && buf->size == kernel.request_size);
	ck_assert(!memcmp(buf->mem, kernel.request, buf->size));
	kernel.processed++;
	if (kernel.reply_size)
		ck_assert_int_eq(write(kernel.theirs, kernel.reply, kernel.reply_size),
				 (ssize_t)kernel.reply_size);
}

int __wrap_fuse_session_fd(struct fuse_session *se)
{
	ck_assert(se == session);
	return kernel.theirs;
}

int __wrap_fuse_session_exited(struct fuse_session *se)
{
	ck_assert(se == session);
	return kernel.exited;
}

void __wrap_fuse_session_exit(struct fuse_session *se)
{
	ck_assert(se == session);
	kernel.exited = true;
}

void __wrap_h5_vfs_set_maps_direct(struct h5_vfs *of)
{
	kernel.direct = of;
}

void __wrap_h5_tree_set_maps_direct(struct h5_tree *of)
{
	kernel.direct = of;
}

static unsigned dup3_fails; /* which call, from 1 on; 0: none */

int __real_dup3(int fd, int to, int flags);
int __wrap_dup3(int fd, int to, int flags);

int __wrap_dup3(int fd, int to, int flags)
{
	return dup3_fails && !--dup3_fails ? -1 : __real_dup3(fd, to, flags);
}

/* ---- features ---- */

START_TEST(features)
{
	enum { ASKED = FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC };
	struct h5_mount m = {.vfs = vfs, .session = session};

	for (unsigned offered = 0; offered < 4; offered++) {
		struct fuse_conn_info connection = {.want = FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ASYNC_READ};
		unsigned expected = FUSE_CAP_ASYNC_READ;

		connection.capable = FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ASYNC_READ | FUSE_CAP_SPLICE_READ;
		if (offered & 1)
			connection.capable |= FUSE_CAP_AUTO_INVAL_DATA;
		if (offered & 2)
			connection.capable |= FUSE_CAP_ATOMIC_O_TRUNC;
		expected |= (unsigned)connection.capable & ASKED;
		h5_negotiate(&m, &connection);
		ck_assert_uint_eq(connection.want, expected);
	}
}
END_TEST

#ifdef FUSE_CAP_DIRECT_IO_ALLOW_MMAP

START_TEST(maps)
{
	for (unsigned i = 0; i < 8; i++) {
		struct h5_mount m = {
			.vfs = vfs, .tree = i & 1 ? tree : NULL, .session = session, .writable = i & 2};
		struct fuse_conn_info connection = {.capable = i & 4 ? FUSE_CAP_DIRECT_IO_ALLOW_MMAP : 0};
		const bool direct = i >= 6;

		kernel.direct = NULL;
		h5_negotiate(&m, &connection);
		ck_assert(!(connection.want & FUSE_CAP_DIRECT_IO_ALLOW_MMAP) == !direct);
		ck_assert(kernel.direct == (!direct ? NULL : i & 1 ? (void *)tree : (void *)vfs));
		ck_assert_int_eq(h5_negotiate_start(&m), 0);
	}
}
END_TEST

#else

enum {
	MAPS = 1 << 4, /* FUSE_DIRECT_IO_ALLOW_MMAP, in flags2 */
	OTHER = 1 << 1,
	REQUEST = sizeof(struct fuse_in_header) + offsetof(struct fuse_init_in, flags2) + 4,
	REPLY = sizeof(struct fuse_out_header) + sizeof(struct fuse_init_out),
};

static void begin(void)
{
	int ends[2];

	memset(&kernel, 0, sizeof kernel);
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	kernel.ours = ends[0];
	kernel.theirs = ends[1];
}

static void end(void)
{
	close(kernel.ours);
	close(kernel.theirs);
}

static void set_request(uint32_t opcode, uint32_t flags, uint32_t flags2, size_t size)
{
	struct fuse_in_header header = {.opcode = opcode, .len = (uint32_t)size};
	struct fuse_init_in init = {.major = 7, .minor = 40, .flags = flags};
	uint8_t *at = kernel.request;

	memset(at, 0xff, sizeof kernel.request);
	memcpy(at, &header, sizeof header);
	memcpy(at + sizeof header, &init, offsetof(struct fuse_init_in, flags2));
	memcpy(at + sizeof header + offsetof(struct fuse_init_in, flags2), &flags2, sizeof flags2);
	kernel.request_size = size;
}

static void set_reply(uint32_t flags, uint32_t flags2, size_t size)
{
	struct fuse_out_header header = {.len = (uint32_t)size};
	struct fuse_init_out init = {
		.major = 7, .minor = 40, .flags = flags, .flags2 = flags2, .max_write = 77};

	memset(kernel.reply, 0xaa, sizeof kernel.reply);
	memcpy(kernel.reply, &header, sizeof header);
	memcpy(kernel.reply + sizeof header, &init, sizeof init);
	kernel.reply_size = size;
}

static const struct {
	uint32_t opcode, flags, flags2;
	size_t size;
	uint32_t reply_flags, reply_flags2;
	size_t reply_size;
	bool direct; /* the reply becomes one that takes the offer */
} exchanges[] = {
	{FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST, FUSE_INIT_EXT, OTHER, REPLY, true},
	{FUSE_INIT, FUSE_INIT_EXT | 1, MAPS | OTHER, REQUEST + 44, FUSE_INIT_EXT | 1, 0, REPLY, true},
	{FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST, FUSE_INIT_EXT, OTHER, REPLY + 100, true},
	/* It is not offered. */
	{FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST - 1, FUSE_INIT_EXT, 0, REPLY, false},
	{FUSE_INIT, 0, MAPS, REQUEST, FUSE_INIT_EXT, 0, REPLY, false},
	{FUSE_INIT, FUSE_INIT_EXT, (uint32_t)~MAPS, REQUEST, FUSE_INIT_EXT, 0, REPLY, false},
	{FUSE_LOOKUP, FUSE_INIT_EXT, MAPS, REQUEST, FUSE_INIT_EXT, 0, REPLY, false},
	/* The reply has no place for it. */
	{FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST, 0, OTHER, REPLY, false},
	{FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST, FUSE_INIT_EXT, OTHER, REPLY - 1, false},
	{FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST, FUSE_INIT_EXT, OTHER, sizeof(struct fuse_out_header),
	 false},
};

START_TEST(maps)
{
	const unsigned before = unit_descriptors();

	for (size_t i = 0; i < 2 * sizeof exchanges / sizeof *exchanges; i++) {
		struct h5_mount m = {.vfs = vfs, .tree = i & 1 ? tree : NULL, .session = session};
		const size_t n = exchanges[i / 2].reply_size,
			     at = sizeof(struct fuse_out_header) + offsetof(struct fuse_init_out, flags2);
		uint8_t got[512];
		uint32_t flags2;

		begin();
		set_request(exchanges[i / 2].opcode, exchanges[i / 2].flags, exchanges[i / 2].flags2,
			    exchanges[i / 2].size);
		set_reply(exchanges[i / 2].reply_flags, exchanges[i / 2].reply_flags2, n);
		kernel.interrupted = 2;
		ck_assert_int_eq(h5_negotiate_start(&m), 0);
		ck_assert(kernel.processed == 1 && !kernel.exited);
		ck_assert(kernel.direct == (!exchanges[i / 2].direct ? NULL
					    : i & 1		     ? (void *)tree
								     : (void *)vfs));
		ck_assert_int_eq(recv(kernel.ours, got, sizeof got, MSG_DONTWAIT), (ssize_t)n);
		if (exchanges[i / 2].direct) {
			memcpy(&flags2, got + at, sizeof flags2);
			ck_assert_uint_eq(flags2, exchanges[i / 2].reply_flags2 | MAPS);
			memcpy(got + at, &exchanges[i / 2].reply_flags2, sizeof flags2);
		}
		ck_assert(!memcmp(got, kernel.reply, n));
		end();
		ck_assert_uint_eq(unit_descriptors(), before);
	}
}
END_TEST

START_TEST(no_request)
{
	static const struct {
		int result, interrupted;
	} cases[] = {{0, 0}, {-ENODEV, 0}, {-EIO, 0}, {0, 1}};
	struct h5_mount m = {.vfs = vfs, .session = session};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		kernel.result = cases[i].result;
		/* A signal ends the mount before there is one. */
		kernel.interrupted = 1000 * cases[i].interrupted;
		kernel.ends = true;
		ck_assert_int_eq(h5_negotiate_start(&m), 0);
		ck_assert_uint_eq(kernel.processed, 0);
		ck_assert_int_eq(kernel.interrupted, 999 * cases[i].interrupted);
		end();
	}
}
END_TEST

START_TEST(replies_that_do_not_come_through)
{
	struct h5_mount m = {.vfs = vfs, .session = session};
	struct rlimit limit, none;
	char c;

	/* There is none: the kernel gets none. */
	begin();
	set_request(FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST);
	ck_assert_int_eq(h5_negotiate_start(&m), 0);
	ck_assert(kernel.processed == 1 && !kernel.exited);
	ck_assert(recv(kernel.ours, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	/* The kernel does not take it. */
	set_reply(FUSE_INIT_EXT, 0, REPLY);
	shutdown(kernel.theirs, SHUT_WR);
	ck_assert_int_eq(h5_negotiate_start(&m), 0);
	ck_assert(kernel.exited);
	end();
	begin();
	set_request(FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){0, limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	ck_assert_int_eq(h5_negotiate_start(&m), -EMFILE);
	/* For one more. */
	none.rlim_cur = (rlim_t)kernel.theirs + 2;
	setrlimit(RLIMIT_NOFILE, &none);
	ck_assert_int_eq(h5_negotiate_start(&m), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &limit);
	ck_assert_uint_eq(kernel.processed, 0);
	end();
}
END_TEST

/* Without its descriptor for the kernel, the daemon does not go on. */
START_TEST(descriptors_that_are_lost)
{
	struct h5_mount m = {.vfs = vfs, .session = session};

	for (unsigned i = 1; i <= 3; i++) {
		pid_t child;
		int status;

		begin();
		set_request(FUSE_INIT, FUSE_INIT_EXT, MAPS, REQUEST);
		set_reply(FUSE_INIT_EXT, 0, REPLY);
		child = fork();
		if (!child) {
			setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
			signal(SIGABRT, SIG_DFL);
			dup3_fails = i;
			_exit(h5_negotiate_start(&m) ? 1 : 0);
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status & 0x7f, i < 3 ? SIGABRT : 0);
		ck_assert(i < 3 || status == 0);
		end();
	}
}
END_TEST

#endif

static void set_up(void)
{
	signal(SIGPIPE, SIG_IGN);
}

#ifdef FUSE_CAP_DIRECT_IO_ALLOW_MMAP
UNIT_MAIN_AROUND("negotiate", set_up, NULL, features, maps)
#else
UNIT_MAIN_AROUND("negotiate", set_up, NULL, features, maps, no_request, replies_that_do_not_come_through,
		 descriptors_that_are_lost)
#endif
