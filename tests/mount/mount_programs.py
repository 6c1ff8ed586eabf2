#!/usr/bin/python3
"""Programs that people use work in a mount as in any folder: editors, git, SQLite, make, archives."""
import os
import pty
import select
import sqlite3
import subprocess
import sys
import time
import zipfile

import h5py

import judges
from mountlib import Mount, WriteCase, main, read, write

SECONDS = 60  # an editor that has not ended by then hangs


def append(path, data):
    with open(path, "ab") as f:
        f.write(data)


class Programs(WriteCase):
    def setUp(self):
        super().setUp()
        self.path = self.file("data.h5")
        self.mount = Mount(self.path, options="create")
        m = self.mount.__enter__()
        self.addCleanup(self.end)
        self.root = m.path
        self.expected = {}

    def at(self, name):
        return os.path.join(self.root, name)

    def end(self):
        """What the mount has shown is what all judges find in the file."""
        self.mount.__exit__(None, None, None)
        with judges.File(self.path) as f:
            for name, data in self.expected.items():
                self.assertEqual(bytes(f[name][...]), data, name)

    def run_shell(self, script, **options):
        # The `make` that runs the tests is not to lead the one that is tested.
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        environment.update(HOME=self.file("."), GIT_CONFIG_NOSYSTEM="1", LC_ALL="C")
        done = subprocess.run(["sh", "-euc", script], cwd=self.root, env=environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False, **options)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def expect(self, name, data):
        self.assertEqual(read(self.at(name)), data)
        self.expected[name] = data

    def test_git(self):
        self.run_shell("""
            git init -q one; cd one
            git config user.email somebody@example.org; git config user.name Somebody
            for i in 1 2 3 4 5; do echo "line $i" >> text; mkdir -p folder; echo $i > folder/file$i; git add .; git commit -qm "change $i"; done
            git mv text renamed; git commit -qm moved; git checkout -q -b branch HEAD~3; git checkout -q -
            git gc -q; git fsck --strict; test -z "$(git status --porcelain)"
            cd ..; git clone -q one two; test "$(git -C one rev-parse HEAD)" = "$(git -C two rev-parse HEAD)"; git -C two fsck""")
        self.expect("two/renamed", b"".join(b"line %d\n" % i for i in range(1, 6)))

    def test_sqlite(self):
        for mode in "delete", "truncate", "persist", "wal":
            with self.subTest(mode):
                database = sqlite3.connect(self.at(mode))
                self.assertEqual(database.execute(f"pragma journal_mode={mode}").fetchone()[0], mode)
                with database:
                    database.execute("create table t(i integer primary key, text)")
                    database.executemany("insert into t(text) values(?)", [(f"row {i}" * 20,) for i in range(2000)])
                try:
                    with database:
                        database.execute("delete from t")
                        raise ArithmeticError
                except ArithmeticError:
                    pass
                with database:
                    database.execute("delete from t where i % 3")
                database.execute("vacuum")
                self.assertEqual(database.execute("pragma integrity_check").fetchone()[0], "ok")
                self.assertEqual(database.execute("select count(*) from t").fetchone()[0], 666)
                database.close()

    def test_make(self):
        write(self.at("Makefile"), b"all: sum\nsum: a.o b.o\n\tcc -o sum a.o b.o\n%.o: %.c\n\tcc -c -o $@ $<\n")
        write(self.at("a.c"), b"int b(void);\nint main(void) { return b() != 42; }\n")
        write(self.at("b.c"), b"int b(void) { return 41; }\n")
        self.run_shell("make")
        self.assertIn("up to date", self.run_shell("make").lower().replace("nothing to be done", "up to date"))
        write(self.at("b.c"), b"int b(void) { return 42; }\n")
        said = self.run_shell("make")
        self.assertIn("b.c", said)
        self.assertNotIn("a.c", said)
        self.run_shell(f"cp sum '{self.file('sum')}'; chmod +x '{self.file('sum')}'; '{self.file('sum')}'")

    def test_archives(self):
        source = self.file("source")
        os.makedirs(source + "/sub")
        for i in range(20):
            write(f"{source}/sub/{i}", bytes([i]) * i * 1000)
        with zipfile.ZipFile(self.file("a.zip"), "w") as archive:
            for i in range(20):
                archive.write(f"{source}/sub/{i}", f"sub/{i}")
        self.run_shell(f"unzip -q '{self.file('a.zip')}'; diff -r sub '{source}/sub'; tar cf a.tar sub; rm -r sub; tar xf a.tar; diff -r sub '{source}/sub'")
        self.expect("sub/19", bytes([19]) * 19000)

    def test_editing_in_place(self):
        self.run_shell("""
            seq 100 > numbers; sed -i s/9/nine/ numbers; sort -o numbers numbers; head -n 3 numbers > top
            name=$(mktemp ./temporary.XXXXXX); echo x > "$name"; mv "$name" moved; folder=$(mktemp -d ./folder.XXXXXX); mkdir -p "$folder/a/b"; echo y > "$folder/a/b/c"
            find "$folder" -delete; test ! -e "$folder"; cp --backup=numbered top moved""")
        self.expect("moved", read(self.at("top")))
        self.expect("moved.~1~", b"x\n")

    def type(self, keys, *command):
        """Runs an editor in a terminal, and types."""
        child, terminal = pty.fork()
        if not child:
            os.chdir(self.root)
            os.environ.update(TERM="xterm", HOME=self.file("."))
            os.execvp(command[0], command)
        said, end = b"", time.monotonic() + SECONDS
        while time.monotonic() < end:
            # It listens when it says nothing more.
            ready = select.select([terminal], [], [], 0.3)[0]
            if ready:
                try:
                    said += os.read(terminal, 4096)
                except OSError:
                    break
            elif keys:
                os.write(terminal, keys.pop(0))
        else:
            os.kill(child, 9)
        os.close(terminal)
        self.assertEqual(os.waitpid(child, 0)[1], 0, said)

    def test_vim(self):
        write(self.at("text"), b"first\n")
        for backup in "nobackup nowritebackup", "writebackup backup backupcopy=no", "writebackup backup backupcopy=yes":
            self.type([b"GoMORE\x1b", b":wq\r"], "vim.tiny", "-u", "NONE", "-c", f"set backupskip= {backup}", "text")
        self.expect("text", b"first\nMORE\nMORE\nMORE\n")
        self.assertEqual(read(self.at("text~")), b"first\nMORE\nMORE\n")

    def test_nano(self):
        write(self.at("text"), b"first\n")
        self.type([b"MORE \x0f", b"\r", b"\x18"], "nano", "-B", "text")
        self.expect("text", b"MORE first\n")
        self.assertEqual(read(self.at("text~")), b"first\n")


