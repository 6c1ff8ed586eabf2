/* The same work by libhdf5: what h5fs is compared with, and the data that h5py makes too slowly.
 *
 *     libhdf5 whole FILE READERS                  each reader its part of the rows, by one H5Dread into new
 * memory libhdf5 rows FILE ROWS                      that many rows a read, with the default chunk cache
 *     libhdf5 random FILE OFFSETS SIZE            at the byte offsets of a list, parts of rows
 *     libhdf5 first FILE OFFSET                   one element, at a byte offset
 *     libhdf5 append FILE SOURCE ROWS COUNT SYNC  ROWS rows a write; SYNC: none, end, each
 *     libhdf5 make FILE ELEMENTS CHUNK FILL       int32 in an extensible array; 0, 1, 2, ... or only the
 * middle chunk
 *
 * The dataset is `data`. Seconds are from before the file is opened until it is closed. */
#include "bench.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file with its dataset, opened. */
struct data {
	hid_t file, dataset, space, type;
	int rank;
	hsize_t dims[3]; /* 1 where there is none */
	size_t row;	 /* bytes of an element of the first dimension */
};

#define OK(call) ok((int64_t)(call), #call)
static int64_t ok(int64_t result, const char *call)
{
	if (result < 0)
		die("%s", call);
	return result;
}

static struct data open_data(const char *path, unsigned flags)
{
	struct data d = {.dims = {1, 1, 1}};
	hid_t stored;

	d.file = OK(H5Fopen(path, flags, H5P_DEFAULT));
	d.dataset = OK(H5Dopen2(d.file, "data", H5P_DEFAULT));
	d.space = OK(H5Dget_space(d.dataset));
	d.rank = (int)OK(H5Sget_simple_extent_ndims(d.space));
	if (d.rank > 3)
		die("rank %d", d.rank);
	OK(H5Sget_simple_extent_dims(d.space, d.dims, NULL));
	stored = OK(H5Dget_type(d.dataset));
	d.type = OK(H5Tget_native_type(stored, H5T_DIR_DEFAULT));
	d.row = H5Tget_size(d.type) * d.dims[1] * d.dims[2];
	H5Tclose(stored);
	return d;
}

static void close_data(struct data *d)
{
	H5Tclose(d->type);
	H5Sclose(d->space);
	OK(H5Dclose(d->dataset));
	OK(H5Fclose(d->file));
}

static void read_block(const struct data *d, const hsize_t start[3], const hsize_t count[3], void *buffer)
{
	hid_t memory = OK(H5Screate_simple(d->rank, count, NULL));

	OK(H5Sselect_hyperslab(d->space, H5S_SELECT_SET, start, NULL, count, NULL));
	OK(H5Dread(d->dataset, d->type, memory, d->space, H5P_DEFAULT, buffer));
	H5Sclose(memory);
}

static void read_part(unsigned i, unsigned n, void *context)
{
	struct data d = open_data(context, H5F_ACC_RDONLY);
	hsize_t first = d.dims[0] * i / n, end = d.dims[0] * (i + 1) / n;
	void *buffer = allocate((end - first) * d.row);

	read_block(&d, (hsize_t[3]){first}, (hsize_t[3]){end - first, d.dims[1], d.dims[2]}, buffer);
	close_data(&d);
	free(buffer);
}

static double read_rows(const char *path, hsize_t rows)
{
	double began = now();
	struct data d = open_data(path, H5F_ACC_RDONLY);
	void *buffer = allocate(rows * d.row);

	for (hsize_t at = 0; at < d.dims[0]; at += rows) {
		hsize_t n = d.dims[0] - at < rows ? d.dims[0] - at : rows;

		read_block(&d, (hsize_t[3]){at}, (hsize_t[3]){n, d.dims[1], d.dims[2]}, buffer);
	}
	close_data(&d);
	free(buffer);
	return now() - began;
}

static double read_random(const char *path, const char *list, size_t size)
{
	size_t count;
	uint64_t *offsets = read_offsets(list, &count);
	void *buffer = allocate(size);
	double began = now();
	struct data d = open_data(path, H5F_ACC_RDONLY);
	size_t element = H5Tget_size(d.type);

	for (size_t i = 0; i < count; i++)
		read_block(&d, (hsize_t[3]){offsets[i] / d.row, offsets[i] % d.row / element},
			   (hsize_t[3]){1, size / element}, buffer);
	close_data(&d);
	free(buffer);
	free(offsets);
	return now() - began;
}

