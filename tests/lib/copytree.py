"""Copies of a mount: made by rsync, cp and h5fs --extract, compared in Python."""
import hashlib
import os
import stat
import subprocess
import tempfile

H5FS = os.environ.get("H5FS", "src/h5fs")
COMMANDS = {"rsync": ["rsync", "-aHX"], "cp": ["cp", "-a"], "extract": [H5FS, "-q", "--extract"]}


def xattr_folder():
    """A folder whose file system takes user xattrs as large as h5fs lists them; None where there is none."""
    for parent in (tempfile.gettempdir(), "/dev/shm", "/var/tmp"):
        try:
            with tempfile.NamedTemporaryFile(dir=parent) as f:
                os.setxattr(f.name, "user.test", b"x" * 60_000)
            return parent
        except OSError:
            continue
    return None


def describe(path):
    """What a copy must keep of one entry."""
    st = os.lstat(path)
    entry = {"mode": oct(st.st_mode), "mtime": st.st_mtime_ns}
    if stat.S_ISLNK(st.st_mode):
        entry["target"] = os.readlink(path)
        del entry["mtime"]  # of a symlink means nothing
        return entry
    entry["xattrs"] = {name: hashlib.sha256(os.getxattr(path, name)).hexdigest() for name in sorted(os.listxattr(path))
                       if name.startswith("user.")}
    if stat.S_ISREG(st.st_mode):
        digest = hashlib.sha256()
        with open(path, "rb") as f:
            while block := f.read(1 << 20):
                digest.update(block)
        entry["size"], entry["sha256"] = st.st_size, digest.hexdigest()
    return entry


def describe_tree(top):
    """Path relative to top -> entry; hard links name the first path of their file.

    A file that st_nlink calls single has one name for the tools, though a group in two places shows it twice."""
    top = os.fsencode(top)
    tree, first = {}, {}
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in [b"."] * (folder == top) + folders + sorted(files):
            path = os.path.join(folder, name)
            here = os.path.relpath(path, top)
            st = os.lstat(path)
            tree[here] = describe(path)
            if stat.S_ISREG(st.st_mode) and st.st_nlink > 1:
                tree[here]["same as"] = first.setdefault(st.st_ino, here)
    return tree


def copy_differences(top, file, parent):
    """Copies the tree at `top`, where the file is mounted, into temp folders below `parent`, by each command; the differences as lines
    of text."""
    source = describe_tree(top)
    said = []
    for name, command in COMMANDS.items():
        with tempfile.TemporaryDirectory(prefix="h5fs-copy-", dir=parent) as folder:
            copy = os.path.join(folder, "copy")
            os.mkdir(copy)
            source_name = file if name == "extract" else os.path.join(top, ".")
            run = subprocess.run([*command, source_name, copy], capture_output=True, check=False,
                                 env=dict(os.environ, LC_ALL="C"))
            if run.returncode or run.stderr:
                said.append(f"{name}: exit {run.returncode}: {run.stderr.decode(errors='replace')[:300].strip()}")
            got = describe_tree(copy)
            for path in sorted(set(source) | set(got)):
                if source.get(path) != got.get(path):
                    said.append(f"{name}: {path!r}: in the mount {source.get(path)}, in the copy {got.get(path)}")
            for path in got:  # so that the folders can be removed
                if not os.path.islink(os.path.join(os.fsencode(copy), path)):
                    os.chmod(os.path.join(os.fsencode(copy), path), 0o700)
    return said
