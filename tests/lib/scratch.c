#include "scratch.h"
#include "change/object_header_insert.h"
#include "change/open.h"
#include "change/transaction.h"
#include "format/dataspace.h"
#include "python_runner.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	char path[64];
	pid_t owner;
	unsigned folders; /* that were made in it */
} folder;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

/* A folder with all that is in it. */
static bool remove_tree(const char *path)
{
	return !nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_folder(void)
{
	if (folder.owner == getpid() && !remove_tree(folder.path))
		_exit(EXIT_FAILURE);
}

const char *scratch_folder(void)
{
	if (!folder.owner) {
		snprintf(folder.path, sizeof folder.path, "%s/h5fs-%s.XXXXXX",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", program_invocation_short_name);
		ck_assert_ptr_nonnull(mkdtemp(folder.path));
		folder.owner = getpid();
		ck_assert_int_eq(atexit(remove_folder), 0);
	}
	return folder.path;
}

void scratch_fixture(const char *name, char path[512])
{
	const char *data = getenv("H5FS_TEST_DATA");

	ck_assert_int_lt(snprintf(path, 512, "%s/%s", data ? data : "tests/data", name), 512);
}

void scratch_copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static char block[1 << 16];
	ssize_t n;

	ck_assert_msg(in >= 0 && out >= 0, "%s, %s: %m", from, to);
	while ((n = read(in, block, sizeof block)) > 0)
		ck_assert_int_eq(write(out, block, (size_t)n), n);
	ck_assert_int_eq(n, 0);
	close(in);
	close(out);
}

static const char *source_folder(void)
{
	const char *source = getenv("srcdir");

	return source ? source : ".";
}

static bool is_python(const char *command)
{
	return !strncmp(command, PYTHON_RUNNER, strlen(PYTHON_RUNNER));
}

enum { LONGEST = 4096 };

static void put_command(char command[LONGEST], const char *before, const char *format, va_list arguments)
{
	size_t n = strlen(strcpy(command, before));

	ck_assert_int_lt(vsnprintf(command + n, LONGEST - n, format, arguments), (int)(LONGEST - n));
}

static void run(const char *before, const char *format, va_list arguments)
{
	char command[LONGEST];

	put_command(command, before, format, arguments);
	ck_assert_msg(is_python(command) ? python_runner_run(source_folder(), command) : !system(command),
		      "%s", command);
}

void scratch_run(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	run("", format, arguments);
	va_end(arguments);
}

/* The beginning of a command line that runs a script of the sources. */
static const char *python(void)
{
	static char program[512];

	ck_assert_int_lt(snprintf(program, sizeof program, PYTHON_RUNNER "%s/", source_folder()),
			 (int)sizeof program);
	return program;
}

static bool somebody_judges(void)
{
	const char *who = getenv("H5FS_JUDGE");

	return !who || strcmp(who, "none");
}

/* The newer judges have a copy of our folder, so that each finds the file as we left it. */
static void judge(const char *program, const char *format, va_list arguments)
{
	char command[LONGEST];
	va_list again;

	if (!somebody_judges())
		return;
	va_copy(again, arguments);
	put_command(command, program, format, again);
	va_end(again);
	ck_assert_msg(python_runner_ask_others(source_folder(), scratch_folder(), command), "%s", command);
	run(program, format, arguments);
}

void scratch_judge(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	judge("", format, arguments);
	va_end(arguments);
}

void scratch_judge_python(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	judge(python(), format, arguments);
	va_end(arguments);
}

void scratch_own_judge(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (somebody_judges())
		run("", format, arguments);
	va_end(arguments);
}

void scratch_own_judge_python(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (somebody_judges())
		run(python(), format, arguments);
	va_end(arguments);
}

void scratch_init(struct scratch *scratch, const char *fixture)
{
	*scratch = (struct scratch){.options = {.block_cache = 1 << 20,
						.chunk_cache = 1 << 20,
						.lock = H5_LOCK_ALWAYS,
						.writable = true}};
	scratch_fixture(fixture, scratch->original);
	snprintf(scratch->folder, sizeof scratch->folder, "%s/%u", scratch_folder(), folder.folders++);
	ck_assert_int_eq(mkdir(scratch->folder, 0700), 0);
	snprintf(scratch->path, sizeof scratch->path, "%s/%s", scratch->folder, fixture);
	scratch_copy(scratch->original, scratch->path);
}

void scratch_wrap(struct scratch *scratch, struct fault_io *fault)
{
	scratch->options.wrap = fault ? fault_io_wrap : NULL;
	scratch->options.wrap_arg = fault;
}

/* ---- accounts of space ---- */

static bool keeps_accounts;

void scratch_keep_accounts(void)
{
	keeps_accounts = true;
}

void scratch_keep_no_accounts(void)
{
	keeps_accounts = false;
}

static void make_copy(const char *path, char copy[600])
{
	snprintf(copy, 600, "%s.copy", path);
	scratch_copy(path, copy);
}

void scratch_begin_account(struct space_account *account, const char *path)
{
	char copy[600];

	make_copy(path, copy);
	space_account_begin(account, copy);
	unlink(copy);
}

void scratch_check_account(const struct space_account *account, const char *path, const struct h5_file *file,
			   const char *name)
{
	char copy[600];

	make_copy(path, copy);
	space_account_check(account, copy, file, name);
	unlink(copy);
}

static void end_account(struct scratch *scratch)
{
	if (h5_tx_is_writable(scratch->file))
		scratch_check_account(&scratch->account, scratch->path, scratch->file, scratch->path);
	space_account_release(&scratch->account);
}

/* ---- opening and closing ---- */

void scratch_open(struct scratch *scratch)
{
	SUCCEEDS(h5_open_file(scratch->path, &scratch->options, &scratch->set, NULL));
	scratch->file = h5_file_set_root(scratch->set);
	if (keeps_accounts)
		scratch_begin_account(&scratch->account, scratch->path);
}

void scratch_close(struct scratch *scratch)
{
	if (keeps_accounts && scratch->set)
		end_account(scratch);
	h5_file_set_close(scratch->set);
	scratch->set = NULL;
	scratch->file = NULL;
}

void scratch_release(struct scratch *scratch)
{
	scratch_close(scratch);
	ck_assert_msg(remove_tree(scratch->folder), "%s", scratch->folder);
}

uint8_t *scratch_message(const struct scratch *scratch, uint64_t header, enum h5_message_type type, size_t *n)
{
	const struct h5_message *m;
	struct h5_header h;
	uint8_t *body;

	SUCCEEDS(h5_header_load(scratch->file, header, &h));
	m = h5_header_find(&h, type);
	ck_assert_ptr_nonnull(m);
	*n = m->size;
	body = malloc(m->size);
	ck_assert_ptr_nonnull(body);
	memcpy(body, m->data, m->size);
	h5_header_release(&h);
	return body;
}

uint32_t scratch_references(struct h5_file *file, uint64_t address)
{
	struct h5_header header;
	uint32_t count;

	SUCCEEDS(h5_header_load(file, address, &header));
	SUCCEEDS(h5_header_references(file, &header, &count));
	h5_header_release(&header);
	return count;
}

int scratch_add_row(const void *file, uint8_t *body, size_t n)
{
	const uint8_t lengths = h5_file_superblock(file)->size_of_lengths;
	struct h5_reader r = h5_file_reader(file, body, n, H5_UNDEF);
	struct h5_dataspace space;
	int rc = h5_dataspace_decode(&r, &space);

	space.dims[0]++;
	return rc ? rc : h5_dataspace_update(body, n, lengths, &space);
}
