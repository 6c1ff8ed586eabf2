"""What libhdf5, through h5py, finds in a file: all of its objects, by the first path that leads to each.

    walk(path)      {path: facts}; the facts of an object are a dictionary:

    kind        "group", "dataset" or "datatype"
    count       how many names it says it has
    attributes  {name: value()}
    types       {name: path of the committed datatype that the attribute has}
    links       of a group: {name: ("hard", path), ("soft", target) or ("external", file, path)}
    type        of a dataset: the path of its committed datatype, or None
    dtype       of a dataset: as NumPy writes it, "text" for strings of variable length; data: its bytes, or value() if they cannot stand alone
    shape, maxshape, chunks, filters, fill, itemsize"""
import h5py
import numpy


def is_text(tid):
    return tid.get_class() == h5py.h5t.STRING and tid.is_variable_str()


def has_pointers(tid):
    """Whether elements of this type refer to something outside of them."""
    kind = tid.get_class()
    if kind in (h5py.h5t.VLEN, h5py.h5t.REFERENCE):
        return True
    if kind == h5py.h5t.STRING:
        return tid.is_variable_str()
    if kind == h5py.h5t.ARRAY:
        return has_pointers(tid.get_super())
    if kind == h5py.h5t.COMPOUND:
        return any(has_pointers(tid.get_member_type(i)) for i in range(tid.get_nmembers()))
    return False


def value(v, path_of):
    """A value as something that can be compared; references as paths."""
    if isinstance(v, h5py.Empty):
        return ("empty",)
    if isinstance(v, h5py.RegionReference):
        return ("region",)
    if isinstance(v, h5py.Reference):
        return ("reference", path_of(v) if v else None)
    if isinstance(v, str):
        return ("text", v)
    if isinstance(v, bytes):
        return ("bytes", bytes(v))
    if isinstance(v, numpy.void) and v.dtype.names:
        return ("members", *(value(v[name], path_of) for name in v.dtype.names))
    v = numpy.asarray(v)
    if v.dtype.hasobject:
        return ("array", v.shape, *(value(one, path_of) for one in v.ravel()))
    return ("numbers", v.dtype.str, v.shape, v.tobytes())


class Walk:
    def __init__(self, file):
        self.file, self.paths, self.found, self.order = file, {}, {}, []
        self.name(file["/"], "/")
        for path, item in self.order:
            self.found[path].update(self.facts(item))

    @staticmethod
    def address(oid):
        return h5py.h5o.get_info(oid).addr

    def path_of(self, reference):
        try:
            return self.paths.get(self.address(h5py.h5r.dereference(reference, self.file.id)))
        except (ValueError, RuntimeError, KeyError, OSError):
            return None

    def name(self, item, path):
        """Names the object, and all below it that have none yet."""
        info = h5py.h5o.get_info(item.id)
        self.paths[info.addr] = path
        self.order.append((path, item))
        kind = "group" if isinstance(item, h5py.Group) else "dataset" if isinstance(item, h5py.Dataset) else "datatype"
        facts = self.found[path] = {"kind": kind, "count": info.rc}
        if kind != "group":
            return
        links = facts["links"] = {}
        for name in sorted(item):
            link = item.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                links[name] = ("soft", link.path)
            elif isinstance(link, h5py.ExternalLink):
                links[name] = ("external", link.filename, link.path)
            else:
                child = item[name]
                there = path.rstrip("/") + "/" + name
                if self.address(child.id) not in self.paths:
                    self.name(child, there)
                links[name] = ("hard", self.paths[self.address(child.id)])

    @staticmethod
    def check_orders(item):
        """Each index has all names."""
        names = []
        if isinstance(item, h5py.Group) and item.id.get_create_plist().get_link_creation_order():
            item.id.links.iterate(lambda name: names.append(name.decode("utf-8", "surrogateescape")), idx_type=h5py.h5.INDEX_CRT_ORDER)
            if sorted(names) != sorted(item):
                raise AssertionError(f"{item.name}: by their order {names}, not {list(item)}")
        names = []
        h5py.h5a.iterate(item.id, lambda name, *_: names.append(name.decode("utf-8", "surrogateescape")), index_type=h5py.h5.INDEX_CRT_ORDER)
        if sorted(names) != sorted(item.attrs) or len(names) != h5py.h5a.get_num_attrs(item.id):
            raise AssertionError(f"{item.name}: attributes by their order {names}, not {list(item.attrs)}")

    def committed(self, tid):
        return self.paths.get(self.address(tid), "gone") if tid.committed() else None

    def facts(self, item):
        self.check_orders(item)
        attributes, types = {}, {}
        for name in item.attrs:
            attributes[name] = value(item.attrs[name], self.path_of)
            committed = self.committed(item.attrs.get_id(name).get_type())
            if committed:
                types[name] = committed
        found = {"attributes": attributes, "types": types}
        return {**found, **self.contents(item)} if isinstance(item, h5py.Dataset) else found

    def contents(self, d):
        plist, tid = d.id.get_create_plist(), d.id.get_type()
        if has_pointers(tid):
            data = value(d[()], self.path_of)
        else:
            data = numpy.zeros(d.shape or (), f"V{tid.get_size()}")
            if data.size and d.shape is not None:
                d.id.read(h5py.h5s.ALL, h5py.h5s.ALL, data, tid)
            data = data.tobytes() if d.shape is not None else b""
        fill = numpy.zeros((), d.dtype)
        if not has_pointers(tid) and plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
            plist.get_fill_value(fill)
        return {"fill": b"" if has_pointers(tid) else fill.tobytes(), "itemsize": tid.get_size(), "type": self.committed(tid), "dtype": "text" if is_text(tid) else str(d.dtype), "data": data, "shape": d.shape, "maxshape": d.maxshape,
                "chunks": d.chunks, "filters": [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]}


def walk(path):
    with h5py.File(path, "r") as f:
        return Walk(f).found
