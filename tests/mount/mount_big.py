#!/usr/bin/python3
"""Groups with 100,000 links."""
import os
import random

import h5py

from mountlib import Mount, MountCase, main, read

LINKS = 100_000


class BigGroup(MountCase):
    def check(self, libver):
        path = self.file("big.h5")
        names = [b"link %06d" % i for i in range(LINKS)]
        random.Random(1).shuffle(names)
        with h5py.File(path, "w", libver=libver) as f:
            f["even"] = 0
            f["odd"] = 1
            g = f.create_group("g")
            for name in names:
                g.id.links.create_hard(name, f.id, b"odd" if int(name[5:]) % 2 else b"even")
        with Mount(path) as m:
            folder = os.fsencode(m.at("g"))
            even, odd = os.stat(m.at("even")), os.stat(m.at("odd"))
            self.assertEqual((even.st_nlink, odd.st_nlink), (LINKS // 2 + 1, LINKS // 2 + 1))
            self.assertEqual(os.stat(folder).st_size, LINKS)
            listed = [(entry.name, entry.inode()) for entry in os.scandir(folder)]
            self.assertEqual(len(listed), LINKS)
            self.assertEqual(dict(listed), {n: (odd if int(n[5:]) % 2 else even).st_ino for n in names})
            for i in random.Random(2).sample(range(LINKS), 2000):
                name = b"link %06d" % i
                self.assertEqual(read(os.path.join(folder, name)), (i % 2).to_bytes(8, "little"), name)
            for name in (b"link 100000", b"link 0", b"link 0000000", b"a", b"z"):
                self.assertFalse(os.path.lexists(os.path.join(folder, name)))

    def test_symbol_table(self):
        self.check("earliest")

    def test_dense(self):
        self.check("latest")


if __name__ == "__main__":
    main()
