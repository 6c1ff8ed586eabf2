/* What the files of the fetcher share: its state, and one transfer. */
#ifndef H5_REMOTE_PRIVATE_H
#define H5_REMOTE_PRIVATE_H

#include "io/remote_protocol.h"
#include "remote/credentials.h"
#include "remote/disk_folder.h"
#include "remote/fetcher.h"
#include "remote/response.h"
#include "remote/s3.h"

#include <curl/curl.h>

/* A file on a server. */
struct h5_source {
	bool known;   /* it was opened */
	char *url;    /* owned */
	char *target; /* owned: where redirects have led; NULL: nowhere else */
	char tag[H5_RESPONSE_TAG], modified[64];
	char version[H5_RESPONSE_VERSION]; /* that the object store is asked for; "": the present one */
	uint64_t size;
	int64_t mtime;
	uint8_t *whole; /* owned: all of its bytes, from a server without ranges; NULL: it gives ranges */
	uint64_t room;	/* bytes of it that count for remote_whole= */
	bool lists;	/* it is a page of a listing */
	struct h5_disk_file *disk; /* owned: what was fetched of it; NULL: it is not kept on disk */
	uint64_t failed; /* when a request failed in spite of all tries, if none has succeeded since; 0: never
			  */
	bool silent;	 /* that was since nothing came in time */
};

enum h5_transfer_state {
	H5_TRANSFER_FREE,
	H5_TRANSFER_QUEUED,
	H5_TRANSFER_RUNNING,
	H5_TRANSFER_RESTING, /* until `due`, when it is tried again */
};

/* What to do with the body of a response. */
enum h5_body {
	H5_BODY_UNDECIDED,
	H5_BODY_CELLS,	 /* the bytes that were asked for */
	H5_BODY_WHOLE,	 /* the whole file */
	H5_BODY_DISCARD, /* what a server says about an error */
	H5_BODY_REFUSE,
};

enum { H5_TRANSFER_SAID = 8 << 10 }; /* bytes that are kept of what a server says about an error */

struct h5_fetcher;

/* One request of the daemon, in as many HTTP requests as it takes. */
struct h5_transfer {
	enum h5_transfer_state state;
	struct h5_fetcher *fetcher; /* borrowed */
	struct h5_source *source;   /* borrowed */
	struct h5_remote_request request;
	uint32_t cells[H5_REMOTE_PART_CELLS];
	CURL *easy;		   /* owned; kept for the next request */
	struct curl_slist *fields; /* owned; those of the latest HTTP request */
	char error[CURL_ERROR_SIZE];
	struct h5_response response;
	enum h5_body body;
	uint64_t got;		     /* bytes in the cells, from the begin of the request on */
	uint64_t until;		     /* the bytes from here on are in the cells already */
	uint64_t discarded;	     /* bytes of the present body */
	char said[H5_TRANSFER_SAID]; /* its begin */
	bool own;		     /* the request went to the URL's own server, or the same store */
	unsigned generation;	     /* of the credentials that it was signed with */
	bool renewed;		     /* newer credentials were asked for */
	char region[H5_REGION];	     /* that it was signed for */
	bool versioned;		     /* it asked for a version */
	bool plain;		     /* it does not any more */
	uint8_t *whole;		     /* owned: a whole file so far */
	uint64_t whole_size, whole_capacity;
	uint64_t received;
	uint64_t from_disk;	      /* bytes in the cells that the disk cache had */
	struct h5_disk_file *offered; /* owned: the version of which the server is asked whether it is the
				       * present one; NULL: none */
	bool unoffered;		      /* the server makes no sense of such a question */
	/* Bytes for the disk cache, never taken from the cells, where the daemon could change them. */
	uint8_t *kept;	     /* owned; NULL: none so far */
	uint64_t kept_first; /* offset in the request */
	size_t kept_size;
	unsigned tries, requests, redirects;
	uint64_t due; /* milliseconds of CLOCK_MONOTONIC */
};

