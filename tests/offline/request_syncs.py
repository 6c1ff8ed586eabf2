#!/usr/bin/python3
"""How often requests that change the file sync it: not at all until the commit, which does it twice (doc/writing.md), whatever it commits.
Only what makes a dataset smaller is committed at once, with all before it in a commit of its own, and an exchange commits what both names
lead to under a third name first."""
import os
import shutil
import tempfile
import unittest

import crashlib
import request_faults

STYLES = {name: request_faults.STYLES[name] for name in ("symbol tables", "latest", "shared messages")} | {"split": dict(driver="split")}
OF_A_COMMIT = 2
AT_ONCE = {name: 2 for name in ("shape", "resize", "truncate", "shape, fewer columns", "shape, fewer columns, filtered",
                                "shape, fewer rows and more columns", "shape, of both fewer", "exchange", "exchange of groups")}
# These change more after that.
GO_ON = {"exchange", "exchange of groups", "shape, fewer rows and more columns"}
# A new file is still open: its name goes for each commit, and comes again.
OPEN = {"create", "declare", "write to a new file", "flush"}


class Syncs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def copy(self, style):
        """A new file; its name."""
        names = ["data-m.h5", "data-r.h5"] if style == "split" else ["data.h5"]
        for name in names:
            shutil.copy(os.path.join(self.folder, "pristine" + name), os.path.join(self.folder, name))
        return os.path.join(self.folder, names[0])

    def make(self, style):
        request_faults.make(os.path.join(self.folder, "pristinedata" + (".h5" if style != "split" else "")), STYLES[style])

    def syncs(self, style, *requests):
        """Of each request, one after the other in a new file."""
        record = os.path.join(self.folder, "record")
        shell = crashlib.Shell(self.copy(style), record)
        self.addCleanup(shell.stop)
        calls = [0]
        for words in requests:
            error, count, _, _ = shell.ask(*words)
            self.assertEqual(error, 0, words[:2])
            calls.append(count)
        self.assertEqual(shell.end(), 0)
        events = crashlib.Record(record).events
        return [sum(event[0] == crashlib.SYNC for event in events[begin:end]) for begin, end in zip(calls, calls[1:])]

    def test_requests(self):
        for style in STYLES:
            self.make(style)
            for name, (before, request) in request_faults.NAMES.items():
                with self.subTest(style, request=name):
                    # The first commit has more to do.
                    found = self.syncs(style, *before, ("mkdir", "first"), ("commit",), request, ("commit",), ("commit",))
                    commits = AT_ONCE.get(name, 0)
                    then = name not in AT_ONCE or name in GO_ON
                    self.assertEqual(found[-3:-1], [OF_A_COMMIT * commits, OF_A_COMMIT * then])
                    self.assertLessEqual(found[-1], OF_A_COMMIT * (name in OPEN))

    def test_elements_and_space(self):
        """Elements that are overwritten are certain with one sync. When free space at the end was given back, there is nothing to sync."""
        for style in STYLES:
            with self.subTest(style):
                self.make(style)
                found = self.syncs(style, ("open", "data", 0, os.O_RDWR), ("mkdir", "first"), ("commit",), ("write", 0, 100, 5000, 1), ("commit",),
                                   ("commit",), ("close", 0), ("unlink", "data"), ("unlink", "events"), ("commit",), ("release",), ("release",))
                self.assertEqual(found[3:6], [0, 1, 0])
                self.assertEqual(found[-1], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
