#include "fuse/option_table.h"

#include "fuse/settings.h"

#include <stdio.h>
#include <string.h>

static const struct h5_option_word external_words[] = {
	{"none", H5_EXTERNAL_NONE}, {"beneath", H5_EXTERNAL_BENEATH}, {"any", H5_EXTERNAL_ANY}, {0}};
static const struct h5_option_word locking_words[] = {
	{"yes", H5_LOCK_ALWAYS}, {"no", H5_LOCK_NONE}, {"best-effort", H5_LOCK_BEST_EFFORT}, {0}};
static const struct h5_option_word order_words[] = {{"name", false}, {"creation", true}, {0}};
static const struct h5_option_word colours_words[] = {
	{"grey", H5_COLOURS_GREY}, {"heat", H5_COLOURS_HEAT}, {"helix", H5_COLOURS_HELIX}, {0}};
static const struct h5_option_word zarr_chunks_words[] = {{"stored", false}, {"decoded", true}, {0}};
static const struct h5_option_word xattr_words[] = {{"text", false}, {"raw", true}, {0}};
static const struct h5_option_word sync_words[] = {{"close", true}, {"fsync", false}, {0}};
static const struct h5_option_word create_words[] = {{"v18", H5_CREATE_V18}, {0}};
static const struct h5_option_word io_uring_words[] = {
	{"no", H5_IO_URING_NO}, {"auto", H5_IO_URING_AUTO}, {"yes", H5_IO_URING_YES}, {0}};
static const struct h5_option_word sandbox_words[] = {{"yes", true}, {"no", false}, {0}};

#define INTO(name)	 offsetof(struct h5_options, name), sizeof(((struct h5_options *)0)->name)
#define SET(name, value) H5_OPTION_FLAG, INTO(name), .most = value

