#!/usr/bin/python3
"""Secrets that a mount of a URL uses are nowhere but in the process that fetches: the memory of the others (which is what a core has),
command lines, environments, logs, and what the mount shows of itself are searched for each."""
import base64
import os
import re
import secrets
import signal
import subprocess
import time
import unittest

import h5py

from credential_server import CredentialServer, Issued
from injectlib import Injector, available
from mountlib import Mount, main, own_children, read, write
from object_server import Keys, status
from remotelib import MIB, SAID, Case, fetcher_of

LARGE = 1 << 32  # bytes of a mapping: larger ones are a sanitizer's own, and hold no data
PLANTED = "planted-" + secrets.token_hex(16)
PROXY = {"no_proxy": "*", "https_proxy": "http://user:%s@proxy.invalid"}


def secret():
    return secrets.token_hex(24)


def memory_of(pid):
    """All of the memory of a process, piece by piece."""
    with open(f"/proc/{pid}/smaps") as f:
        maps = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) r.*\n(?:[A-Z]\w+: .*\n)*?Rss: +([1-9]\d*) kB$", f.read(), re.M)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
        for first, end, _ in maps:
            at, end = int(first, 16), int(end, 16)
            if end - at > LARGE:
                continue
            while at < end:
                try:
                    yield os.pread(f.fileno(), min(end - at, 16 * MIB), at)
                except OSError:
                    pass  # of the kernel's own
                at += 16 * MIB


def has(pid, needles):
    """Which of them are in the memory, the command line or the environment of a process. What was freed may have lost its first bytes."""
    ends = {needle.encode()[-20:]: needle for needle in needles}
    found = set()
    for data in (*memory_of(pid), read(f"/proc/{pid}/cmdline"), read(f"/proc/{pid}/environ")):
        found |= {ends[end] for end in ends if end in data}
    return found


def family(pid):
    """A process and its descendants."""
    return {pid}.union(*(family(child) for child in own_children(pid)))


