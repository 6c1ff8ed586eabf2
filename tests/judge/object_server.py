"""An HTTP server and object store for tests, which is strict: it notes what a client does wrong, counts what it asks for, delays its
answers, and fails as told. Signatures (AWS Signature Version 4) are checked by code of its own.

    with ObjectServer(folder, delay=0.06) as server:
        server.on(match="/data.h5", fault=status(503), times=2)
        ... server.url("data.h5") ...
        server.count.requests, server.count.bytes, server.round_trips(), server.wrong
"""
import base64
import bisect
import collections
import contextlib
import datetime
import email.utils
import functools
import hashlib
import hmac
import http.server
import os
import re
import socket
import socketserver
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse

SLICE = 65536
SLICES = 100  # a second of a fast connection: more would take more of a processor than the clients do
NO_BODY = hashlib.sha256(b"").hexdigest()
SKEW = 900  # seconds that a signature's date may be off

Keys = collections.namedtuple("Keys", "access secret token region", defaults=(None, "us-east-1"))
WRONG_REGION = "AuthorizationHeaderMalformed: region"


class Ended(Keys):
    """Keys that are not valid any more."""



class Request:
    """What a client has asked for. `first` and `last` are the range's bytes as asked, None without; `status` and `sent` are the answer's."""

    def __init__(self, handler):
        self.method = handler.command
        self.target = handler.path
        self.path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path)
        self.query = urllib.parse.urlsplit(handler.path).query
        self.headers = handler.headers
        self.client = handler.client_address
        self.began = time.monotonic()
        self.ended = None
        self.status = None
        self.sent = 0
        self.range = self.headers.get("Range")
        self.version = dict(urllib.parse.parse_qsl(self.query)).get("versionId")
        self.body = handler.rfile.read(int(self.headers.get("Content-Length") or 0))

    def __repr__(self):
        return f"{self.method} {self.target} {self.range or 'all'}: {self.status}, {self.sent} bytes"


# ---- faults: functions of the handler that answer in place of it; True: the request was answered ----

def status(code, headers=(), body=b"refused"):
    """An answer of another status, for example 503 with Retry-After."""
    def fault(handler):
        handler.answer(code, dict(headers), body)
        return True
    return fault


def redirect(location, code=302):
    return status(code, {"Location": location}, b"")


def short(n):
    """The headers promise all bytes, n come, and the connection ends."""
    def fault(handler):
        handler.limit = n
        return False
    return fault


def reset(n=0):
    """After n bytes of the body the connection is reset; -1: before the headers."""
    def fault(handler):
        if n < 0:
            handler.reset()
            return True
        handler.limit, handler.resets = n, True
        return False
    return fault


def whole():
    """The range is ignored: 200 and the whole object."""
    def fault(handler):
        handler.whole = True
        return False
    return fault


def header(name, value):
    """One header of the answer is another one: Content-Range, Content-Length, ETag, ...; None: it is left out."""
    def fault(handler):
        handler.changed[name] = value
        return False
    return fault


def raw(data):
    """These bytes in place of an answer; then the connection ends."""
    def fault(handler):
        handler.wfile.write(data)
        handler.close_connection = True
        return True
    return fault


def endless(head, piece):
    """The piece again and again behind the head, until the client goes."""
    def fault(handler):
        handler.wfile.write(head)
        while not handler.server.owner.ending.is_set():
            handler.wfile.write(piece)
        return True
    return fault


def hang():
    """No answer until the server ends."""
    def fault(handler):
        handler.server.owner.ending.wait()
        handler.reset()
        return True
    return fault


def slow(rate):
    """So many bytes a second."""
    def fault(handler):
        handler.rate = rate
        return False
    return fault


# ---- AWS Signature Version 4 ----

def derive_key(secret, date, region, service):
    key = ("AWS4" + secret).encode()
    for part in date, region, service, "aws4_request":
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def canonical_query(query):
    pairs = [part.partition("=") for part in query.split("&") if part]
    return "&".join("=".join(pair) for pair in sorted((name, value) for name, _, value in pairs))


