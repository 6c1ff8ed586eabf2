/* Tables of CSV that are larger than what is read, or written, at once. */
#include "dataset/create.h"
#include "empty_scene.h"
#include "format/datatype_make.h"
#include "view/csv_read.h"
#include "view/intake.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20 };

/* Makes the text a dataset, in the place of the target (H5_UNDEF: of none), and checks its elements. */
static void check_table(uint64_t target, const char *text, size_t n, const void *expected, size_t size)
{
	struct h5_intake intake = {
		.ops = &h5_intake_csv, .file = scratch.file, .target = target, .gather = 100000};
	const struct h5_dataset *dataset;
	struct h5_lru_entry *ref;
	char *got = malloc(size);

	SUCCEEDS(h5_intake_begin(&intake));
	/* Until then it has the bytes of the text. */
	SUCCEEDS(h5_dataset_get(scratch.file, intake.dataset, &ref, &dataset));
	ck_assert(dataset->type->class == H5_CLASS_INTEGER && dataset->type->size == 1 &&
		  !dataset->type->is_signed);
	h5_file_put(scratch.file, ref);
	SUCCEEDS(h5_intake_take(&intake, text, n / 3));
	SUCCEEDS(h5_intake_take(&intake, text + n / 3, n - n / 3));
	SUCCEEDS(h5_intake_finish(&intake));
	SUCCEEDS(h5_dataset_get(scratch.file, intake.dataset, &ref, &dataset));
	ck_assert_uint_eq(dataset->size, size);
	SUCCEEDS(h5_dataset_read(dataset, 0, got, size));
	for (size_t i = 0; i < size; i++)
		if (got[i] != ((const char *)expected)[i])
			ck_abort_msg("byte %zu of %zu differs", i, size);
	h5_file_put(scratch.file, ref);
	h5_intake_end(&intake);
	h5_intake_end(&intake); /* nothing is left of it */
	ck_assert(!intake.writer && !intake.state && intake.stream == H5_UNDEF);
	free(got);
}

/* Rows of 24 bytes, so the last one of a piece ends before it does. */
START_TEST(many_rows_are_written_in_pieces)
{
	enum { ROWS = 2 * PIECE / 24 + 100 };
	char *text = malloc(30 * ROWS), *p = text + sprintf(text, "a,b,c\n");
	int64_t(*rows)[3] = malloc(ROWS * sizeof *rows);

	for (int64_t i = 0; i < ROWS; i++) {
		rows[i][0] = i;
		rows[i][1] = -i;
		rows[i][2] = i * i % 1000;
		p += sprintf(p, "%jd,%jd,%jd\n", (intmax_t)rows[i][0], (intmax_t)rows[i][1],
			     (intmax_t)rows[i][2]);
	}
	check_table(H5_UNDEF, text, (size_t)(p - text), rows, ROWS * sizeof *rows);
	free(rows);
	free(text);
}
END_TEST

/* The fields are looked at as values of the type that is there, before they are written: of 3 bytes a row. */
START_TEST(many_rows_of_a_type_that_stays)
{
	enum { ROWS = PIECE / 3 + 100 };
	struct h5_datatype *type = h5_datatype_make_compound(3, 2);
	struct h5_new_dataset how = {.type = type,
				     .space = {.kind = H5_SPACE_SIMPLE, .rank = 1, .dims = {1}, .max = {1}},
				     .layout = H5_LAYOUT_CONTIGUOUS};
	char *text = malloc(12 * ROWS), *p = text + sprintf(text, "a,b\n");
	uint8_t(*rows)[3] = malloc(ROWS * sizeof *rows);
	uint64_t target;

	SUCCEEDS(h5_datatype_add_member(type, "a", 0, h5_datatype_make_integer(1, false, H5_ORDER_LE)));
	SUCCEEDS(h5_datatype_add_member(type, "b", 1, h5_datatype_make_integer(2, false, H5_ORDER_BE)));
	SUCCEEDS(h5_dataset_create(scratch.file, &how, &target));
	h5_datatype_free(type);
	for (unsigned i = 0; i < ROWS; i++) {
		rows[i][0] = (uint8_t)i;
		rows[i][1] = (uint8_t)(i >> 8);
		rows[i][2] = (uint8_t)(i * 7);
		p += sprintf(p, "%u,%u\n", rows[i][0], rows[i][1] << 8 | rows[i][2]);
	}
	check_table(target, text, (size_t)(p - text), rows, ROWS * sizeof *rows);
	free(rows);
	free(text);
}
END_TEST

