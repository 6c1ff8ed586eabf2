"""Servers that others wrote, for tests of files that are far away: nginx, and OpenStack Swift, which answers as S3 does. Each has a folder
and ports of its own, and ends with its `with`."""
import datetime
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import object_server

HOST = "127.0.0.1"
PATIENCE = 60  # seconds until all servers answer


def free_ports(count):
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Processes:
    """Programs that listen, in a folder of their own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="h5fs-servers-")
        self.running = []

    def start(self, command, port):
        with open(self.at(f"{os.path.basename(command[0])}.log"), "wb") as log:
            self.running.append((subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True), port, log.name))

    def wait(self):
        """Until all listen."""
        end = time.monotonic() + PATIENCE
        for process, port, log in self.running:
            while True:
                try:
                    socket.create_connection((HOST, port)).close()
                    break
                except ConnectionRefusedError:
                    if process.poll() is not None or time.monotonic() > end:
                        with open(log, "rb") as f:
                            raise RuntimeError(f"{process.args[0]} does not listen: {f.read().decode()[-2000:]}") from None
                    time.sleep(0.02)

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.at(name), "w") as f:
            f.write(text)

    def prepare(self):
        """When all listen."""

    def __enter__(self):
        try:
            self.wait()
            self.prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process, _, _ in self.running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder)


class Nginx(Processes):
    """Serves the files of a folder."""

    needs = "nginx"

    def __init__(self, folder):
        super().__init__()
        self.port, = free_ports(1)
        self.write("nginx.conf", f"""daemon off; master_process off; pid {self.at("pid")}; error_log {self.at("error")};
events {{}}
http {{
	access_log off; client_body_temp_path {self.at("body")}; proxy_temp_path {self.at("proxy")};
	fastcgi_temp_path {self.at("fastcgi")}; uwsgi_temp_path {self.at("uwsgi")}; scgi_temp_path {self.at("scgi")};
	server {{ listen {HOST}:{self.port}; root {folder}; }}
}}
""")
        self.start(["nginx", "-e", self.at("error"), "-c", self.at("nginx.conf")], self.port)

    def url(self, name=""):
        return f"http://{HOST}:{self.port}/{urllib.parse.quote(name)}"


class Swift(Processes):
    """An object store with the keys `keys`, one bucket, and what put() gives it."""

    needs = "swift-proxy-server"
    keys = object_server.Keys("test:tester", "testing")
    bucket = "bucket"

    def __init__(self):
        super().__init__()
        kinds = "account", "container", "object"
        self.port, memory, *ports = free_ports(5)
        os.mkdir(self.at("devices"))
        os.mkdir(self.at("devices", "d1"))
        self.write("swift.conf", "[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n"
                   "[storage-policy:0]\nname = one\ndefault = yes\n")
        for kind, port in zip(kinds, ports):
            self.write(f"{kind}.conf", self.common(port) + f"devices = {self.at('devices')}\nmount_check = false\n"
                       f"[pipeline:main]\npipeline = {kind}-server\n[app:{kind}-server]\nuse = egg:swift#{kind}\n")
            self.make_ring(kind, port)
            self.start([f"swift-{kind}-server", self.at(f"{kind}.conf")], port)
        self.write("proxy.conf", self.common(self.port) + "[pipeline:main]\npipeline = catch_errors cache s3api tempauth slo proxy-server\n"
                   "[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n[filter:catch_errors]\nuse = egg:swift#catch_errors\n"
                   f"[filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = {HOST}:{memory}\n"
                   "[filter:s3api]\nuse = egg:swift#s3api\nlocation = us-east-1\n[filter:slo]\nuse = egg:swift#slo\n"
                   "[filter:tempauth]\nuse = egg:swift#tempauth\nuser_test_tester = testing .admin\n")
        self.start(["memcached", "-u", "root", "-l", HOST, "-p", str(memory), "-U", "0"], memory)
        self.start(["swift-proxy-server", self.at("proxy.conf")], self.port)

    def common(self, port):
        return f"[DEFAULT]\nbind_ip = {HOST}\nbind_port = {port}\nworkers = 0\nuser = root\nswift_dir = {self.folder}\n"

    def make_ring(self, kind, port):
        for arguments in ("create", "2", "1", "0"), ("add", f"r1z1-{HOST}:{port}/d1", "1"), ("rebalance",):
            subprocess.run(["swift-ring-builder", self.at(f"{kind}.builder"), *arguments], check=True, stdout=subprocess.DEVNULL)

    def prepare(self):
        self.put("", b"")

    def url(self, name=""):
        return f"http://{HOST}:{self.port}/{self.bucket}" + (f"/{urllib.parse.quote(name)}" if name else "")

    def put(self, name, data):
        """Makes an object; without a name, the bucket."""
        url = self.url(name)
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": f"{HOST}:{self.port}", "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": date}
        signed, scope = ";".join(sorted(headers)), f"{date[:8]}/{self.keys.region}/s3/aws4_request"
        given = object_server.signature(self.keys, "PUT", urllib.parse.urlsplit(url).path, headers, signed, date, scope)
        headers["authorization"] = f"AWS4-HMAC-SHA256 Credential={self.keys.access}/{scope}, SignedHeaders={signed}, Signature={given}"
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method="PUT")) as answer:
            assert answer.status == 200