class Leaks(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.file("served", "bucket"))
        with h5py.File(self.path, "a") as f:
            f.attrs["planted"] = PLANTED
        os.link(self.path, self.file("served", "bucket", "x.h5"))
        self.secrets = []

    def secret(self):
        self.secrets.append(secret())
        return self.secrets[-1]

    def search(self, url, server, *arguments, env=None, options="", issued=None):
        """Mounts, reads, and lets a read fail; then looks for the secrets."""
        env = {**{name: "" for name in os.environ if name.startswith("AWS_")}, "AWS_EC2_METADATA_DISABLED": "true", "HOME": self.folder,
               "AWS_CONFIG_FILE": "/no/file", "AWS_REGION": "eu-test-1", **PROXY, "https_proxy": PROXY["https_proxy"] % self.secret(), **(env or {})}
        with Mount(url, *arguments, options="remote_cache=16M,remote_tries=2,remote_timeout=5" + options, env=env) as m:
            self.block(m, 3)
            if issued:
                issued.revoke()
                self.block(m, 5)
                for keys, *_ in issued.grants.values():
                    self.secrets += [keys.secret, keys.token]
            for code in 403, 503:
                # What the server says of an error may have the secrets in it.
                server.on("", status(code, body=("<Error><Code>" + " ".join(self.secrets) + "</Code></Error>").encode()), None)
                with self.assertRaises(OSError):
                    self.block(m, 6)
                server.rules.clear()
            self.assertEqual(os.getxattr(m.path, "user.planted").decode(), PLANTED)
            # Sanitizers have a copy of the environment.
            copied = [kept for kept in self.secrets if any(kept in value for value in env.values())] if "since sanitizers" in SAID else []
            self.look(m, [*set(self.secrets).difference(copied), PLANTED])

    def look(self, m, needles):
        fetcher = fetcher_of(m.daemon)
        for pid in family(m.daemon) - {fetcher}:
            self.assertEqual(has(pid, needles), {PLANTED} if pid == m.daemon else set(), read(f"/proc/{pid}/comm"))
        if "-f" in m.command:
            os.kill(m.daemon, signal.SIGUSR1)
            end = time.monotonic() + 10
            while "statistics:" not in m.said() and time.monotonic() < end:
                time.sleep(0.01)
            self.assertRegex(m.said(), r"(?s)(HTTP 503|no permission).*statistics:")
        shown = m.said().encode() + read("/proc/self/mountinfo") + read(f"/proc/{fetcher}/cmdline")
        for name in "h5fs.stats", "h5fs.info":
            shown += os.getxattr(m.path, name)
        self.assertEqual([needle for needle in self.secrets if needle.encode() in shown], [])
        self.assertRegex(read(f"/proc/{fetcher}/limits").decode(), r"Max core file size +0 +0 ")
        try:
            found = has(fetcher, self.secrets)
        except PermissionError:
            return  # as it should be for all but a root with all its rights
        # So the search finds what is there.
        self.assertTrue(found)
        self.assertEqual(os.geteuid(), 0)

    def test_of_a_server(self):
        """Header lines, ~/.netrc, and the query of a presigned URL."""
        token, password, signature = (self.secret() for _ in range(3))
        self.secrets.append(base64.b64encode(f"me:{password}".encode()).decode())
        write(self.file("fields"), f"X-Token: {token}\n".encode())
        write(self.file(".netrc"), f"machine 127.0.0.1 login me password {password}\n".encode())
        for arguments in (), ("-f", "-d"):
            with self.serve() as server:
                self.search(f"{server.url('x.h5')}?X-Amz-Signature={signature}", server, *arguments, options=f",http_header=@{self.file('fields')}")
                first = server.requests[0]
                self.assertEqual((first.query, first.headers["X-Token"], first.headers["Authorization"]),
                                 ("X-Amz-Signature=" + signature, token, "Basic " + self.secrets[3]))
                server.wrong = []  # it has no keys, and does not expect a password

    def store(self, keys, issued=None, env=None, arguments=("-f",)):
        with self.serve(keys=keys) as server:
            server.keys_region = "eu-test-1"
            self.search("s3://bucket/x.h5", server, *arguments, env=env, issued=issued, options=f",s3_endpoint={server.url()[:-1]}")

    def test_of_the_environment(self):
        keys = Keys("AKIDEXAMPLE", self.secret(), self.secret(), "eu-test-1")
        self.store(keys, env={"AWS_ACCESS_KEY_ID": keys.access, "AWS_SECRET_ACCESS_KEY": keys.secret, "AWS_SESSION_TOKEN": keys.token})

    def test_of_a_profile(self):
        keys = Keys("AKIDEXAMPLE", self.secret(), self.secret(), "eu-test-1")
        write(self.file("credentials"), f"[default]\naws_access_key_id={keys.access}\naws_secret_access_key={keys.secret}\n"
              f"aws_session_token={keys.token}\n".encode())
        self.store(keys, env={"AWS_SHARED_CREDENTIALS_FILE": self.file("credentials")}, arguments=())

    def test_of_a_web_identity(self):
        token, issued = self.secret(), Issued("eu-test-1")
        write(self.file("token"), token.encode())
        with CredentialServer(issued, tls=True, identity=lambda: token) as giver:
            self.store(issued, issued, {"AWS_WEB_IDENTITY_TOKEN_FILE": self.file("token"), "AWS_ROLE_ARN": giver.arn,
                                        "AWS_ENDPOINT_URL_STS": giver.url("sts"), "CURL_CA_BUNDLE": giver.certificate})

    def test_of_a_container(self):
        token, issued = self.secret(), Issued("eu-test-1")
        with CredentialServer(issued) as giver:
            giver.container_token = token
            self.store(issued, issued, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": giver.url("container"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": token})

    @unittest.skipUnless(available(), "system calls cannot be put into processes")
    def test_core_of_the_fetcher(self):
        """It leaves none, and nobody without privileges can look into it."""
        with self.serve() as server, Mount(server.url("x.h5"), options="sandbox=no") as m:
            with Injector(fetcher_of(m.daemon)) as inside:
                self.assertEqual(inside.call("prctl", 3), 0)  # PR_GET_DUMPABLE

    @unittest.skipIf("since sanitizers" in SAID, "a sanitizer keeps what is freed")
    def test_of_memory(self):
        """A request leaves nothing behind in the fetcher, such as its header lines."""
        def size():
            return int(re.search(r"RssAnon:\s+(\d+) kB", read(f"/proc/{fetcher}/status").decode())[1])

        write(self.file("fields"), b"".join(b"X-Line-%d: %s\n" % (i, b"x" * 4000) for i in range(15)))
        with h5py.File(self.file("served", "links.h5"), "w") as f:
            for i in range(100):
                f[str(i)] = h5py.ExternalLink(f"{i}.h5", "/d")
                with h5py.File(self.file("served", f"{i}.h5"), "w") as other:
                    other["d"] = i
        with self.serve() as server, Mount(server.url("links.h5"), options=f"http_header=@{self.file('fields')}") as m:
            fetcher = fetcher_of(m.daemon)
            for i in range(100):
                if i == 20:
                    before = size()
                read(m.at(str(i)))
            self.assertEqual(server.count.requests, 101)
            self.assertLess(size() - before, 2000)

    def test_search(self):
        """It finds what is in a process, at each of the places."""
        here, there, above = (secret() for _ in range(3))
        code = f"import sys; kept = bytes.fromhex('{here.encode().hex()}') + b'.'; print(flush=True); sys.stdin.read()"
        with subprocess.Popen(["/usr/bin/python3", "-c", code, there], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={"ABOVE": above}) as process:
            process.stdout.readline()
            self.assertEqual(has(process.pid, [here, there, above, secret()]), {here, there, above})


if __name__ == "__main__":
    main()
