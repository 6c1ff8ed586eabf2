#!/usr/bin/python3
"""A mount that Debian's NFS server in user space (nfs-ganesha) exports: it keeps handles of files, and nothing else of them."""
import os
import shutil
import socket
import subprocess
import time

import h5py
import numpy

from mountlib import Mount, MountCase, main, read, write

PROGRAMS = ("ganesha.nfsd", "nfs-ls", "nfs-cat")
SECONDS = 30


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Ganesha(MountCase):
    def setUp(self):
        super().setUp()
        missing = [name for name in PROGRAMS if not shutil.which(name)]
        if missing:
            self.skipTest(f"there is no {missing[0]}: contrib/install-deps servers")
        with h5py.File(self.file("data.h5"), "w") as f:
            for i in range(20):
                f[f"group{i}/below/data"] = numpy.arange(i)

    def serve(self, path):
        self.port = free_port()
        os.mkdir(self.file("recovery"))
        write(self.file("conf"), f"""
            NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {self.port}; Bind_addr = 127.0.0.1; Enable_RQUOTA = false; Enable_NLM = false; }}
            NFSV4 {{ Graceless = true; Minor_Versions = 0; RecoveryBackend = fs; RecoveryRoot = {self.file('recovery')}; }}
            MDCACHE {{ Entries_HWMark = 10; }}
            EXPORT {{ Export_Id = 1; Path = {path}; Pseudo = /data; Access_Type = RO; Squash = No_Root_Squash; SecType = sys;
                Filesystem_id = 7.7; FSAL {{ Name = VFS; }} }}
            LOG {{ Default_Log_Level = EVENT; }}""".encode())
        server = subprocess.Popen(["ganesha.nfsd", "-F", "-L", self.file("log"), "-f", self.file("conf"), "-p", self.file("pid")],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop, server)
        end = time.monotonic() + SECONDS
        while not (os.path.exists(self.file("log")) and b"NFS SERVER INITIALIZED" in read(self.file("log"))):
            self.assertIsNone(server.poll(), "it has ended")
            self.assertLess(time.monotonic(), end, "it does not begin")
            time.sleep(0.01)
        return server

    @staticmethod
    def stop(server):
        server.kill()
        server.wait()

    def ask(self, program, path, *arguments):
        url = f"nfs://127.0.0.1/data{path}?version=4&nfsport={self.port}"
        return subprocess.run([program, *arguments, url], capture_output=True, timeout=SECONDS)

    def test_it_finds_what_the_kernel_has_forgotten(self):
        with Mount(self.file("data.h5"), options="allow_other") as m:
            server = self.serve(m.path)
            try:
                for _ in range(3):
                    listing = self.ask("nfs-ls", "", "-R")
                    self.assertEqual((listing.returncode, len(listing.stdout.splitlines())), (0, 60), listing.stderr)
                    write("/proc/sys/vm/drop_caches", b"2")
                    for i in range(20):
                        got = self.ask("nfs-cat", f"/group{i}/below/data")
                        self.assertEqual((got.returncode, got.stdout), (0, numpy.arange(i).tobytes()), got.stderr)
            finally:
                self.stop(server)


if __name__ == "__main__":
    main()
