#include "tree/bucket_listing.h"

#include "base/array.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/lower_bound.h"
#include "base/thread.h"
#include "remote/listing.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <utlist.h>

enum {
	FOLDERS = 8,	      /* listings that are kept */
	EMPTY_PAGES = 1000,   /* in a row, at most: a listing shall end */
	NAMES_MAX = 10000000, /* of a folder */
};

struct h5_bucket_folder {
	char *below; /* owned */
	struct h5_bucket_entry *entries;
	size_t count, capacity;
	size_t pages;
	bool is_used; /* there is such a folder */
	time_t until; /* CLOCK_MONOTONIC: it is believed up to then */
	/* bucket->lock: */
	unsigned users;
	size_t served; /* names that were looked up in it */
	bool is_kept;
	struct h5_bucket_folder *prev, *next; /* in bucket->folders */
};

struct h5_bucket {
	struct h5_remote *remote;	  /* borrowed */
	const char *prefix;		  /* of all keys; borrowed from the link's URL */
	pthread_mutex_t lock;		  /* guards the rest; not held while something is listed */
	struct h5_bucket_folder *folders; /* the newest first */
	unsigned count;
};

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec;
}

static void folder_free(struct h5_bucket_folder *folder)
{
	for (size_t i = 0; i < folder->count; i++)
		free(folder->entries[i].name);
	free(folder->entries);
	free(folder->below);
	free(folder);
}

/* ---- pages ---- */

/* Gets a page of the keys that begin with `begin`: a folder (`below`), and maybe the begin of a name in it.
 * Frees page->next, the token of this page, and sets it to the token of the page after it. */
static int get_page(const struct h5_bucket *b, const char *below, const char *begin,
		    struct h5_listing_page *page)
{
	char *prefix = NULL, *text, *token = page->next;
	size_t n;
	int rc = h5_remote_list(b->remote, begin, token, &text, &n);

	free(token);
	page->next = NULL;
	if (rc)
		return rc;
	if (asprintf(&prefix, "%s%s", b->prefix, below) < 0)
		prefix = NULL;
	rc = prefix ? h5_listing_read(text, n, prefix, page) : -ENOMEM;
	free(prefix);
	free(text);
	return rc == -EINVAL ? h5_fail(-EIO, H5_UNDEF, "the answer of the store is no listing") : rc;
}

/* Without its name. */
static struct h5_bucket_entry entry_of(const struct h5_listing_item *item)
{
	return (struct h5_bucket_entry){.is_folder = item->is_folder,
					.size = item->size,
					.modified = item->modified,
					.version = item->version};
}

static bool add_entry(void *arg, const struct h5_listing_item *item)
{
	struct h5_bucket_folder *folder = arg;
	struct h5_bucket_entry entry = entry_of(item);

	if (h5_array_reserve(&folder->entries, &folder->capacity, folder->count + 1, NULL))
		return false;
	entry.name = strdup(item->name);
	if (entry.name)
		folder->entries[folder->count++] = entry;
	return entry.name;
}

/* By name, and a folder before an object of the same name. */
static int compare(const void *a, const void *b)
{
	const struct h5_bucket_entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : y->is_folder - x->is_folder;
}

static void sort(struct h5_bucket_folder *folder)
{
	size_t kept = 0;

	if (folder->count)
		qsort(folder->entries, folder->count, sizeof *folder->entries, compare);
	for (size_t i = 0; i < folder->count; i++) {
		if (kept && !strcmp(folder->entries[kept - 1].name, folder->entries[i].name))
			free(folder->entries[i].name);
		else
			folder->entries[kept++] = folder->entries[i];
	}
	folder->count = kept;
}

static int read_pages(const struct h5_bucket *b, struct h5_bucket_folder *folder)
{
	struct h5_listing_page page = {.take = add_entry, .arg = folder};
	unsigned empty = 0;
	int rc;

	do {
		size_t before = folder->count;

		rc = get_page(b, folder->below, folder->below, &page);
		folder->pages++;
		folder->is_used |= !rc && page.is_used;
		empty = folder->count > before ? 0 : empty + 1;
		if (!rc && (empty > EMPTY_PAGES || folder->count > NAMES_MAX))
			rc = h5_fail(-EIO, H5_UNDEF, "the store lists without end");
		if (!rc)
			rc = h5_interrupt_check();
	} while (!rc && page.next);
	free(page.next);
	return rc;
}