DATABASE_WORKER = """
import sqlite3, sys
path, who, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
database = sqlite3.connect(path, timeout=60, isolation_level=None)
database.execute("pragma synchronous=extra")
for i in range(count):
    database.execute("begin immediate")
    database.execute("insert into t(who, i, text) values(?, ?, ?)", (who, i, "x" * (i * 31 % 5000)))
    database.execute("update n set rows = rows + 1")
    database.execute("rollback" if i % 5 == 0 else "commit")
    if i % 5:
        print(who, i, flush=True)
    rows = database.execute("select (select rows from n), (select count(*) from t)").fetchone()
    assert rows[0] == rows[1], rows
"""


class Databases(WriteCase):
    """SQLite's databases with several processes at once, by a rollback journal or a WAL, whose index they share as mapped memory."""

    def make(self, path, mode):
        database = sqlite3.connect(path)
        self.assertEqual(database.execute(f"pragma journal_mode={mode}").fetchone()[0], mode)
        database.executescript("create table t(who, i, text); create table n(rows); insert into n values(0)")
        database.close()

    def start(self, path, count):
        return [subprocess.Popen([sys.executable, "-c", DATABASE_WORKER, path, str(who), str(count)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for who in range(3)]

    def judge(self, path):
        """The transactions that are in the database."""
        database = sqlite3.connect(path)
        self.assertEqual(database.execute("pragma integrity_check").fetchone()[0], "ok")
        rows = set(database.execute("select who, i from t"))
        self.assertEqual(database.execute("select rows from n").fetchone()[0], len(rows))
        database.close()
        return rows

    def test_several_processes(self):
        for mode in "delete", "wal":
            path = self.file(f"{mode}.h5")
            with self.subTest(mode), Mount(path, options="create") as m:
                self.make(m.at("db"), mode)
                for worker in self.start(m.at("db"), 20):
                    self.assertEqual((worker.communicate()[1], worker.returncode), ("", 0))
                self.assertEqual(self.judge(m.at("db")), {(who, i) for who in range(3) for i in range(20) if i % 5})

    def test_killed(self):
        """After the daemon was killed the database is sound, and has what was told to be in it."""
        for mode in "delete", "wal":
            path = self.file(f"{mode}.h5")
            m = Mount(path, options="create")
            m.__enter__()
            workers = []
            try:
                self.make(m.at("db"), mode)
                workers = self.start(m.at("db"), 10_000)
                told = [workers[0].stdout.readline() for _ in range(12)]
                m.kill()
                told += [line for worker in workers for line in worker.communicate()[0].splitlines()]
            finally:
                for worker in workers:
                    worker.kill()
                    worker.wait()
                self.assertEqual(m.end(), "")
            with self.subTest(mode), Mount(path, options="rw") as m:
                self.assertLessEqual({tuple(map(int, line.split())) for line in told}, self.judge(m.at("db")))


class Times(WriteCase):
    """A file has a later time only if it was changed itself: its contents, or (ctime) its names or attributes."""

    def times(self, m, *names):
        return [(s.st_mtime_ns, s.st_ctime_ns) for s in (os.stat(m.at(name)) for name in names)]

    def test_each_object_has_its_own(self):
        path = self.file("data.h5")
        with h5py.File(path, "w", libver="latest") as f:
            for name in "a", "b":
                f.create_dataset(name, (4,), "u1", maxshape=(None,), chunks=(4,))
            f.create_group("g")
            layout = h5py.VirtualLayout((4,), "u1")
            layout[:] = h5py.VirtualSource(".", "a", (4,))
            f.create_virtual_dataset("v", layout)
        os.utime(path, (10 ** 9, 10 ** 9))
        names = "a", "b", "g", "v", ""
        a, b, g, v, root = range(5)
        changes = [  # whose contents change, whose names or attributes, and how
            ((a, v), (), lambda m: append(m.at("a"), b"more")),
            ((v,), (b,), lambda m: os.setxattr(m.at("b"), "user.units", b"m")),
            ((v,), (b,), lambda m: os.removexattr(m.at("b"), "user.units")),
            ((v,), (b,), lambda m: os.setxattr(m.at("b"), "user.units", b"km")),
            ((v,), (b,), lambda m: os.unlink(m.at(".h5fs/attrs/b/units"))),
            ((g, v), (), lambda m: os.mkdir(m.at("g/new"))),
            ((v, root), (a,), lambda m: os.link(m.at("a"), m.at("again"))),
            ((g, v, root), (a,), lambda m: os.rename(m.at("again"), m.at("g/again"))),
            ((a, v), (), lambda m: os.truncate(m.at("a"), 2)),
            ((g, v), (a,), lambda m: os.unlink(m.at("g/again"))),
            ((v, root), (), lambda m: write(m.at("plain"), b"new contents")),
            ((b, v, root), (), lambda m: os.rename(m.at("plain"), m.at("b"))),
            ((b, v), (), lambda m: os.setxattr(m.at("b"), "h5fs.shape", b"3")),
        ]
        with Mount(path, options="rw") as m:
            before = self.times(m, *names)
            self.assertEqual([mtime for mtime, _ in before], [10 ** 18] * 5)
            for i, (contents, status, change) in enumerate(changes):
                change(m)
                os.sync()
                after = self.times(m, *names)
                for n, name in enumerate(names):
                    for part, changed in (0, n in contents), (1, n in contents + status):
                        (self.assertGreater if changed else self.assertEqual)(after[n][part], before[n][part], (i, name, part))
                before = after


if __name__ == "__main__":
    main()
