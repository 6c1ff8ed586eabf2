/* The frame of every unit test program: a suite's test cases, run and counted. */
#ifndef H5_TESTS_UNIT_H
#define H5_TESTS_UNIT_H

#include <check.h>
#include <stdlib.h>

/* Runs the tests (START_TEST functions) in one suite; exit status of main(). */
static inline int unit_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *all = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_set_timeout(all, 120);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(all, tests[i]);
	suite_add_tcase(suite, all);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define UNIT_MAIN(name, ...)                                                                                 \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return unit_run(name, tests, sizeof tests / sizeof *tests);                                  \
	}

#endif