struct h5_fetcher {
	struct h5_fetcher_options options;
	struct h5_remote_end end;
	CURLM *multi;
	char *url; /* owned: of the mounted file, for HTTP */
	bool is_s3;
	struct h5_s3 s3;
	struct h5_credentials credentials; /* of an object store */
	struct h5_disk_folder disk;
	uint8_t *scratch;	   /* owned: of blocks that are read; NULL: not needed so far */
	struct curl_slist *fields; /* owned: header lines for the URL's own server */
	char *certificates;	   /* owned: a file of authorities; NULL: the system's */
	int setup;		   /* why nothing can be fetched: a negative errno; 0: it can */
	char setup_text[H5_REMOTE_TEXT];
	uint64_t whole; /* bytes of memory for files that come whole */
	unsigned pages; /* of listings that are not closed yet */
	bool is_mute;	/* a reply could not be sent: the loop ends */
	struct h5_source sources[H5_REMOTE_FILES];
	size_t sources_used; /* from the first on; the memory of the others was never touched */
	struct h5_transfer transfers[H5_REMOTE_UNDER_WAY];
};

/* Serves the link until the daemon ends it; returns the exit status. */
int h5_fetcher_serve(struct h5_fetcher *fetcher);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t h5_transfer_now(void);
/* True: it asks for a file that is not known yet, or for a page of a listing. */
static inline bool h5_transfer_opens(const struct h5_transfer *t)
{
	return t->request.what != H5_REMOTE_READ;
}
/* The number of a source is free for another file. */
void h5_source_forget(struct h5_fetcher *fetcher, struct h5_source *source);
/* A transfer that is queued runs from now on, or has failed. */
void h5_transfer_start(struct h5_transfer *t);
/* Its HTTP request has ended. */
void h5_transfer_end(struct h5_transfer *t, CURLcode result);
/* Ends the transfer: frees what it owns, and sends the daemon the result. */
void h5_transfer_reply(struct h5_transfer *t, int code, enum h5_remote_reason reason, const char *text);

/* ---- remote/answer.c: what an answer means ---- */

/* How large a file may be that comes whole. */
uint64_t h5_answer_room(const struct h5_transfer *t);
/* Decides what becomes of the body; called once the head is there. */
void h5_answer_head(struct h5_transfer *t);

struct h5_verdict {
	enum {
		H5_DONE,
		H5_AGAIN,
		H5_ELSEWHERE, /* a redirect */
		H5_MOVED,     /* the bucket is in another region */
		H5_UNNAMED,   /* the version may not be asked for by its name */
		H5_EXPIRED,   /* newer credentials may help; else as H5_REFUSED */
		H5_REFUSED,
	} what;
	int code; /* H5_REFUSED, H5_EXPIRED; H5_AGAIN: if it was the last try */
	enum h5_remote_reason reason;
	char text[H5_REMOTE_TEXT];
	char region[H5_REGION]; /* H5_MOVED */
};

/* What follows from an HTTP request that has ended. */
void h5_answer_judge(const struct h5_transfer *t, CURLcode result, struct h5_verdict *verdict);
/* Learns of the file what the first answer says. */
void h5_answer_learn(struct h5_transfer *t);

/* ---- remote/disk.c: what is kept on disk ---- */

/* Begins to use the folder; -1: there is none. It is closed with the process. */
void h5_disk_begin(struct h5_fetcher *fetcher, int folder);
/* A request to read: takes what is here from its begin and its end. All of it: got is n. */
void h5_disk_fill(struct h5_transfer *t);
/* A request to open: finds a version that is here and has the bytes of the request. */
void h5_disk_offer(struct h5_transfer *t);
/* A redirect leads to another place: what is kept is of the one before, unless only a signature differs. */
void h5_disk_move(struct h5_fetcher *fetcher, struct h5_source *source);
/* True: the answer says that the version that was offered is the present one. */
bool h5_disk_is_confirmed(const struct h5_transfer *t);
/* The next bytes of the body, which go to the cells from `got` on. */
void h5_disk_keep(struct h5_transfer *t, const void *data, size_t n);
/* The file of the request was opened: what comes of it is kept from now on, if it may be. */
void h5_disk_learn(struct h5_transfer *t);
/* The transfer ends: what it owns is freed, and forgotten once the next one begins in its place. */
void h5_disk_end(struct h5_transfer *t);

#endif
