#include "change/journal.h"

#include "base/error.h"
#include "change/journal_private.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROWTH = 1 << 16 }; /* bytes by which a journal grows, so that most records need no new space */

struct h5_journal {
	struct h5_io *io;
	int dirfd;  /* owned */
	char *name; /* in it; owned */
	/* Of the symbolic link that leads to it: `beside`, `pointer` and `path` are owned. */
	struct h5_journal_place link;
	struct h5_journal_header header;
	uint64_t sequence; /* of the last record */
	size_t size;	   /* bytes of the file */
};

/* A journal decides what is written to the HDF5 file, so only those who may write that may own it. */
static int check_trust(const struct h5_journal_place *place, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return h5_fail(-errno, H5_UNDEF, "journal: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return h5_fail(-EPERM, H5_UNDEF, "journal: %s is no regular file", place->name);
	if (st.st_nlink != 1)
		return h5_fail(-EPERM, H5_UNDEF, "journal: %s has other names", place->name);
	if (st.st_uid != place->owner && st.st_uid != geteuid())
		return h5_fail(-EPERM, H5_UNDEF, "journal: %s belongs to somebody else", place->name);
	return 0;
}

/* Whoever may read the file may read its journal; if root makes it, the owner of the file gets it. */
static int set_rights(const struct h5_journal_place *place, int fd)
{
	if (geteuid() == 0 && place->owner && fchown(fd, (uid_t)place->owner, (gid_t)-1))
		return h5_fail(-errno, H5_UNDEF, "journal: changing its owner: %s", strerror(errno));
	if (fchmod(fd, S_IRUSR | S_IWUSR | (place->mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))))
		return h5_fail(-errno, H5_UNDEF, "journal: changing its mode: %s", strerror(errno));
	return 0;
}

/* A symbolic link in its place is not followed, but tells the user where to look. */
static int refuse_link(const struct h5_journal_place *place)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(place->dirfd, place->name, target, sizeof target - 1);
	const char *folder = ".";
	char *slash;

	if (n < 0)
		return h5_fail(-ELOOP, H5_UNDEF, "journal: %s: %s", place->name, strerror(ELOOP));
	target[n] = 0;
	slash = strrchr(target, '/');
	if (slash) {
		*slash = 0;
		folder = *target ? target : "/";
	}
	return h5_fail(
		-ELOOP, H5_UNDEF,
		"journal: %s is a symbolic link: remove it if the journal there is no more, else mount "
		"with -o journal=%s",
		place->name, folder);
}

int h5_journal_open(const struct h5_journal_place *place, bool create, bool writable, struct h5_io **io)
{
	int flags = (writable ? O_RDWR : O_RDONLY) | (create ? O_CREAT | O_EXCL : 0);
	int fd = openat(place->dirfd, place->name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			S_IRUSR | S_IWUSR);
	int rc;

	if (fd < 0)
		return errno == ELOOP
			       ? refuse_link(place)
			       : h5_fail(-errno, H5_UNDEF, "journal: %s: %s", place->name, strerror(errno));
	rc = create ? set_rights(place, fd) : check_trust(place, fd);
	if (rc)
		close(fd);
	else
		rc = h5_fail_in(h5_io_open_fd(fd, H5_LOCK_BEST_EFFORT, writable, io), "journal");
	if (rc && create)
		unlinkat(place->dirfd, place->name, 0);
	if (!rc && place->wrap)
		*io = place->wrap(place->wrap_arg, *io);
	return rc;
}

