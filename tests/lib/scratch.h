/* What tests that write share: a folder of their own, copies of fixtures' files in it that are open for
 * writing, and other programs that look at them. */
#ifndef H5_TESTS_SCRATCH_H
#define H5_TESTS_SCRATCH_H

#include "base/error.h"
#include "fault_io.h"
#include "space_account.h"
#include "store/file_set.h"
#include "store/object_header.h"
#include "unit.h"

/* Much cheaper than ck_assert_msg(), which leaves a note each time. */
#define SUCCEEDS(call)                                                                                       \
	do {                                                                                                 \
		if (call)                                                                                    \
			ck_abort_msg("%s: %s at %ju", #call, h5_error_last()->text,                          \
				     (uintmax_t)h5_error_last()->address);                                   \
	} while (0)

/* Of the process; made when it is first asked for, in memory where there is: syncs are many. It goes with the
 * process, but stays for a look when a test fails. */
const char *scratch_folder(void);
/* Of a file that the fixtures made. */
void scratch_fixture(const char *name, char path[512]);
/* A file's bytes. Much cheaper than a command. */
void scratch_copy(const char *from, const char *to);
/* Runs a command of the shell, which must succeed. */
void scratch_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same where the command asks libhdf5 about a file. Of some questions each version judges that is there
 * (contrib/judges), this machine's own of all, in the end. What the others change in our folder does not
 * stay. With H5FS_JUDGE=all in the environment all versions judge, with H5FS_JUDGE=none nobody does. */
void scratch_judge(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with Python: a script in the source folder, and its arguments. */
void scratch_judge_python(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Both where only this machine's own version judges, or another reader of the format. */
void scratch_own_judge(const char *format, ...) __attribute__((format(printf, 1, 2)));
void scratch_own_judge_python(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct scratch {
	char original[512], folder[80], path[160];
	struct h5_file_set_options options; /* of the next opening */
	struct h5_file_set *set;	    /* NULL: it is closed */
	struct h5_file *file;
	struct space_account account; /* while it is open */
};

/* From now on each closing checks that all space that was given up is free. This is so only if each object
 * has a name, and if no function that gives space up has failed. */
void scratch_keep_accounts(void);
void scratch_keep_no_accounts(void);
/* As space_account_begin() and space_account_check(), with a copy of the file that they make and remove. */
void scratch_begin_account(struct space_account *account, const char *path);
void scratch_check_account(const struct space_account *account, const char *path, const struct h5_file *file,
			   const char *name);

/* A copy of a fixture's file, of the same name, in a folder by itself. */
void scratch_init(struct scratch *scratch, const char *fixture);
/* From the next opening on all calls go through this one; NULL: through none. */
void scratch_wrap(struct scratch *scratch, struct fault_io *fault);
void scratch_open(struct scratch *scratch);
void scratch_close(struct scratch *scratch); /* may run twice */
/* Closes the file and removes its folder. */
void scratch_release(struct scratch *scratch);
/* The body of a message of the object header at the address; free(). */
uint8_t *scratch_message(const struct scratch *scratch, uint64_t header, enum h5_message_type type,
			 size_t *n);

/* How many hard links the object header at the address counts. */
uint32_t scratch_references(struct h5_file *file, uint64_t header);
/* An h5_message_update that adds a row to the dataspace; `file` is the struct h5_file. */
int scratch_add_row(const void *file, uint8_t *body, size_t n);

#endif
