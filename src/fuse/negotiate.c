#include "fuse/negotiate.h"

#include "fuse/io_uring.h"
#include "tree/tree.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_maps_direct(struct h5_mount *m)
{
	if (m->tree)
		h5_tree_set_maps_direct(m->tree);
	else
		h5_vfs_set_maps_direct(m->vfs);
}

/* What both kinds of mounts ask for. */
static void choose(struct h5_mount *m, struct fuse_conn_info *connection)
{
	/* No write-back cache: the daemon decides where an append goes, and must see each write at once. */
	connection->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
	/* AUTO_INVAL_DATA: a changed time tells the kernel that its pages of a file are stale.
	 * ATOMIC_O_TRUNC: O_TRUNC comes with open, so that its failure fails that open. */
	connection->want |= connection->capable & (FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ATOMIC_O_TRUNC);
	h5_io_uring_choose(m, connection);
}

#ifdef FUSE_CAP_DIRECT_IO_ALLOW_MMAP

int h5_negotiate_start(struct h5_mount *m)
{
	(void)m;
	return 0;
}

void h5_negotiate(struct h5_mount *m, struct fuse_conn_info *connection)
{
	choose(m, connection);
	if (!m->writable || !(connection->capable & FUSE_CAP_DIRECT_IO_ALLOW_MMAP))
		return;
	connection->want |= FUSE_CAP_DIRECT_IO_ALLOW_MMAP;
	set_maps_direct(m);
}

#else

/* FUSE_DIRECT_IO_ALLOW_MMAP of the kernel's interface 7.39, which older headers lack. */
#define ALLOW_MMAP (UINT64_C(1) << 36)

enum { REPLY_MOST = 256 }; /* bytes of the longest reply to FUSE_INIT */

/* True: the request is FUSE_INIT of a kernel that offers it. */
static bool offers(const void *request, size_t n)
{
	struct fuse_in_header header;
	struct fuse_init_in init;

	if (n < sizeof header + offsetof(struct fuse_init_in, flags2) + sizeof init.flags2)
		return false;
	memcpy(&header, request, sizeof header);
	memcpy(&init, (const char *)request + sizeof header,
	       offsetof(struct fuse_init_in, flags2) + sizeof init.flags2);
	return header.opcode == FUSE_INIT && init.flags & FUSE_INIT_EXT &&
	       init.flags2 & (uint32_t)(ALLOW_MMAP >> 32);
}

/* Adds it to the reply. False: the reply is an error, or libfuse does not know `flags2`. */
static bool accept_offer(uint8_t *reply, size_t n)
{
	struct fuse_init_out init;

	if (n < sizeof(struct fuse_out_header) + sizeof init)
		return false;
	memcpy(&init, reply + sizeof(struct fuse_out_header), sizeof init);
	if (!(init.flags & FUSE_INIT_EXT))
		return false;
	init.flags2 |= (uint32_t)(ALLOW_MMAP >> 32);
	memcpy(reply + sizeof(struct fuse_out_header), &init, sizeof init);
	return true;
}

/* Passes the reply on from the socket to the kernel. */
static void forward_reply(struct h5_mount *m, int from, int to, bool offered)
{
	uint8_t reply[REPLY_MOST];
	ssize_t n = read(from, reply, sizeof reply);

	if (n <= 0)
		return;
	if (offered && accept_offer(reply, (size_t)n))
		set_maps_direct(m);
	if (write(to, reply, (size_t)n) != n)
		fuse_session_exit(m->session);
}

/* Has libfuse answer the request into a socket, which takes the place of the kernel's descriptor meanwhile.
 */
static int answer(struct h5_mount *m, const struct fuse_buf *request, int kernel)
{
	int fd = fuse_session_fd(m->session), ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	if (dup3(ends[0], fd, O_CLOEXEC) < 0)
		abort(); /* both are open */
	close(ends[0]);
	fuse_session_process_buf(m->session, request);
	if (dup3(kernel, fd, O_CLOEXEC) < 0)
		abort();
	/* The socket's other end is closed by now, so this does not wait, even if there was no reply. */
	forward_reply(m, ends[1], fd, offers(request->mem, request->size));
	close(ends[1]);
	return 0;
}

int h5_negotiate_start(struct h5_mount *m)
{
	struct fuse_buf request = {0};
	int n, kernel, rc = 0;

	do
		n = fuse_session_receive_buf(m->session, &request);
	while (n == -EINTR && !fuse_session_exited(m->session));
	if (n > 0) {
		/* dup(), since ThreadSanitizer loses sight of what fcntl() duplicates. */
		kernel = dup(fuse_session_fd(m->session));
		rc = kernel < 0 ? -errno : answer(m, &request, kernel);
		if (kernel >= 0)
			close(kernel);
	}
	free(request.mem);
	return rc;
}

void h5_negotiate(struct h5_mount *m, struct fuse_conn_info *connection)
{
	choose(m, connection);
}

#endif