const struct h5_option h5_option_table[] = {
	{"-f", "", SET(foreground, true), .help = "stay in the foreground"},
	{"-d", "", SET(debug, true), .help = "debug output of libfuse (implies -f)"},
	{"debug", "", SET(debug, true)},
	{"-q", "", SET(quiet, true), .help = "as -o quiet; and show no progress"},
	{"-s", "", SET(single_thread, true), .help = "serve one request at a time"},
	{"--cat", "", SET(command, H5_COMMAND_CAT), .help = "print a file that a mount would show; no mount"},
	{"--check", "", SET(command, H5_COMMAND_CHECK), .help = "verify all that the file holds; no mount"},
	{"--extract", "", SET(command, H5_COMMAND_EXTRACT),
	 .help = "copy what a mount would show into a new directory; no mount"},
	{"--kerchunk", "", SET(command, H5_COMMAND_KERCHUNK),
	 .help = "print where chunks lie, for fsspec; no mount"},
	{"--list", "", SET(command, H5_COMMAND_LIST), .help = "print what a mount would show; no mount"},
	{"--json", "", SET(json, true), .help = "--list prints a JSON object for each name"},
	{"--reclaim", "", SET(command, H5_COMMAND_RECLAIM),
	 .help = "give space that nothing refers to back to the file system; no mount"},
	{"--recover", "", SET(command, H5_COMMAND_RECOVER),
	 .help = "deal with the journal that a killed mount has left; no mount"},
	{"-u", "", SET(command, H5_COMMAND_UNMOUNT),
	 .help = "unmount MOUNTPOINT, and wait until its file is closed"},
	{"-h", ", --help", SET(help, true), .help = "this text"},
	{"--help", "", SET(help, true)},
	{"-V", ", --version", SET(version, true), .help = "versions"},
	{"--version", "", SET(version, true)},
	/* As for mount(8), the last of these two counts. */
	{"ro", "", SET(set.writable, false), .help = "read-only (the default)"},
	{"rw", "", SET(set.writable, true), .help = "datasets can be appended to and overwritten"},
	{"remount", "", SET(command, H5_COMMAND_REMOUNT),
	 .help = "make the mount ro, and commit; or rw again, if it was"},
	{"create", "", SET(create, H5_CREATE_V110),
	 .help = "rw; makes a file that is not there (create=v18: for libhdf5 1.8, too)"},
	{"create", "=v18", H5_OPTION_WORD, INTO(create), .words = create_words},
	{"filters", "=LIST", H5_OPTION_TEXT, INTO(filters),
	 .help = "rw: of new datasets, such as shuffle,deflate(4)"},
	{"swmr", "", SET(set.swmr, true),
	 .help = "rw: HDF5 programs read along; ro: another program writes along"},
	{"force", "", SET(set.force, true),
	 .help = "rw in spite of marks in the file, or of hard links to it elsewhere"},
	{"external-write", "", SET(vfs.external_write, true), .help = "rw: external raw files, too"},
	{"sync", "=WHEN", H5_OPTION_WORD, INTO(vfs.commit_at_close), .words = sync_words,
	 .help = "what is written is durable after: close (the default), fsync"},
	{"journal", "=DIR", H5_OPTION_TEXT, INTO(journal),
	 .help = "where the journal of the file is (its own directory)"},
	{"external", "=RULE", H5_OPTION_WORD, INTO(set.external), .words = external_words,
	 .help = "other files that may be opened: none, beneath (the file's directory), any"},
	{"locking", "=HOW", H5_OPTION_WORD, INTO(set.lock), .words = locking_words,
	 .help = "yes, no, best-effort; also HDF5_USE_FILE_LOCKING"},
	{"order", "=ORDER", H5_OPTION_WORD, INTO(vfs.order_by_creation), .words = order_words,
	 .help = "of listings: name, creation"},
	{"xattr", "=FORM", H5_OPTION_WORD, INTO(vfs.raw_attributes), .words = xattr_words,
	 .help = "of attributes: text, raw"},
	{"colours", "=NAME", H5_OPTION_WORD, INTO(vfs.colours), .words = colours_words,
	 .help = "of pictures below .h5fs/png: grey, heat, helix"},
	{"zarr_chunks", "=HOW", H5_OPTION_WORD, INTO(vfs.zarr_decoded), .words = zarr_chunks_words,
	 .help = "of .h5fs/zarr and zarr3: stored, decoded (faster to read, but longer)"},
	{"uid", "=N", H5_OPTION_NUMBER, INTO(vfs.uid), .most = UINT32_MAX - 1, .help = "owner of all files"},
	{"gid", "=N", H5_OPTION_NUMBER, INTO(vfs.gid), .most = UINT32_MAX - 1, .help = "group of all files"},
	{"fmask", "=OCTAL", H5_OPTION_OCTAL, INTO(vfs.fmask), .most = 0777,
	 .help = "mode bits taken out of files"},
	{"dmask", "=OCTAL", H5_OPTION_OCTAL, INTO(vfs.dmask), .most = 0777,
	 .help = "mode bits taken out of directories"},
	{"kerchunk_url", "=URL", H5_OPTION_TEXT, INTO(kerchunk_url),
	 .help = "where kerchunk.json says that the file is (its URL or path)"},
	{"subdir", "=/GROUP", H5_OPTION_TEXT, INTO(subdir), .help = "mount only this group"},
	{"revision", "=N", H5_OPTION_NUMBER, INTO(revision), .most = INT64_MAX,
	 .help = "of a file with revisions (onion driver): which one (the newest)"},
	{"offset", "=N", H5_OPTION_NUMBER, INTO(set.offset), .most = INT64_MAX,
	 .help = "the size of the user block: where the HDF5 file begins"},
	{"userblock", "=N", H5_OPTION_NUMBER, INTO(set.offset), .most = INT64_MAX,
	 .help = "the same; mount(8) takes offset= for itself"},
	{"match", "=PATTERNS", H5_OPTION_TEXT, INTO(match),
	 .help = "of a folder: names of its HDF5 files, such as *.h5:*.nc"},
	{"open_files", "=N", H5_OPTION_NUMBER, INTO(open_files), .least = 1, .most = 4096,
	 .help = "of a folder: HDF5 files that are open at once, at most (64)"},
	{"timeout", "=SECONDS", H5_OPTION_NUMBER, INTO(timeout), .most = INT32_MAX,
	 .help = "unmount when nothing was asked for so long"},
	{"wait", "=SECONDS", H5_OPTION_NUMBER, INTO(set.wait), .most = INT32_MAX,
	 .help = "wait so long for a file that another program has locked (2; 0: not)"},
	{"log", "=WHERE", H5_OPTION_TEXT, INTO(log), .help = "a file, or syslog, instead of standard error"},
	{"quiet", "", SET(quiet, true), .help = "log only what ends the mount or loses data"},
	{"verbose", "", SET(verbose, true), .help = "log also what is done"},
	{"allow_other", "", SET(allow_other, true), .help = "other users may look, too"},
	{"nonempty", "", SET(nonempty, true),
	 .help = "the mount point may have files, which are hidden meanwhile"},
	{"sandbox", "=WHETHER", H5_OPTION_WORD, INTO(sandbox), .words = sandbox_words,
	 .help = "the daemon gives up what it does not need: yes (the default), no"},
	{"cache", "=SIZE", H5_OPTION_SIZE, INTO(set.chunk_cache), .most = SIZE_MAX,
	 .help = "of decoded chunks (64M and a 32nd of the memory, at most 640M)"},
	{"index_cache", "=SIZE", H5_OPTION_SIZE, INTO(set.block_cache), .most = SIZE_MAX,
	 .help = "of decoded metadata blocks (a quarter of that)"},
	{"remote_cache", "=SIZE", H5_OPTION_SIZE, INTO(fetcher.cache), .most = SIZE_MAX,
	 .help = "of what comes from a URL (256M)"},
	{"remote_whole", "=SIZE", H5_OPTION_SIZE, INTO(fetcher.whole), .most = (uint64_t)1 << 30,
	 .help = "of files, together, that a server without ranges may send whole (0)"},
	{"remote_connections", "=N", H5_OPTION_NUMBER, INTO(fetcher.connections), .least = 1,
	 .most = H5_REMOTE_CONNECTIONS, .help = "that are open to servers at once (64)"},
	{"remote_tries", "=N", H5_OPTION_NUMBER, INTO(fetcher.tries), .least = 1, .most = 100,
	 .help = "of a request to a server (10)"},
	{"remote_timeout", "=SECONDS", H5_OPTION_NUMBER, INTO(fetcher.timeout), .least = 1, .most = INT16_MAX,
	 .help = "without an answer, or with less than 16K of one: a try has failed (30)"},
	{"disk_cache", "=DIR", H5_OPTION_TEXT, INTO(disk_cache),
	 .help = "that keeps what comes from a URL for the next mounts"},
	{"disk_cache_size", "=SIZE", H5_OPTION_SIZE, INTO(fetcher.disk_cache_size), .least = 1,
	 .most = INT64_MAX, .help = "of all files in it (10G)"},
	{"http_header", "=@FILE", H5_OPTION_TEXT, INTO(http_header),
	 .help = "of header lines for the server of the URL"},
	{"s3_endpoint", "=URL", H5_OPTION_TEXT, INTO(s3_endpoint),
	 .help = "of an object store that is not Amazon's"},
	{"s3_anonymous", "", SET(fetcher.s3_anonymous, true),
	 .help = "ask an object store without credentials"},
	{"max_chunk", "=SIZE", H5_OPTION_SIZE, INTO(set.max_chunk), .least = 1, .most = H5_MAX_CHUNK_LIMIT,
	 .help = "of a decoded chunk, at most (an 8th of the memory, but 256M to 1G)"},
	{"max_work", "=SECONDS", H5_OPTION_NUMBER, INTO(vfs.max_work), .most = UINT16_MAX,
	 .help = "that a request may work, beyond what the file's bytes call for (2; 0: any)"},
	{"io_uring", "=WHETHER", H5_OPTION_WORD, INTO(io_uring), .words = io_uring_words,
	 .help = "ro: how requests come: no (the default), auto (if it is possible), yes"},
	{"workers", "=N", H5_OPTION_NUMBER, INTO(set.workers), .most = H5_WORKERS_MAX,
	 .help = "threads that decode and encode chunks (the processors; 0 to 64)"},
	{0},
};

