"""Rows about names: many small files are copied into a mount, and removed from it."""
import os
import shutil

from processes import Mount, timed

FILE = 1024  # bytes of each


def small_files(bench):
    """A folder of small files, 100 in each of its folders; how many."""
    count = bench.data.small_files
    folder = bench.data.file("small")
    return folder, count


def new_file(bench):
    path = bench.scratch + "-names.h5"
    if os.path.exists(path):
        os.unlink(path)
    return path


def copied(path):
    """Every file has come, with its size."""
    sizes = [os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
    return len(sizes), set(sizes)


def copying(removing):
    """`cp -r` of the files into an empty mount; `removing`: then `rm -r` of them, which is measured instead."""
    def measure(bench):
        source, count = small_files(bench)

        def in_mount(mount):
            with mount as m:
                elapsed = timed("cp", "-r", source, m.at("copy"))
                if copied(m.at("copy")) != (count, {FILE}):
                    raise AssertionError("not all files have come")
                return count / (timed("rm", "-r", m.at("copy")) if removing else elapsed)

        def in_h5fs():
            path = new_file(bench)
            return in_mount(bench.h5fs(path, "create"))

        def in_bindfs():
            plain = bench.scratch + "-plain"
            shutil.rmtree(plain, ignore_errors=True)
            os.mkdir(plain)
            return in_mount(Mount(["bindfs", "-f", plain], f"{bench.point}-bindfs"))

        def in_h5py():
            return count / bench.h5py("remove" if removing else "create", new_file(bench), source)

        return bench.interleave({"h5fs": in_h5fs, "libhdf5": in_h5py, "limit": in_bindfs})
    return measure
