/* Credentials for an object store: gets them from where the identity says, and gets new ones before they end
 * or when the store finds them expired. It makes one HTTP request at a time, beside those of the transfers.
 */
#ifndef H5_REMOTE_CREDENTIALS_H
#define H5_REMOTE_CREDENTIALS_H

#include "io/remote_protocol.h"
#include "remote/identity.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum h5_credentials_state {
	H5_CREDENTIALS_IDLE,
	H5_CREDENTIALS_ASKING,	/* a request is under way */
	H5_CREDENTIALS_RESTING, /* until `due`, when it is made again */
};

/* {0} has no identity: nothing is signed. */
struct h5_credentials {
	struct h5_identity identity; /* owned */
	CURLM *multi;		     /* borrowed */
	const char *certificates;    /* borrowed; NULL: the system's */
	unsigned timeout;	     /* seconds for the token server */

	struct h5_grant now; /* owned: what requests are signed with; no key: none were granted yet */
	unsigned generation; /* how often they were granted */
	bool proved;	     /* the store has taken them */
	bool refused;	     /* the store finds them expired */
	uint64_t granted;    /* when, in milliseconds of CLOCK_MONOTONIC */
	int64_t renew;	     /* seconds since 1970, from when on new ones are wanted; INT64_MAX: never */

	enum h5_credentials_state state;
	enum h5_credentials_step {
		H5_STEP_SESSION, /* a token for the metadata service */
		H5_STEP_NAME,	 /* what the machine's role is called */
		H5_STEP_KEYS,	 /* the keys of the machine or the container */
		H5_STEP_TOKEN,	 /* a role for the token of a file */
		H5_STEP_ROLE,	 /* a role for keys */
	} step;
	CURL *easy;		   /* owned */
	struct curl_slist *fields; /* owned */
	struct h5_grant base;	   /* owned: what the role is asked for with */
	char *session, *name;	   /* owned: answers of the metadata service */
	char *said;		   /* owned: the body of the answer so far */
	size_t size;
	unsigned tries;
	uint64_t due; /* milliseconds of CLOCK_MONOTONIC: not asked again before */

	int code; /* why there are none: -EACCES or -EIO; 0: not known yet */
	enum h5_remote_reason reason;
	char text[H5_REMOTE_TEXT];
};

enum h5_credentials_answer {
	H5_CREDENTIALS_GOOD, /* requests may be signed */
	H5_CREDENTIALS_WAIT, /* they are being got */
	H5_CREDENTIALS_NONE, /* there are none: `code`, `reason` and `text` say why */
};

/* Are there credentials? Asks for them, or for new ones, if it is time. `now`: milliseconds of
 * CLOCK_MONOTONIC. */
enum h5_credentials_answer h5_credentials_want(struct h5_credentials *c, uint64_t now);
/* The store has taken those of that generation. */
void h5_credentials_prove(struct h5_credentials *c, unsigned generation);
/* The store has found those of that generation expired. True: there are newer ones, or may be. False: those
 * that were granted just now are refused as well. */
bool h5_credentials_refuse(struct h5_credentials *c, unsigned generation, uint64_t now);
/* An HTTP request has ended. False: it is none of this. */
bool h5_credentials_end(struct h5_credentials *c, CURL *easy, CURLcode result, uint64_t now);

#endif
