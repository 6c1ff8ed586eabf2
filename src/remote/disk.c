/* The disk cache, as transfers use it: bytes that are there are not fetched, and those that are fetched go
 * there. What goes wrong with it ends its use, and never a read. */
#include "base/checked.h"
#include "base/error.h"
#include "remote/private.h"
#include "remote/url.h"

#include <stdlib.h>
#include <string.h>

enum {
	PIECE = H5_DISK_WRITE * H5_DISK_BLOCK, /* bytes that are written at once */
	READ = 16,	 /* blocks that are read at once: a processor's cache has room */
	OVERHEAD = 4096, /* bytes of the map that a piece may take */
	BLOCKS_MAX = H5_REMOTE_PART / H5_DISK_BLOCK,
};

_Static_assert((int)H5_DISK_BLOCK == (int)H5_REMOTE_CELL, "requests begin at blocks");
_Static_assert((int)PIECE == (int)H5_REMOTE_FIRST,
	       "what opening a file brings is kept until the answer is understood");

void h5_disk_begin(struct h5_fetcher *f, int folder)
{
	f->disk = (struct h5_disk_folder){
		.there = folder >= 0, .fd = folder, .budget = f->options.disk_cache_size};
}

/* ---- what is here ---- */

/* Copies blocks to the cells of the request, the first of which begins at `at`. */
static void copy(struct h5_transfer *t, uint64_t at, const uint8_t *data, size_t n)
{
	for (size_t done = 0; done < n; done += H5_REMOTE_CELL)
		memcpy(t->fetcher->end.memory +
			       (size_t)t->cells[(at + done) / H5_REMOTE_CELL] * H5_REMOTE_CELL,
		       data + done, (size_t)h5_min(H5_REMOTE_CELL, n - done));
}

/* Takes the blocks, all of which are here: those at `at` of the request on. They are verified outside of the
 * memory that the daemon could change. *taken: their bytes, as far as they could be read. */
static int take(struct h5_transfer *t, const struct h5_disk_file *file, uint64_t at, uint32_t count,
		const uint64_t *sums, uint64_t *taken)
{
	uint8_t **scratch = &t->fetcher->scratch;
	uint64_t first = (t->request.offset + at) / H5_DISK_BLOCK;
	int rc = 0;

	*taken = 0;
	if (!*scratch && !(*scratch = malloc(READ * H5_DISK_BLOCK)))
		return -ENOMEM;
	for (uint32_t done = 0, n; done < count && !rc; done += n) {
		size_t bytes;

		n = (uint32_t)h5_min(READ, count - done);
		rc = h5_disk_file_read(file, first + done, n, sums + done, *scratch);
		if (rc)
			break;
		bytes = (size_t)(n - 1) * H5_DISK_BLOCK +
			h5_disk_block_size(file->header.size, first + done + n - 1);
		copy(t, at + *taken, *scratch, bytes);
		*taken += bytes;
	}
	return rc;
}

/* Blocks of the request that a file of that size has, and that the request wants all of. A request to read is
 * within the file; one to open it is at its begin. */
static uint32_t blocks_of(const struct h5_transfer *t, uint64_t size)
{
	uint64_t n = h5_min(t->request.n, size);
	bool ends = t->request.offset + n == size;

	return (uint32_t)(n / H5_DISK_BLOCK + (ends && n % H5_DISK_BLOCK));
}

/* Takes what is here at the begin of the request, then at its end. */
static int fill(struct h5_transfer *t)
{
	const struct h5_disk_file *file = t->source->disk;
	uint64_t sums[BLOCKS_MAX], taken;
	uint32_t count = blocks_of(t, file->header.size), begin = 0, end = count;
	int rc = count ? h5_disk_file_look(file, t->request.offset / H5_DISK_BLOCK, count, sums) : 0;

	if (rc)
		return rc;
	while (begin < count && sums[begin])
		begin++;
	while (end > begin && sums[end - 1])
		end--;
	rc = take(t, file, 0, begin, sums, &t->got);
	if (rc || end == count || (uint64_t)count * H5_DISK_BLOCK < t->request.n)
		return rc;
	rc = take(t, file, (uint64_t)end * H5_DISK_BLOCK, count - end, sums + end, &taken);
	if (!rc)
		t->until = (uint64_t)end * H5_DISK_BLOCK;
	return rc;
}

/* True: the file is not what it was. */
static bool is_damage(int rc)
{
	return rc == -EUCLEAN || rc == -EIO;
}

void h5_disk_fill(struct h5_transfer *t)
{
	struct h5_disk_folder *folder = &t->fetcher->disk;
	struct h5_disk_file **file = &t->source->disk;
	int rc = *file ? fill(t) : 0;

	/* A new one takes its place. */
	if (is_damage(rc)) {
		struct h5_disk_header header = (*file)->header;

		h5_disk_discard(folder, *file, h5_error_last()->text);
		*file = h5_disk_open(folder, &header);
	}
	t->from_disk = t->got + (t->request.n - t->until);
}

/* ---- which version is here ---- */

/* Of where the file is, as far as redirects are known. False: no memory. */
static bool hash_url(const struct h5_source *source, uint8_t hash[H5_SHA256])
{
	char *identity = h5_url_identity(source->target ? source->target : source->url);

	if (identity)
		h5_sha256(identity, strlen(identity), hash);
	free(identity);
	return identity;
}

