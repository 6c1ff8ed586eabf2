"""What the tests of views share."""
import os
import random

from mountlib import MountCase


def tree(folder):
    """All names below a folder: of links with their targets, of directories with a slash."""
    found = set()
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            whole = os.path.join(path, name)
            shown = os.path.relpath(whole, folder)
            if os.path.islink(whole):
                found.add(f"{shown} -> {os.readlink(whole)}")
            else:
                found.add(shown + "/" * (name in folders))
    return found


class ViewCase(MountCase):
    def assertRanges(self, path, whole):
        """Bytes from anywhere are those of the whole, whose size stat tells; none is written."""
        self.assertEqual(os.stat(path).st_size, len(whole))
        fd = os.open(path, os.O_RDONLY)
        try:
            pick = random.Random(7)
            for _ in range(40):
                offset, n = pick.randrange(len(whole) + 1), pick.choice((1, 63, 4096, 70000))
                self.assertEqual(os.pread(fd, n, offset), whole[offset:offset + n], (path, offset, n))
            self.assertEqual(os.pread(fd, 10, len(whole) + 5), b"")
        finally:
            os.close(fd)