_Static_assert(sizeof h5_option_table / sizeof *h5_option_table <= H5_OPTIONS_MAX + 1, "too many options");

/* Words of fstab(5) that other programs heed. nosuid, nodev and noexec are in force anyway. */
static const char *const ignored[] = {
	"defaults",   "auto",	"noauto",   "nofail",  "_netdev",
	"user",	      "users",	"nouser",   "noatime", "relatime",
	"nodiratime", "atime",	"diratime", "async",   "default_permissions",
	"group",      "owner",	"silent",   "loud",    "strictatime",
	"lazytime",   "suid",	"dev",	    "exec",    "nosuid",
	"nodev",      "noexec",
};

/* Options that begin so are ignored, too. */
static const char *const ignored_prefixes[] = {"x-", "comment=", "user=", "user_id=", "group_id="};

bool h5_option_is_ignored(const char *arg)
{
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		if (!strcmp(arg, ignored[i]))
			return true;
	for (size_t i = 0; i < sizeof ignored_prefixes / sizeof *ignored_prefixes; i++)
		if (!strncmp(arg, ignored_prefixes[i], strlen(ignored_prefixes[i])))
			return true;
	return !*arg; /* mount(8) takes empty ones, too */
}

void h5_option_help(bool of_mount)
{
	for (const struct h5_option *option = h5_option_table; option->name; option++) {
		char left[64];

		if (!option->help || (*option->name != '-') != of_mount)
			continue;
		snprintf(left, sizeof left, "%s%s", option->name, option->rest);
		printf("    %-23s%s\n", left, option->help);
	}
}
