/* The frame of every unit test program: a suite's test cases, run and counted. */
#ifndef H5_TESTS_UNIT_H
#define H5_TESTS_UNIT_H

#include <check.h>
#include <dirent.h>
#include <stdlib.h>

/* libcheck's own writes a note to a file for each assertion that holds, which takes longer than most of what
 * is asserted. All of its other macros consist of this one. */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                             \
	(expr) ? (void)0                                                                                     \
	       : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__)

struct unit_test {
	const TTest *test;
	int times; /* that it runs, with _i from 0 on */
};

/* Runs the tests (START_TEST functions) in one suite, each in a process of its own unless CK_FORK=no; exit
 * status of main(). `setup` and `teardown` run around each; NULL: none. */
static inline int unit_run(const char *name, SFun setup, SFun teardown, const struct unit_test *tests,
			   size_t n)
{
	Suite *suite = suite_create(name);
	TCase *all = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_set_timeout(all, 300);
	for (size_t i = 0; i < n; i++)
		tcase_add_loop_test(all, tests[i].test, 0, tests[i].times);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The descriptors that are open, and some that always are. */
static inline unsigned unit_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Tests that run several times, {test, times}, ..., each time with something around it. */
#define UNIT_MAIN_LOOPS_AROUND(name, setup, teardown, ...)                                                   \
	int main(void)                                                                                       \
	{                                                                                                    \
		const struct unit_test tests[] = {__VA_ARGS__};                                              \
		return unit_run(name, setup, teardown, tests, sizeof tests / sizeof *tests);                 \
	}

#define UNIT_MAIN_LOOPS(name, ...) UNIT_MAIN_LOOPS_AROUND(name, NULL, NULL, __VA_ARGS__)

/* Each test once, with something around it. */
#define UNIT_MAIN_AROUND(name, setup, teardown, ...)                                                         \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const once[] = {__VA_ARGS__};                                                   \
		struct unit_test tests[sizeof once / sizeof *once];                                          \
		for (size_t i = 0; i < sizeof once / sizeof *once; i++)                                      \
			tests[i] = (struct unit_test){once[i], 1};                                           \
		return unit_run(name, setup, teardown, tests, sizeof tests / sizeof *tests);                 \
	}

#define UNIT_MAIN(name, ...) UNIT_MAIN_AROUND(name, NULL, NULL, __VA_ARGS__)

#endif
