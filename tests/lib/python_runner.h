/* A Python that stays while the test program runs and has h5py already: it takes ten times as long to load
 * as most judges to say what they think. All tests of the program share it, each in its own process. */
#ifndef H5_TESTS_PYTHON_RUNNER_H
#define H5_TESTS_PYTHON_RUNNER_H

#include <stdbool.h>

#define PYTHON_RUNNER "/usr/bin/python3 " /* what its commands begin with */

/* Runs a command of the shell that consists of PYTHON_RUNNER, a script or -c and a program, and arguments;
 * true: it has succeeded. source: the folder of the sources. */
bool python_runner_run(const char *source, const char *command);
/* Runs any command with each other version of libhdf5 that contrib/judges has made; their Pythons stay, too.
 * Each has a copy of the folder in its place. Some questions only are passed on, unless H5FS_JUDGE=all. */
bool python_runner_ask_others(const char *source, const char *folder, const char *command);

#endif