static double read_first(const char *path, uint64_t offset)
{
	double began = now();
	struct data d = open_data(path, H5F_ACC_RDONLY);
	char element[64];

	read_block(&d, (hsize_t[3]){offset / d.row}, (hsize_t[3]){1, 1, 1}, element);
	close_data(&d);
	return now() - began;
}

static void make_durable(const struct data *d)
{
	int *fd;

	OK(H5Fflush(d->file, H5F_SCOPE_LOCAL));
	OK(H5Fget_vfd_handle(d->file, H5P_DEFAULT, (void **)&fd));
	if (fsync(*fd))
		die("fsync");
}

static double append(const char *path, const char *source, hsize_t rows, uint64_t count, enum sync_when when)
{
	size_t total, at = 0;
	const char *from = map_source(source, &total);
	double began = now();
	struct data d = open_data(path, H5F_ACC_RDWR);
	hsize_t block[2] = {rows, d.dims[1]};
	hid_t memory = OK(H5Screate_simple(2, block, NULL));

	for (uint64_t i = 0; i < count; i++) {
		hsize_t start[2] = {d.dims[0], 0};

		d.dims[0] += rows;
		OK(H5Dset_extent(d.dataset, d.dims));
		OK(H5Sset_extent_simple(d.space, 2, d.dims, NULL));
		OK(H5Sselect_hyperslab(d.space, H5S_SELECT_SET, start, NULL, block, NULL));
		OK(H5Dwrite(d.dataset, d.type, memory, d.space, H5P_DEFAULT, from + at));
		if (when == SYNC_EACH)
			make_durable(&d);
		at = at + 2 * rows * d.row <= total ? at + rows * d.row : 0;
	}
	if (when == SYNC_END)
		make_durable(&d);
	H5Sclose(memory);
	close_data(&d);
	return now() - began;
}

/* Chunks are allocated with the dataset: side by side, in order. */
static hid_t create(hid_t file, hsize_t elements, hsize_t chunk)
{
	hsize_t unlimited = H5S_UNLIMITED;
	hid_t space = OK(H5Screate_simple(1, &elements, &unlimited));
	hid_t plist = OK(H5Pcreate(H5P_DATASET_CREATE));
	hid_t dataset;

	OK(H5Pset_chunk(plist, 1, &chunk));
	OK(H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY));
	OK(H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER));
	dataset = OK(H5Dcreate2(file, "data", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT));
	H5Pclose(plist);
	H5Sclose(space);
	return dataset;
}

static double make(const char *path, hsize_t elements, hsize_t chunk, const char *fill)
{
	hsize_t piece = strcmp(fill, "all") ? chunk : 1 << 20, at = strcmp(fill, "all") ? elements / 2 : 0;
	hsize_t end = strcmp(fill, "all") ? at + piece : elements;
	double began = now();
	hid_t access = OK(H5Pcreate(H5P_FILE_ACCESS)), file, dataset, space;
	int32_t *values = allocate(piece * sizeof *values);

	OK(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110));
	file = OK(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access));
	dataset = create(file, elements, chunk);
	space = OK(H5Dget_space(dataset));
	for (; at < end; at += piece) {
		hsize_t n = end - at < piece ? end - at : piece;
		hid_t memory = OK(H5Screate_simple(1, &n, NULL));

		for (hsize_t i = 0; i < n; i++)
			values[i] = (int32_t)(at + i);
		OK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &n, NULL));
		OK(H5Dwrite(dataset, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values));
		H5Sclose(memory);
	}
	free(values);
	H5Sclose(space);
	OK(H5Dclose(dataset));
	OK(H5Fclose(file));
	H5Pclose(access);
	return now() - began;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	double seconds;

	if (!strcmp(what, "whole") && argc == 4)
		seconds = run_parts(read_part, (unsigned)number(argv[3]), argv[2]);
	else if (!strcmp(what, "rows") && argc == 4)
		seconds = read_rows(argv[2], number(argv[3]));
	else if (!strcmp(what, "random") && argc == 5)
		seconds = read_random(argv[2], argv[3], number(argv[4]));
	else if (!strcmp(what, "first") && argc == 4)
		seconds = read_first(argv[2], number(argv[3]));
	else if (!strcmp(what, "append") && argc == 7)
		seconds = append(argv[2], argv[3], number(argv[4]), number(argv[5]), sync_when(argv[6]));
	else if (!strcmp(what, "make") && argc == 6)
		seconds = make(argv[2], number(argv[3]), number(argv[4]), argv[5]);
	else
		die("usage: see the source");
	printf("%.6f\n", seconds);
	return 0;
}