def signature(keys, method, target, headers, signed, amz_date, scope, hashed=None):
    """The signature that a request must have; `headers` are looked up by lower-case names. hashed: of the body, if no header says it."""
    url = urllib.parse.urlsplit(target)
    lines = [f"{name}:{' '.join(headers[name].split())}\n" for name in signed.split(";")]
    request = "\n".join([method, url.path, canonical_query(url.query), "".join(lines), signed, hashed or headers["x-amz-content-sha256"]])
    date, region, service, _ = scope.split("/")
    text = "\n".join(["AWS4-HMAC-SHA256", amz_date, scope, hashlib.sha256(request.encode()).hexdigest()])
    return hmac.new(derive_key(keys.secret, date, region, service), text.encode(), hashlib.sha256).hexdigest()


AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/, ]+)/([0-9]{8}/[^/, ]+/[a-z0-9]+/aws4_request), ?SignedHeaders=([a-z0-9;-]+), ?"
                           r"Signature=([0-9a-f]{64})")
UNRESERVED = re.compile(r"(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*")


def check_signature(keys, request, service="s3"):
    """None, or S3's code of the error and what is wrong. keys: as of ObjectServer."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    if "authorization" not in headers:
        return "AccessDenied", "no signature"
    match = AUTHORIZATION.fullmatch(headers["authorization"])
    if not match:
        return "AuthorizationHeaderMalformed", "not a signature of version 4"
    access, scope, signed, given = match.groups()
    if callable(keys):
        keys = keys(access)
    if not keys or access != keys.access:
        return "InvalidAccessKeyId", "another access key"
    if isinstance(keys, Ended):
        return "ExpiredToken", "the provided token has expired"
    if headers.get("x-amz-security-token") != keys.token:
        return "InvalidToken", "another session token"
    date, region, named, _ = scope.split("/")
    amz_date = headers.get("x-amz-date", "")
    if amz_date[:8] != date or named != service:
        return "AuthorizationHeaderMalformed", "another date or service"
    if region != keys.region:
        return WRONG_REGION, "another region"
    then = datetime.datetime.strptime(amz_date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs((datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()) > SKEW:
        return "RequestTimeTooSkewed", "an old signature"
    hashed = hashlib.sha256(request.body).hexdigest() if service != "s3" else None
    must = {"host", "x-amz-date"} | {name for name in headers if name.startswith("x-amz-")} | ({"x-amz-content-sha256"} if not hashed else set())
    names = signed.split(";")
    if names != sorted(set(names)) or not must <= set(names) <= set(headers):
        return "AccessDenied", f"the signed headers are {signed}"
    if not hashed and headers["x-amz-content-sha256"] not in (NO_BODY, "UNSIGNED-PAYLOAD"):
        return "XAmzContentSHA256Mismatch", "a hash of other contents"
    if not UNRESERVED.fullmatch(urllib.parse.urlsplit(request.target).path):
        return "SignatureDoesNotMatch", "the path has bytes that must be percent-encoded"
    if not hmac.compare_digest(given, signature(keys, request.method, request.target, headers, signed, amz_date, scope, hashed)):
        return "SignatureDoesNotMatch", "another signature"
    return None


# ---- the server ----

DATE = email.utils.formatdate(1e9, usegmt=True)


@functools.lru_cache
def tag_of(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


@functools.lru_cache
def listed(date):
    """A date as listings have it."""
    return email.utils.parsedate_to_datetime(date).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def quote(key):
    """As Amazon's store encodes keys in a listing."""
    return urllib.parse.quote_plus(key)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.owner.connections.append(self.connection)

    def do_GET(self):
        owner = self.server.owner
        self.limit = self.rate = None
        self.whole = self.resets = False
        self.changed = {}
        self.request_now = request = Request(self)
        owner.note(request)
        if owner.delay:
            time.sleep(owner.delay)
        try:
            fault = owner.fault_for(request)
            if not (fault and fault(self)):
                self.serve(request)
        except OSError:
            self.close_connection = True  # the client has gone
        finally:
            request.ended = time.monotonic()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def serve(self, request):
        owner = self.server.owner
        if owner.friendly and request.method in ("GET", "HEAD") and request.path == "/":
            links = "".join(f'<a href="{urllib.parse.quote(name)}">{name}</a>\n' for name in sorted(os.listdir(owner.folder)))
            return self.answer(200, {"Content-Type": "text/html"}, f"<html><body>\n{links}</body></html>\n".encode())
        if request.method != "GET" and not (owner.friendly and request.method == "HEAD"):
            owner.complain(request, "only GET is allowed, as by a presigned URL")
            return self.answer_error(403, "AccessDenied", "only GET is allowed")
        if owner.keys:
            bad = check_signature(owner.keys, request)
            if bad:
                return self.refuse(*bad)
        path = owner.prefix(self.headers["Host"]) + request.path
        if request.version is not None and owner.versions == "forbidden":
            return self.answer_error(403, "AccessDenied", "not allowed to s3:GetObjectVersion")
        if "list-type" in dict(urllib.parse.parse_qsl(request.query)):
            return self.serve_listing(path, request)
        content = owner.content(path, request.version)
        if content is None:
            return self.answer_error(404, "NoSuchVersion" if request.version else "NoSuchKey", "no such object")
        data, tag, date, version = content
        shown = {"ETag": tag, "Last-Modified": date, "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        if owner.versions:
            shown["x-amz-version-id"] = version
        if "If-Match" in request.headers and request.headers["If-Match"] not in (tag, "*"):
            return self.answer_error(412, "PreconditionFailed", "another version")
        if request.headers.get("If-None-Match") == tag:
            return self.answer(304, shown, None)
        if request.range is None or self.whole:
            return self.answer(200, shown, data)
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.range)
        if not match or match.groups() == ("", ""):
            owner.complain(request, f"no single range: {request.range}")
            return self.answer_error(400, "InvalidArgument", "no single range")
        first, last = match.groups()
        if first == "":
            first, last = max(0, len(data) - int(last)), len(data) - 1
        else:
            first, last = int(first), min(int(last or len(data)), len(data) - 1)
        if first > last:
            return self.answer(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
        shown["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        return self.answer(206, shown, memoryview(data)[first:last + 1])

    def serve_listing(self, path, request):
        """A page of ListObjectsV2. Only what h5fs asks for is known, with each parameter once."""
        owner = self.server.owner
        pairs = urllib.parse.parse_qsl(request.query, keep_blank_values=True, strict_parsing=True)
        asked = dict(pairs)
        if len(asked) != len(pairs) or not set(asked) <= {"continuation-token", "delimiter", "encoding-type", "list-type", "prefix"} or (
                asked["list-type"], asked.get("delimiter"), asked.get("encoding-type")) != ("2", "/", "url") or request.range or "If-Match" in request.headers:
            owner.complain(request, "no listing that is known")
            return self.answer_error(400, "InvalidArgument", "no listing that is known")
        prefix, token = asked.get("prefix", ""), asked.get("continuation-token")
        keys = owner.keys_of(path)
        if keys is None:
            return self.answer_error(404, "NoSuchBucket", "no such bucket")
        begin = owner.tokens.get(token) if token else (path, prefix, "")
        if not begin or begin[:2] != (path, prefix):
            owner.complain(request, "a token of another listing")
            return self.answer_error(400, "InvalidArgument", "a token of another listing")
        items, after = [], None
        at = bisect.bisect_left(keys, max(prefix, begin[2]))
        while at < len(keys) and keys[at].startswith(prefix):
            if len(items) == owner.page:
                after = keys[at]
                break
            name, slash, _ = keys[at][len(prefix):].partition("/")
            if slash:
                items.append(f"<CommonPrefixes><Prefix>{quote(prefix + name)}%2F</Prefix></CommonPrefixes>")
                at = bisect.bisect_left(keys, prefix + name + "0", at)  # the character behind the slash
            else:
                data, tag, date, _ = owner.content(f"{path.rstrip('/')}/{keys[at]}")
                items.append(f"<Contents><Key>{quote(keys[at])}</Key><LastModified>{listed(date)}</LastModified><ETag>{tag.replace(chr(34), '&quot;')}</ETag>"
                             f"<Size>{len(data)}</Size><StorageClass>STANDARD</StorageClass></Contents>")
                at += 1
        more = ""
        if after is not None:
            next_token = base64.b64encode(f"{len(owner.tokens)} {after}/+=".encode()).decode()
            owner.tokens[next_token] = path, prefix, after
            more = f"<NextContinuationToken>{next_token}</NextContinuationToken>"
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{path.strip("/")}</Name>'
                f"<Prefix>{quote(prefix)}</Prefix><KeyCount>{len(items)}</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>%2F</Delimiter>"
                f"<EncodingType>url</EncodingType><IsTruncated>{str(after is not None).lower()}</IsTruncated>{''.join(items)}{more}</ListBucketResult>")
        return self.answer(200, {"Content-Type": "application/xml"}, body.encode())

    def refuse(self, name, text):
        """What is wrong with a signature."""
        if name != WRONG_REGION:
            return self.answer_error(400 if "Token" in name else 403, name, text)
        region = self.server.owner.keys_region
        code, headed = self.server.owner.wrong_region
        name = {301: "PermanentRedirect", 307: "TemporaryRedirect"}.get(code, name.split(":")[0])
        return self.answer_error(code, name, text, "" if headed else f"<Region>{region}</Region>", {"x-amz-bucket-region": region} if headed else {})

    def answer_error(self, code, name, text, more="", headers=()):
        body = f"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{name}</Code><Message>{text}</Message>{more}</Error>".encode()
        self.answer(code, {"Content-Type": "application/xml", **dict(headers)}, body)

    def answer(self, code, headers, body):
        """Sends headers and body, as far as a fault lets it; a body of None has no length either."""
        self.request_now.status = code
        self.send_response(code)
        headers = dict(headers)
        if body is not None:
            headers.setdefault("Content-Length", str(len(body)))
        headers.update(self.changed)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        body = memoryview(body if body and self.command != "HEAD" else b"")
        if self.limit is not None:
            self.send_slowly(body[:self.limit])
            if self.resets:
                self.reset()
            self.close_connection = True
        else:
            self.send_slowly(body)
        if "Content-Length" in self.changed:
            self.close_connection = True

    def send_slowly(self, body):
        rate = self.rate or self.server.owner.rate
        began = time.monotonic()
        size = 1 + int(rate) // 16 if rate and rate <= SLICE else max(SLICE, int(rate or 0) // SLICES)
        for at in range(0, len(body), size):
            piece = body[at:at + size]
            self.wfile.write(piece)
            self.request_now.sent += len(piece)
            if rate:
                ahead = (at + len(piece)) / rate - (time.monotonic() - began)
                if ahead > 0 and self.server.owner.ending.wait(ahead):
                    raise ConnectionError("the server ends")

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, *_):
        pass


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # a connection that has ended


