"""A proxy for tests, which leads all hosts that are asked for to one server of the tests, and notes their names."""
import re
import socket
import threading


class Tunnel:
    """with Tunnel(server) as tunnel: ... tunnel.url ... tunnel.names"""

    def __init__(self, server):
        self.server = server
        self.names = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets = []
        self.threads = [threading.Thread(target=self.take)]

    def take(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            self.sockets.append(client)
            self.start(self.lead, client)

    def start(self, what, *arguments):
        thread = threading.Thread(target=what, args=arguments)
        self.threads.append(thread)
        thread.start()

    def lead(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(4096)
            if not data:
                return
            head += data
        match = re.match(rb"CONNECT ([^ :]+):443 HTTP/1\.1\r\n", head)
        self.names.append(match[1].decode() if match else head.decode())
        if not match:
            client.close()
            return
        server = socket.create_connection((self.server.host, self.server.port))
        self.sockets.append(server)
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        self.start(self.copy, server, client)
        self.copy(client, server)

    def copy(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of both has gone

    def __enter__(self):
        self.threads[0].start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()
        for s in [self.listener, *self.sockets]:
            s.close()