int h5_journal_peek(const struct h5_journal_place *place, const char *name, struct h5_journal_header *header)
{
	int fd = openat(place->dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;
	uint8_t data[H5_JOURNAL_HEADER];
	struct h5_io *io;
	size_t got;

	if (fd < 0)
		return -errno;
	rc = check_trust(place, fd);
	if (rc) {
		close(fd);
		return rc;
	}
	rc = h5_io_open_fd(fd, H5_LOCK_NONE, false, &io);
	if (rc)
		return rc;
	rc = h5_io_read_some(io, 0, data, sizeof data, &got);
	h5_io_close(io);
	return rc ? rc : h5_journal_header_decode(data, got, header);
}

int h5_journal_remove(const struct h5_journal_place *place)
{
	h5_journal_unpoint(place);
	if (unlinkat(place->dirfd, place->name, 0))
		return h5_fail(-errno, H5_UNDEF, "journal: removing %s: %s", place->name, strerror(errno));
	return h5_journal_sync_directory(place->dirfd);
}

static void journal_free(struct h5_journal *journal)
{
	h5_io_close(journal->io);
	if (journal->dirfd >= 0)
		close(journal->dirfd);
	free(journal->name);
	if (journal->link.pointer)
		close(journal->link.beside);
	free((char *)journal->link.pointer);
	free((char *)journal->link.path);
	free(journal);
}

/* Copies what is borrowed. */
static int keep_link(struct h5_journal *journal, const struct h5_journal_place *place)
{
	struct h5_journal_place *link = &journal->link;

	if (!place->pointer)
		return 0;
	link->beside = fcntl(place->beside, F_DUPFD_CLOEXEC, 0);
	if (link->beside < 0)
		return h5_fail(-errno, H5_UNDEF, "journal: %s", strerror(errno));
	link->pointer = strdup(place->pointer);
	link->path = strdup(place->path);
	if (link->pointer && link->path)
		return 0;
	if (!link->pointer)
		close(link->beside);
	return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
}

/* Writes the header, and room for records. */
static int write_header(struct h5_journal *journal)
{
	uint8_t *data = calloc(1, GROWTH);
	int rc;

	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	h5_journal_header_encode(&journal->header, data);
	rc = h5_io_write(journal->io, 0, data, GROWTH);
	free(data);
	if (!rc)
		rc = h5_io_sync(journal->io);
	if (!rc)
		rc = h5_journal_sync_directory(journal->dirfd);
	journal->size = GROWTH;
	return h5_fail_in(rc, "journal");
}

int h5_journal_create(const struct h5_journal_place *place, bool swmr, struct h5_journal **out)
{
	struct h5_journal *journal = calloc(1, sizeof *journal);
	int rc = 0;

	if (!journal)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	journal->header.swmr = swmr;
	journal->header.file = place->file;
	journal->dirfd = fcntl(place->dirfd, F_DUPFD_CLOEXEC, 0);
	if (journal->dirfd < 0 ||
	    getrandom(journal->header.id, sizeof journal->header.id, 0) != sizeof journal->header.id)
		rc = h5_fail(-errno, H5_UNDEF, "journal: %s", strerror(errno));
	else if (!(journal->name = strdup(place->name)))
		rc = h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	else if (!(rc = keep_link(journal, place)))
		rc = h5_journal_open(place, true, true, &journal->io);
	if (!rc && (rc = write_header(journal)))
		unlinkat(place->dirfd, place->name, 0);
	if (!rc)
		h5_journal_point(place);
	if (rc) {
		journal_free(journal);
		return rc;
	}
	*out = journal;
	return 0;
}

int h5_journal_write(struct h5_journal *journal, struct h5_journal_record *record)
{
	uint8_t *data;
	size_t size, end;
	int rc;

	memcpy(record->id, journal->header.id, sizeof record->id);
	record->sequence = ++journal->sequence;
	rc = h5_journal_record_size(record, &size);
	if (rc)
		return rc;
	end = H5_JOURNAL_HEADER + size;
	if (end > journal->size)
		end = (end + GROWTH - 1) / GROWTH * GROWTH;
	data = calloc(1, end - H5_JOURNAL_HEADER);
	if (!data)
		return h5_fail(-ENOMEM, H5_UNDEF, "journal: out of memory");
	rc = h5_journal_record_encode(record, data, size);
	if (!rc)
		rc = h5_io_write(journal->io, H5_JOURNAL_HEADER, data, end - H5_JOURNAL_HEADER);
	if (!rc) {
		journal->size = end > journal->size ? end : journal->size;
		rc = h5_io_sync(journal->io);
	}
	free(data);
	/* This commit fails, so it must not be replayed. */
	if (rc)
		(void)h5_journal_clear(journal);
	return h5_fail_in(rc, "journal");
}

int h5_journal_clear(struct h5_journal *journal)
{
	static const uint8_t zeros[H5_JOURNAL_SECTOR];
	int rc = h5_io_write(journal->io, H5_JOURNAL_HEADER, zeros, sizeof zeros);

	return rc ? rc : h5_io_sync(journal->io);
}

void h5_journal_close(struct h5_journal *journal, bool done)
{
	static const uint8_t zeros[H5_JOURNAL_HEADER + H5_JOURNAL_SECTOR];

	if (!journal)
		return;
	if (done) {
		/* It means nothing then, even if it has another name or comes back after a crash. */
		if (!h5_io_write(journal->io, 0, zeros, sizeof zeros))
			(void)h5_io_sync(journal->io);
		h5_journal_unpoint(&journal->link);
		unlinkat(journal->dirfd, journal->name, 0);
		(void)h5_journal_sync_directory(journal->dirfd);
	}
	journal_free(journal);
}