/* The byte order mark of UTF-8 is skipped at the start of the text, but not at the start of a later piece. */
START_TEST(a_mark_is_at_the_begin)
{
	char *text = malloc(PIECE + 5), (*rows)[4] = calloc(PIECE / 2 + 1, 4);

	memcpy(text, "t\n", 2);
	for (size_t i = 1; i < PIECE / 2; i++) {
		text[2 * i] = rows[i - 1][0] = (char)('a' + i % 26);
		text[2 * i + 1] = '\n';
	}
	memcpy(text + PIECE,
	       "\xef\xbb\xbf"
	       "b\n",
	       5);
	memcpy(rows[PIECE / 2 - 1],
	       "\xef\xbb\xbf"
	       "b",
	       4);
	check_table(H5_UNDEF, text, PIECE + 5, rows, (size_t)PIECE / 2 * 4);
	free(rows);
	free(text);
}
END_TEST

/* Columns without names are those of an array: all have the type that each of them needs. */
START_TEST(columns_have_one_type)
{
	static const int64_t whole[] = {1, 2, 3, 4};
	static const double last[] = {1, 2, 3, NAN}, third[] = {1, 2, NAN, 3}, half[] = {1, 2.5},
			    first_half[] = {1.5, 2};
	static const struct {
		const char *text;
		const void *expected;
		size_t size;
	} all[] = {{"0,1\n1,2\n3,4\n", whole, 32},
		   {"0,1\n1,2\n3,\n", last, 32},
		   {"0,1\n1,2\n,3\n", third, 32},
		   {"0,1\n3,\n", last + 2, 16},
		   {"0,1\n,3\n", third + 2, 16},
		   {"0,1\n1,2.5\n", half, 16},
		   {"0,1\n1.5,2\n", first_half, 16},
		   {"0,1\n.5,x\n", ".5x\0", 4},
		   {"0,1\nx,1e3\n",
		    "x\0\0"
		    "1e3",
		    6},
		   {"0,1\nab,c\n", "abc\0", 4},
		   {"0,1\nc,ab\n", "c\0ab", 4},
		   {"0,1\n,x\n", "\0x", 2},
		   {"0,1\n,\n", "\0\0", 2}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		check_table(H5_UNDEF, all[i].text, strlen(all[i].text), all[i].expected, all[i].size);
}
END_TEST

static int count_row(void *arg, const struct h5_csv_row *row)
{
	(void)row;
	++*(unsigned *)arg;
	return 0;
}

/* Lines are counted as editors do, whatever ends them, and empty ones, too. */
START_TEST(errors_tell_the_line)
{
	static const char *const texts[] = {"a\n\n\"b\"c", "a\r\n\n\"b\"c", "a\r\r\n\"b\"c", "a\n\r\n\"b\"c"};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		unsigned rows = 0;
		struct h5_csv_reader reader = {.row = count_row, .arg = &rows};

		ck_assert_int_eq(h5_csv_read(&reader, texts[i], strlen(texts[i])), -EINVAL);
		ck_assert_msg(strstr(h5_error_last()->text, "line 3:"), "%zu: %s", i, h5_error_last()->text);
		ck_assert_uint_eq(rows, 1);
		h5_csv_release(&reader);
		h5_csv_release(&reader); /* nothing is left of it */
	}
}
END_TEST

UNIT_MAIN_AROUND("tables", setup, teardown, columns_have_one_type, many_rows_are_written_in_pieces,
		 many_rows_of_a_type_that_stays, a_mark_is_at_the_begin, errors_tell_the_line)