static int list_anew(const struct h5_bucket *b, const char *below, struct h5_bucket_folder **out)
{
	struct h5_bucket_folder *folder = calloc(1, sizeof *folder);
	time_t begin = now(), end;
	int rc;

	if (!folder)
		return -ENOMEM;
	folder->below = strdup(below);
	rc = folder->below ? read_pages(b, folder) : -ENOMEM;
	if (!rc && !folder->is_used && (*below || *b->prefix))
		rc = h5_fail(-ENOENT, H5_UNDEF, "no object lies below it");
	if (rc) {
		folder_free(folder);
		return rc;
	}
	sort(folder);
	/* A listing that takes long would be too old to be used when it has come. */
	end = now();
	folder->until = end + (end - begin > H5_BUCKET_KEEP ? end - begin : H5_BUCKET_KEEP);
	*out = folder;
	return 0;
}

/* ---- what is kept; with the lock ---- */

static void leave_out(struct h5_bucket *b, struct h5_bucket_folder *folder)
{
	DL_DELETE(b->folders, folder);
	b->count--;
	folder->is_kept = false;
	if (!folder->users)
		folder_free(folder);
}

static struct h5_bucket_folder *find_kept(const struct h5_bucket *b, const char *below)
{
	struct h5_bucket_folder *folder;

	DL_FOREACH(b->folders, folder)
	if (!strcmp(folder->below, below))
		return folder;
	return NULL;
}

/* It takes the place of an older one, and the caller uses it. */
static void keep(struct h5_bucket *b, struct h5_bucket_folder *folder)
{
	struct h5_bucket_folder *old = find_kept(b, folder->below);

	if (old)
		leave_out(b, old);
	else if (b->count == FOLDERS)
		leave_out(b, b->folders->prev); /* the last one */
	DL_PREPEND(b->folders, folder);
	b->count++;
	folder->is_kept = true;
	folder->users++;
}

static bool is_fresh(const struct h5_bucket_folder *folder)
{
	return now() < folder->until;
}

/* A listing that may be believed, which the caller uses from now on; NULL: there is none. */
static struct h5_bucket_folder *use_fresh(struct h5_bucket *b, const char *below)
{
	struct h5_bucket_folder *folder = find_kept(b, below);

	if (!folder || !is_fresh(folder))
		return NULL;
	folder->users++;
	return folder;
}

/* ---- */

int h5_bucket_list(struct h5_bucket *b, const char *below, struct h5_bucket_folder **out)
{
	struct h5_bucket_folder *folder;
	int rc;

	pthread_mutex_lock(&b->lock);
	folder = use_fresh(b, below);
	pthread_mutex_unlock(&b->lock);
	if (!folder) {
		rc = list_anew(b, below, &folder);
		if (rc)
			return rc;
		pthread_mutex_lock(&b->lock);
		keep(b, folder);
		pthread_mutex_unlock(&b->lock);
	}
	*out = folder;
	return 0;
}

const struct h5_bucket_entry *h5_bucket_entries(const struct h5_bucket_folder *folder, size_t *count)
{
	*count = folder->count;
	return folder->entries;
}

void h5_bucket_put(struct h5_bucket *b, struct h5_bucket_folder *folder)
{
	pthread_mutex_lock(&b->lock);
	assert(folder->users);
	if (!--folder->users && !folder->is_kept)
		folder_free(folder);
	pthread_mutex_unlock(&b->lock);
}

/* ---- one entry ---- */

/* An entry that is looked for. */
struct wanted {
	const char *name;
	bool found;
	struct h5_bucket_entry entry;
};

