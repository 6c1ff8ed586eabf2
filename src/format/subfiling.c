#include "format/subfiling.h"

#include "base/error.h"

#include <ctype.h>
#include <string.h>

/* The value of the first line that is KEY=VALUE, and its bytes; NULL: there is none. */
static const char *find_value(const char *text, size_t n, const char *key, size_t *size)
{
	const char *end = text + n;
	size_t length = strlen(key);

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t line = (size_t)((stop ? stop : end) - text);

		if (line > length && !memcmp(text, key, length) && text[length] == '=') {
			*size = line - length - 1;
			return text + length + 1;
		}
		text += line + 1;
	}
	return NULL;
}

/* *number is 0 if there is no such line. */
static int find_number(const char *text, size_t n, const char *key, uint64_t *number)
{
	size_t size;
	const char *value = find_value(text, n, key, &size);

	*number = 0;
	if (!value)
		return 0;
	for (size_t i = 0; i < size; i++) {
		if (!isdigit((unsigned char)value[i]) || *number > (INT64_MAX - 9) / 10)
			return h5_fail(-EUCLEAN, H5_UNDEF, "%s is no number", key);
		*number = 10 * *number + (uint64_t)(value[i] - '0');
	}
	return *number ? 0 : h5_fail(-EUCLEAN, H5_UNDEF, "%s is 0", key);
}

static int find_folder(const char *text, size_t n, char folder[H5_SUBFILING_FOLDER_SIZE])
{
	size_t size;
	const char *value = find_value(text, n, "subfile_dir", &size);

	folder[0] = 0;
	if (!value)
		return 0;
	if (size >= H5_SUBFILING_FOLDER_SIZE || memchr(value, 0, size))
		return h5_fail(-EUCLEAN, H5_UNDEF, "subfile_dir is no path");
	memcpy(folder, value, size);
	folder[size] = 0;
	return 0;
}

/* A line each:
 *
 *   stripe_size=BYTES
 *   aggregator_count=N   of the processes that wrote: the number of subfiles, if the next line is not there
 *   subfile_count=N      since libhdf5 1.14.1
 *   hdf5_file=PATH       of the stub
 *   subfile_dir=PATH     the folder of the subfiles
 *   NAME                 of each subfile */
int h5_subfiling_config_decode(const char *text, size_t n, struct h5_subfiling_config *config)
{
	int rc = find_number(text, n, "stripe_size", &config->stripe_size);

	if (!rc)
		rc = find_number(text, n, "subfile_count", &config->subfiles);
	if (!rc && !config->subfiles)
		rc = find_number(text, n, "aggregator_count", &config->subfiles);
	if (!rc && !config->stripe_size)
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "stripe_size is missing");
	if (!rc && !config->subfiles)
		rc = h5_fail(-EUCLEAN, H5_UNDEF, "subfile_count is missing");
	return rc ? rc : find_folder(text, n, config->folder);
}
