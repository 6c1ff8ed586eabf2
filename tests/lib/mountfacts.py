"""What a mount shows, to be compared with what another one shows of the same file."""
import hashlib
import os
import stat

PIECE = 1 << 20
MOST = 1 << 26  # bytes of a file that are read


def attempt(function, *arguments, **options):
    """What the function returns, or the errno by which it fails."""
    try:
        return function(*arguments, **options)
    except OSError as e:
        return e.errno


def digest(path):
    """The hash of the first bytes."""
    found = hashlib.sha256()
    with open(path, "rb", buffering=0) as f:
        while f.tell() < MOST and (piece := f.read(PIECE)):
            found.update(piece)
    return found.hexdigest()


def attributes(path):
    names = os.listxattr(path, follow_symlinks=False)
    return {name: attempt(os.getxattr, path, name, follow_symlinks=False) for name in [*names, "h5fs.info"]}


def facts_of(path, st):
    """All but the inode number. The root of a file in a folder has no size before the file is opened."""
    what = [stat.filemode(st.st_mode), st.st_uid, st.st_gid, st.st_nlink, st.st_mtime_ns, st.st_size, st.st_blocks]
    if stat.S_ISLNK(st.st_mode):
        return [*what, attempt(os.readlink, path)]
    if stat.S_ISREG(st.st_mode):
        what.append(attempt(digest, path))
    return [*what, attempt(attributes, path)]


def facts_of_tree(root, count_most=10**9):
    """{path: facts} of all that is below the root, in the order of listings. An inode that was seen before is told by the
    path that it had then. What a directory is to the root itself, only its attributes tell."""
    found = {"": attempt(attributes, root)}
    seen = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        names = attempt(os.listdir, os.path.join(root, folder))
        if isinstance(names, int):
            found[folder + "/"] = names
            continue
        for name in names:
            path = os.path.join(folder, name)
            st = attempt(os.lstat, os.path.join(root, path))
            if isinstance(st, int):
                found[path] = st
                continue
            found[path] = [seen.setdefault(st.st_ino, path), *facts_of(os.path.join(root, path), st)]
            if stat.S_ISDIR(st.st_mode):
                folders.append(path)
            if len(found) >= count_most:
                return found
    return found