Count = collections.namedtuple("Count", "requests bytes connections")


class ObjectServer:
    """Serves the files of a folder under their names. keys: every request must be signed with them; or a function that has those of an
    access key. delay: seconds before each answer; rate: bytes a second of each connection. tls: HTTPS with a certificate of its own
    (`certificate`), which is also for the hosts `names`: of a host BUCKET.s3..., the files are those of the folder BUCKET; with "expired" or
    "another host" one that is not to be trusted.
    versions: objects that are written anew keep their versions ("forbidden": nobody may read these). wrong_region: what who signs for
    another region is answered: a status, and whether a header says the right one, or the body. friendly: for clients that
    others wrote, which also ask for headers alone (HEAD) and for a list of the files. page: keys that a listing has at a time.
    Objects whose keys are no names of files are put into `objects`, by /BUCKET/KEY."""

    handler = Handler

    def __init__(self, folder, keys=None, delay=0, rate=None, tls=False, host="127.0.0.1", names=(), versions=None, wrong_region=(400, False),
                 friendly=False, page=1000):
        self.folder, self.keys, self.delay, self.rate, self.tls = folder, keys, delay, rate, tls
        self.names, self.versions, self.wrong_region = names, versions, wrong_region
        self.keys_region = keys.region if isinstance(keys, Keys) else Keys("", "").region
        self.friendly, self.page = friendly, page
        self.objects, self.tokens, self.sorted = {}, {}, {}
        self.kept = {}  # contents by path and version
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.requests = []
        self.connections = []
        self.wrong = []  # what clients did that they must not
        self.rules = []
        self.contents = {}
        self.host, self.port = host, 0
        self.bind()
        if tls:
            self.start_tls()

    def bind(self):
        self.server = Threads((self.host, self.port), self.handler, bind_and_activate=True)
        self.server.owner = self
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})

    def start_tls(self):
        self.secrets = tempfile.TemporaryDirectory()
        self.certificate = os.path.join(self.secrets.name, "certificate.pem")
        key = os.path.join(self.secrets.name, "key.pem")
        names = "DNS:another.invalid" if self.tls == "another host" else ",".join([f"IP:{self.host}", "DNS:localhost", *(f"DNS:{name}" for name in self.names)])
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=h5fs tests", "-addext", f"subjectAltName={names}", "-keyout", key,
                        "-out", self.certificate], check=True, capture_output=True)
        if self.tls == "expired":
            subprocess.run(["openssl", "x509", "-in", self.certificate, "-signkey", key, "-days", "-1", "-out", self.certificate],
                           check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        # The handshake is done by the thread of the connection.
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.leave()
        if self.tls:
            self.secrets.cleanup()

    def leave(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join()

    @contextlib.contextmanager
    def away(self):
        """Nobody answers at the server's port for a while. (Not for TLS.)"""
        self.leave()
        try:
            yield
        finally:
            self.bind()
            self.thread.start()

    def url(self, name="", host=None):
        return f"{'https' if self.tls else 'http'}://{host or self.host}:{self.port}/{urllib.parse.quote(name)}"

    def prefix(self, host):
        """The folder that a host shows, BUCKET.s3.REGION.DOMAIN."""
        bucket = host.partition(".")[0]
        return "/" + bucket if host in self.names and bucket != "s3" else ""

    def content(self, path, version=None):
        """The bytes under a path, their ETag, date and version; None: there are none. A file that has changed has another ETag."""
        if version is not None:
            return self.kept.get((os.path.normpath(path), version))
        if path in self.objects:
            data = self.objects[path]
            return data, tag_of(data), DATE, "v"
        name = os.path.normpath(os.path.join(self.folder, path.lstrip("/")))
        if os.path.commonpath([self.folder, name]) != self.folder or not os.path.isfile(name):
            return None
        st = os.stat(name)
        mark = st.st_mtime_ns, st.st_size, st.st_ino
        with self.lock:
            known = self.contents.get(name)
            if not known or known[0] != mark:
                with open(name, "rb") as f:
                    data = f.read()
                tag = f'"{hashlib.md5(data).hexdigest()}"'
                version = f"v/{len(self.kept)}+{tag[1:9]}=="
                known = self.contents[name] = mark, (data, tag, email.utils.formatdate(st.st_mtime, usegmt=True), version)
                self.kept[os.path.normpath(path), version] = known[1]
            return known[1]

    def keys_of(self, path):
        """The keys of a bucket, sorted: its files, and `objects`. None: there is no such bucket."""
        bucket = path.strip("/")
        top = os.path.join(self.folder, bucket)
        if not bucket or "/" in bucket or not os.path.isdir(top):
            return None
        keys = [os.path.relpath(os.path.join(folder, name), top) for folder, _, names in os.walk(top) for name in names]
        if (bucket, len(self.objects)) not in self.sorted:
            self.sorted[bucket, len(self.objects)] = sorted(name[len(bucket) + 2:] for name in self.objects if name.startswith(f"/{bucket}/"))
        return sorted(keys + self.sorted[bucket, len(self.objects)])

    def on(self, match, fault, times=1):
        """`fault` answers the next `times` requests (None: all) whose target matches: a regular expression, or a function of the request."""
        test = match if callable(match) else lambda request: re.search(match, request.target)
        with self.lock:
            self.rules.append([test, fault, times])

    def fault_for(self, request):
        with self.lock:
            for rule in self.rules:
                if rule[2] != 0 and rule[0](request):
                    if rule[2] is not None:
                        rule[2] -= 1
                    return rule[1]
        return None

    def complain(self, request, text):
        with self.lock:
            self.wrong.append(f"{request!r}: {text}")

    def note(self, request):
        with self.lock:
            self.requests.append(request)
        if request.headers.get("Accept-Encoding", "identity") != "identity":
            self.complain(request, "a range of an encoded body is not a range of the file")
        if len(request.headers.get_all("Host", [])) != 1:
            self.complain(request, "not one Host")
        if not self.keys and any(name.lower() in ("authorization", "x-amz-security-token", "cookie") for name in request.headers):
            self.complain(request, "a credential that is none of this server's")

    def forget(self):
        """Counts from here."""
        with self.lock:
            self.requests, self.wrong = [], []

    @property
    def count(self):
        with self.lock:
            return Count(len(self.requests), sum(r.sent for r in self.requests), len({r.client for r in self.requests}))

    def furthest(self):
        """The last byte that was asked for."""
        with self.lock:
            return max((int(r.range.rpartition("-")[2]) for r in self.requests if r.range), default=0)

    def round_trips(self):
        """How many answers were waited for, one after another: the longest row of requests each of which began after the one before it
        had its answer."""
        with self.lock:
            spans = sorted((r.ended or float("inf"), r.began) for r in self.requests)
        trips, end = 0, 0.0
        for ended, began in spans:
            if began >= end:
                trips, end = trips + 1, ended
        return trips
