#!/usr/bin/python3
"""Files behind a URL whose host is known by a name, as long as the name leads anywhere and the server stays where it is."""
import ctypes
import os
import subprocess

from mountlib import Mount, main, read, write
from remotelib import AGAIN, Case

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
HOST = "far.h5fs.invalid"


class Names(Case):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root makes mount namespaces")
        libc = ctypes.CDLL(None, use_errno=True)
        for rc in libc.unshare(CLONE_NEWNS), libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None):
            self.assertEqual(rc, 0, os.strerror(ctypes.get_errno()))
        # From here on, no other process sees what is mounted, and no name is asked for in the network.
        self.hosts = self.put_over("/etc/hosts", b"")
        self.put_over("/etc/nsswitch.conf", b"hosts: files\n")

    def put_over(self, path, data):
        """A file of the test's own in the place of one of the system."""
        own = self.file(os.path.basename(path))
        write(own, data)
        subprocess.run(["mount", "--bind", own, path], check=True)
        self.addCleanup(subprocess.run, ["umount", path], check=True)
        return own

    def lead(self, address):
        """The name leads there from now on; None: nowhere. The file stays the same one, or nobody would see what is written."""
        with open(self.hosts, "w") as f:
            f.write(f"{address} {HOST}\n" if address else "")

    def test_name_that_goes_and_comes_back(self):
        """Reads fail after their tries, and the mount lives; it works again when the name leads to where the server is by then."""
        self.lead("127.0.0.1")
        with self.serve() as server, Mount(server.url("x.h5", host=HOST), "-f", options=AGAIN) as m:
            self.block(m, 2)
            with server.away():
                self.lead(None)
                reader = self.start("cat", m.at("big"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                self.assertIn("Input/output error", reader.communicate(timeout=60)[1])
                self.assertIn("resolve host", m.said())
                self.assertEqual(sorted(os.listdir(m.path)), ["big", "group", "rows"])
                self.block(m, 2)
                server.host = "127.0.0.2"
                self.lead(server.host)
            self.assertEqual(read(m.at("big")), self.big.tobytes())


if __name__ == "__main__":
    main()
