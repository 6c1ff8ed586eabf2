/* The entry points that libFuzzer and AFL++ call. The program's own name tells the target. */
#include "fuzz.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* libFuzzer's own; AFL++, which calls no mutator of ours, has none. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static struct fuzz_target target;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	if (fuzz_target_find(basename((*argv)[0]), &target))
		return 0;
	fprintf(stderr, "Call it by the name of a target (a link to this program):\n");
	for (unsigned i = 0; fuzz_target_at(i, &target); i++)
		fprintf(stderr, "%s\n", target.name);
	exit(EXIT_FAILURE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	target.run(target.arg, data, size);
	return 0;
}

/* Where the end of an input tells what is done to the rest, it is changed as often as that, and keeps its
 * size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (target.tail && size >= target.tail && seed % 2) {
		LLVMFuzzerMutate(data + size - target.tail, target.tail, target.tail);
		return size;
	}
	return LLVMFuzzerMutate(data, size, max_size);
}