/* True: the file has all bytes of the request, which are in the cells now. */
static bool has_all(struct h5_transfer *t, const struct h5_disk_file *file, int *rc)
{
	uint64_t sums[BLOCKS_MAX];
	uint32_t count = blocks_of(t, file->header.size);

	*rc = count ? h5_disk_file_look(file, 0, count, sums) : -ENOENT;
	for (uint32_t i = 0; i < count && !*rc; i++)
		if (!sums[i])
			*rc = -ENOENT;
	if (!*rc)
		*rc = take(t, file, 0, count, sums, &t->from_disk);
	return !*rc;
}

void h5_disk_move(struct h5_fetcher *f, struct h5_source *source)
{
	uint8_t url[H5_SHA256];

	if (!source->disk || (hash_url(source, url) && !memcmp(url, source->disk->header.url, H5_SHA256)))
		return;
	h5_disk_close(&f->disk, source->disk);
	source->disk = NULL;
}

void h5_disk_offer(struct h5_transfer *t)
{
	struct h5_disk_folder *folder = &t->fetcher->disk;
	struct h5_disk_file *file;
	uint8_t url[H5_SHA256];
	int rc;

	t->unoffered |= t->offered && t->response.status == 304; /* to no avail */
	h5_disk_close(folder, t->offered);
	t->offered = NULL;
	t->kept_size = 0;
	file = t->unoffered || !folder->there || !hash_url(t->source, url) ? NULL : h5_disk_find(folder, url);
	if (!file)
		return;
	if (has_all(t, file, &rc))
		t->offered = file;
	else if (is_damage(rc))
		h5_disk_discard(folder, file, h5_error_last()->text);
	else
		h5_disk_close(folder, file);
}

bool h5_disk_is_confirmed(const struct h5_transfer *t)
{
	const struct h5_response *r = &t->response;

	return r->status == 304 && t->offered && (!*r->tag || !strcmp(r->tag, t->offered->header.tag));
}

/* ---- what comes ---- */

/* Writes the blocks that are complete. */
static void write_kept(struct h5_transfer *t)
{
	const struct h5_disk_file *file = t->source->disk;
	struct h5_disk_folder *folder = &t->fetcher->disk;
	uint64_t first = t->request.offset + t->kept_first;
	uint32_t count = (uint32_t)(t->kept_size / H5_DISK_BLOCK);
	int rc = 0;

	if (file && t->kept_size % H5_DISK_BLOCK && first + t->kept_size == file->header.size)
		count++;
	if (file && count && h5_disk_has_room(folder, t->kept_size + OVERHEAD))
		rc = h5_disk_file_write(file, first / H5_DISK_BLOCK, count, t->kept);
	if (rc)
		h5_disk_stop(folder, rc);
	t->kept_first += t->kept_size;
	t->kept_size = 0;
}

/* The tag is that of the file which was opened; of one that is being opened, it is not known yet. */
static bool may_be_kept(const struct h5_transfer *t)
{
	if (!t->fetcher->disk.there || t->fetcher->disk.stopped)
		return false;
	if (t->request.what == H5_REMOTE_OPEN)
		return true;
	return t->source->disk && !strcmp(t->response.tag, t->source->tag);
}

void h5_disk_keep(struct h5_transfer *t, const void *data, size_t n)
{
	const uint8_t *p = data;

	if (!may_be_kept(t))
		return;
	/* Blocks are written from their begin on, and requests begin at blocks. */
	if (!t->kept && t->got % H5_DISK_BLOCK == 0) {
		t->kept = malloc(PIECE);
		t->kept_first = t->got;
	}
	/* Bytes between may have been left out. */
	if (!t->kept || t->kept_first + t->kept_size != t->got)
		return;
	while (n && t->kept_size < PIECE) {
		size_t part = (size_t)h5_min(n, PIECE - t->kept_size);

		memcpy(t->kept + t->kept_size, p, part);
		t->kept_size += part;
		p += part;
		n -= part;
		if (t->kept_size == PIECE && t->request.what == H5_REMOTE_READ)
			write_kept(t);
	}
}

void h5_disk_learn(struct h5_transfer *t)
{
	struct h5_source *source = t->source;
	struct h5_disk_header header = {.size = source->size, .mtime = source->mtime};

	if (t->request.what != H5_REMOTE_OPEN)
		return;
	if (h5_disk_is_confirmed(t)) {
		source->disk = t->offered;
		t->offered = NULL;
		h5_disk_use(source->disk);
		return;
	}
	t->from_disk = 0;
	if (!t->fetcher->disk.there || source->whole || !source->size || t->response.private ||
	    !h5_response_is_strong(source->tag) || !hash_url(source, header.url))
		return;
	memcpy(header.tag, source->tag, sizeof header.tag);
	source->disk = h5_disk_open(&t->fetcher->disk, &header);
	write_kept(t);
}

void h5_disk_end(struct h5_transfer *t)
{
	if (t->request.what == H5_REMOTE_READ)
		write_kept(t);
	free(t->kept);
	h5_disk_close(&t->fetcher->disk, t->offered);
}
