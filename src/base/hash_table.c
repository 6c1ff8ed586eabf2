#include "base/hash_table.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* If the kernel has no random numbers yet, hashes are as good, but the same in each process. */
static uint64_t begin = 0x9e3779b97f4a7c15;
static uint64_t factors[3] = {0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93}; /* odd */

/* Before main(), as tables may be of any thread. */
__attribute__((constructor)) static void choose(void)
{
	uint64_t chance[4];

	if (getrandom(chance, sizeof chance, GRND_NONBLOCK) != sizeof chance)
		return;
	begin = chance[3];
	for (int i = 0; i < 3; i++)
		factors[i] = chance[i] | 1; /* so that no bit is lost */
}

/* Multiplying spreads bits upwards, shifting brings them down again. */
static uint64_t spread(uint64_t hash, uint64_t factor)
{
	hash *= factor;
	return hash ^ hash >> 32;
}

unsigned h5_hash(const void *key, size_t size)
{
	const uint8_t *p = key;
	uint64_t hash = begin ^ size, word;

	for (; size >= sizeof word; size -= sizeof word, p += sizeof word) {
		memcpy(&word, p, sizeof word);
		hash = spread(hash ^ word, factors[0]);
	}
	word = 0;
	memcpy(&word, p, size);
	if (size)
		hash = spread(hash ^ word, factors[0]);
	return (unsigned)(spread(hash, factors[1]) * factors[2] >> 32);
}