static bool match(void *arg, const struct h5_listing_item *item)
{
	struct wanted *w = arg;

	if (strcmp(item->name, w->name) != 0 || (w->found && w->entry.is_folder))
		return true;
	w->found = true;
	w->entry = entry_of(item);
	return true;
}

static bool ignore(void *arg, const struct h5_listing_item *item)
{
	(void)arg;
	(void)item;
	return true;
}

/* *there: keys go on behind `begin`, which ends with a slash. */
static int is_folder_there(const struct h5_bucket *b, const char *begin, bool *there)
{
	struct h5_listing_page page = {.take = ignore};
	int rc = get_page(b, begin, begin, &page);

	free(page.next);
	*there = !rc && page.is_used;
	return rc;
}

/* The first page of keys that begin with the name has the object, if there is one, and nearly always the
 * folder as well: only many other names may come before that. */
static int ask_for(const struct h5_bucket *b, const char *below, const char *name,
		   struct h5_bucket_entry *entry)
{
	struct wanted wanted = {.name = name};
	struct h5_listing_page page = {.take = match, .arg = &wanted};
	char *begin;
	bool there = false;
	int rc;

	if (asprintf(&begin, "%s%s/", below, name) < 0)
		return -ENOMEM;
	begin[strlen(begin) - 1] = 0;
	rc = get_page(b, below, begin, &page);
	begin[strlen(begin)] = '/';
	if (!rc && page.next && !(wanted.found && wanted.entry.is_folder))
		rc = is_folder_there(b, begin, &there);
	if (there)
		wanted = (struct wanted){.found = true, .entry = {.is_folder = true}};
	free(page.next);
	free(begin);
	*entry = wanted.entry;
	return rc || wanted.found ? rc : -ENOENT;
}

static int find_in(const struct h5_bucket_folder *folder, const char *name, struct h5_bucket_entry *entry)
{
	size_t at = h5_lower_bound(i, folder->count, strcmp(folder->entries[i].name, name) < 0);

	if (at == folder->count || strcmp(folder->entries[at].name, name) != 0)
		return -ENOENT;
	*entry = folder->entries[at];
	entry->name = NULL;
	return 0;
}

int h5_bucket_find(struct h5_bucket *b, const char *below, const char *name, bool anew,
		   struct h5_bucket_entry *entry)
{
	struct h5_bucket_folder *folder;
	bool is_worth_it, is_old;
	int rc;

	pthread_mutex_lock(&b->lock);
	folder = find_kept(b, below);
	is_old = folder && !is_fresh(folder);
	/* After more look-ups than the listing has pages, more will come: then listing is less work. */
	is_worth_it = folder && ++folder->served > folder->pages;
	if (folder && anew)
		leave_out(b, folder);
	pthread_mutex_unlock(&b->lock);
	if (!folder || anew || (is_old && !is_worth_it))
		return ask_for(b, below, name, entry);
	rc = h5_bucket_list(b, below, &folder);
	if (rc)
		return rc;
	rc = find_in(folder, name, entry);
	h5_bucket_put(b, folder);
	return rc;
}

/* ---- */

int h5_bucket_open(struct h5_remote *remote, struct h5_bucket **out)
{
	struct h5_bucket *b = calloc(1, sizeof *b);
	struct h5_bucket_folder *folder;
	const char *url = h5_remote_url(remote);
	int rc;

	if (!b)
		return -ENOMEM;
	b->remote = remote;
	b->prefix = strchr(strstr(url, "://") + 3, '/') + 1;
	pthread_mutex_init(&b->lock, NULL);
	rc = h5_bucket_list(b, "", &folder);
	if (rc) {
		h5_bucket_close(b);
		return rc;
	}
	h5_bucket_put(b, folder);
	*out = b;
	return 0;
}

void h5_bucket_close(struct h5_bucket *b)
{
	if (!b)
		return;
	while (b->folders)
		leave_out(b, b->folders);
	assert(!b->count);
	h5_mutex_destroy(&b->lock);
	free(b);
}

struct h5_remote *h5_bucket_remote(const struct h5_bucket *b)
{
	return b->remote;
}
