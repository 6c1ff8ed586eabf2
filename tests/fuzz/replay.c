/* Runs each target over the inputs that are kept for it, without a fuzzer: what was found stays fixed.
 *
 *     replay                 all targets, over what the sources have for them
 *     replay TARGET FILE...  one, over files */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECONDS = 20 }; /* for an input; longer is a hang */

static unsigned inputs;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void run_file(const struct fuzz_target *target, const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data;
	size_t n;

	must(f && !fstat(fileno(f), &st), path);
	n = (size_t)st.st_size;
	data = malloc(n ? n : 1);
	must(data && fread(data, 1, n, f) == n, path);
	fclose(f);
	printf("%s\n", path); /* the last one is what ended the program */
	alarm(SECONDS);
	target->run(target->arg, data, n);
	alarm(0);
	free(data);
	inputs++;
}

static void run_folder(const struct fuzz_target *target, const char *folder)
{
	char path[4096];
	struct dirent **entries;
	int n;

	snprintf(path, sizeof path, "%s/%s", folder, target->name);
	n = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s/%s", folder, target->name, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			run_file(target, path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static void run_all(void)
{
	static const char *const folders[] = {"corpus", "finds"};
	const char *source = getenv("srcdir");
	struct fuzz_target target;
	char path[2048];

	for (unsigned i = 0; fuzz_target_at(i, &target); i++)
		for (unsigned k = 0; k < sizeof folders / sizeof *folders; k++) {
			snprintf(path, sizeof path, "%s/tests/fuzz/%s", source ? source : ".", folders[k]);
			run_folder(&target, path);
		}
}

int main(int argc, char **argv)
{
	struct fuzz_target target;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !fuzz_target_find(argv[1], &target)) {
		fprintf(stderr, "%s: no target\n", argv[1]);
		return EXIT_FAILURE;
	}
	if (argc == 1)
		run_all();
	for (int i = 2; i < argc; i++)
		run_file(&target, argv[i]);
	printf("%u inputs\n", inputs);
	return inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}
