#include "base/checksum.h"

bool h5_checksum_matches(uint64_t stored, uint64_t computed)
{
	return stored == computed;
}
