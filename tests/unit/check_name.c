#include "unit.h"
#include "vfs/name.h"

#include <string.h>

static void escapes_to(const char *name, size_t size, const char *want)
{
	char out[H5_NAME_MAX + 1], back[H5_NAME_MAX + 1];

	ck_assert_uint_eq(h5_name_escape(name, size, out), strlen(want));
	ck_assert_str_eq(out, want);
	ck_assert_uint_eq(h5_name_unescape(out, back), size);
	ck_assert_mem_eq(back, name, size);
}

START_TEST(escapes_and_back)
{
	static const char *const pairs[][2] = {
		{"a", "a"},
		{"", "%"},
		{".", "%2E"},
		{"..", "%2E%2E"},
		{"...", "..."},
		{"a/b", "a%2Fb"},
		{"/", "%2F"},
		{"%", "%25"},
		{"%4", "%4"},
		{"%41", "%41"},
		{"%%41", "%%41"},
		{"a%20b", "a%20b"},
		{"%%2541", "%%252541"},
		{"%%", "%%"},
		{"%2", "%2"},
		{"%2e%2E", "%2e%252E"},
		{"%00", "%2500"},
		{"%0", "%0"},
		{"x%2F", "x%252F"},
		{"%/", "%%2F"},
		{"%2/", "%2%2F"},
		{"a%zz", "a%zz"},
		{"%~", "%25~"},
		{"x%", "x%"},
		{"%2f", "%2f"},
		{"100%~a", "100%25~a"},
		{"\xff\xfe", "\xff\xfe"},
		{"..a", "..a"},
		{".a", ".a"},
		{"a.", "a."},
		{".%2E", ".%252E"},
		{" -", " -"},
	};

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		escapes_to(pairs[i][0], strlen(pairs[i][0]), pairs[i][1]);
	escapes_to("a\0b", 3, "a%00b");
	escapes_to("%\0", 2, "%%00");
}
END_TEST

/* The hashes are from an independent FNV-1a (64 bits: offset basis 0xcbf29ce484222325, prime 0x100000001b3).
 */
START_TEST(long_names_are_cut)
{
	char name[301], out[H5_NAME_MAX + 1];

	memset(name, 'x', 300);
	ck_assert_uint_eq(h5_name_escape(name, 255, out), 255);
	ck_assert(!h5_name_is_cut(out));
	ck_assert_uint_eq(h5_name_escape(name, 256, out), 218);
	ck_assert(h5_name_is_cut(out));
	ck_assert_mem_eq(out, name, 200);
	ck_assert_str_eq(out + 200, "%~295fa478294e7725");
	/* An escape that would straddle byte 200 stays out whole. */
	name[198] = '/';
	ck_assert_uint_eq(h5_name_escape(name, 256, out), 216);
	ck_assert_mem_eq(out, name, 198);
	ck_assert_mem_eq(out + 198, "%~", 2);
	name[197] = '/';
	ck_assert_uint_eq(h5_name_escape(name, 256, out), 218);
	ck_assert_mem_eq(out + 197, "%2F%~", 5);
}
END_TEST

START_TEST(attribute_names_count_their_prefix)
{
	char name[301], out[H5_NAME_MAX + 1];

	ck_assert_uint_eq(h5_name_of_attribute("a/%41", out), 10);
	ck_assert_str_eq(out, "user.a/%41");
	memset(name, 'n', 300);
	name[250] = 0;
	ck_assert_uint_eq(h5_name_of_attribute(name, out), 255);
	name[250] = 'n';
	name[251] = 0;
	ck_assert_uint_eq(h5_name_of_attribute(name, out), 218);
	ck_assert_mem_eq(out, "user.nnn", 8);
	ck_assert_str_eq(out + 200, "%~5e213bdb3ee7e039");
}
END_TEST

UNIT_MAIN("name", escapes_and_back, long_names_are_cut, attribute_names_count_their_prefix)
