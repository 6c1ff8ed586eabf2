#!/usr/bin/python3
"""stress-ng's stressors of file systems in a mount. Whatever they do at once, the file is sound afterwards, and they leave nothing in it.
Some ask for what no mount has: `access` for modes, `utime` for times; `filename` only makes portable names, since not every `%` is a
name (doc/h5fs.1, Names). H5FS_STRESS=SECONDS runs all of them, each so long, otherwise three do a few hundred rounds."""
import os
import shutil
import subprocess
import unittest

import h5py

import judges
from mountlib import H5FS, Mount, MountCase, main

SECONDS = os.environ.get("H5FS_STRESS")
FEW = {"dentry": 400, "rename": 400, "filename": 10}
ALL = """chdir chmod chown copy-file dentry dir dirdeep dirmany dup fallocate fault fcntl fiemap filename flock fpunch fsize fstat getdent handle hdd
    inotify iomix lease link locka lockf lockofd mknod mmap msync open readahead rename revio seek sendfile splice symlink sync-file touch
    xattr""".split()


@unittest.skipUnless(shutil.which("stress-ng"), "there is no stress-ng")
class Stress(MountCase):
    def test_stressors(self):
        for i, stressor in enumerate(ALL if SECONDS else FEW):
            style = ("create", "earliest", "latest")[i % 3]
            with self.subTest(stressor, style=style):
                self.run_stressor(stressor, style)

    def run_stressor(self, stressor, style):
        path = self.file(f"{stressor}.h5")
        if style != "create":
            h5py.File(path, "w", libver=style).close()
        command = ["stress-ng", f"--{stressor}", "2", "--filename-opts", "posix", "--verify", "-q"]
        command += ["--timeout", SECONDS] if SECONDS else [f"--{stressor}-ops", str(FEW[stressor])]
        with Mount(path, options="create" if style == "create" else "rw") as m:
            # A relative path, since `symlink` would have absolute targets.
            folder, name = os.path.split(m.path)
            run = subprocess.run([*command, "--temp-path", name], cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertEqual(os.listdir(m.path), [])
        with judges.File(path) as f:
            self.assertEqual(list(f), [])
        checked = subprocess.run([H5FS, "--check", path], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        os.unlink(path)


if __name__ == "__main__":
    main()
