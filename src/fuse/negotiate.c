#include "fuse/negotiate.h"

#include "vfs/vfs.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef FUSE_CAP_DIRECT_IO_ALLOW_MMAP

int h5_negotiate_start(struct h5_mount *m)
{
	(void)m;
	return 0;
}

void h5_negotiate(struct h5_mount *m, struct fuse_conn_info *connection)
{
	if (!m->writable || !(connection->capable & FUSE_CAP_DIRECT_IO_ALLOW_MMAP))
		return;
	connection->want |= FUSE_CAP_DIRECT_IO_ALLOW_MMAP;
	h5_vfs_set_maps_direct(m->vfs);
}

#else

/* FUSE_DIRECT_IO_ALLOW_MMAP of the kernel's interface 7.39, which older headers lack. */
#define ALLOW_MMAP (UINT64_C(1) << 36)

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
static bool accept_offer(const struct iovec *iov, int count)
{
	struct fuse_init_out *init;

	if (count != 2 || iov[1].iov_len < sizeof *init)
		return false;
	init = iov[1].iov_base;
	if (!(init->flags & FUSE_INIT_EXT))
		return false;
	init->flags2 |= (uint32_t)(ALLOW_MMAP >> 32);
	return true;
}

static ssize_t read_request(int fd, void *buf, size_t n, void *arg)
{
	struct h5_mount *m = arg;
	ssize_t got = read(fd, buf, n);

	if (got > 0 && m->negotiation == H5_NEGOTIATION_AWAITED)
		m->negotiation = offers(buf, (size_t)got) ? H5_NEGOTIATION_OFFERED : H5_NEGOTIATION_DONE;
	return got;
}

static ssize_t write_reply(int fd, struct iovec *iov, int count, void *arg)
{
	struct h5_mount *m = arg;

	if (m->negotiation == H5_NEGOTIATION_OFFERED) {
		if (accept_offer(iov, count))
			h5_vfs_set_maps_direct(m->vfs);
		m->negotiation = H5_NEGOTIATION_DONE;
	}
	return writev(fd, iov, count);
}

int h5_negotiate_start(struct h5_mount *m)
{
	static const struct fuse_custom_io io = {.read = read_request, .writev = write_reply};

	/* libfuse copies `io`, and keeps its descriptor. */
	return fuse_session_custom_io(m->session, &io, fuse_session_fd(m->session)) ? -ENOMEM : 0;
}

void h5_negotiate(struct h5_mount *m, struct fuse_conn_info *connection)
{
	(void)m;
	(void)connection;
}

#endif
