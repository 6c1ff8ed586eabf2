"""Where programs get credentials for an object store, for tests: a token server (STS), a container's server, the metadata service of a
machine (IMDSv2). All are strict, and each grant is another one, which the object server knows.

    issued = Issued(region)
    with CredentialServer(issued, tls=True) as giver, ObjectServer(folder, keys=issued) as store:
        giver.url("sts"), giver.url("container"), giver.url("instance")
"""
import collections
import datetime
import json
import re
import secrets
import tempfile
import threading
import time
import urllib.parse
import xml.sax.saxutils

from object_server import Ended, Handler, Keys, ObjectServer, check_signature

GRACE = 2  # seconds that a client may still use keys whose end it knows: requests that wait
NAME = re.compile(r"[A-Za-z0-9+=,.@_-]{2,64}")
Grant = collections.namedtuple("Grant", "keys ends made")


class Issued:
    """All keys that were granted; of an access key, as the object server asks, those that belong to it."""

    def __init__(self, region="us-east-1", seconds=3600):
        self.region, self.seconds = region, seconds
        self.grants = {}
        self.revoked = set()
        self.late = []  # access keys that were used after their end
        self.lock = threading.Lock()

    def grant(self):
        with self.lock:
            access = f"ASIA{len(self.grants)}{secrets.token_hex(6).upper()}"
            keys = Keys(access, secrets.token_urlsafe(30) + "/+", secrets.token_urlsafe(90) + "//==", self.region)
            ends = datetime.datetime.fromtimestamp(int(time.time()) + self.seconds, datetime.timezone.utc)
            self.grants[access] = Grant(keys, ends, time.time())
            return self.grants[access]

    def revoke(self):
        """All that were granted so far end now."""
        with self.lock:
            self.revoked |= set(self.grants)

    def __call__(self, access):
        grant = self.grants.get(access)
        if grant is None:
            return None
        late = time.time() - grant.ends.timestamp()
        if late > GRACE:
            self.late.append(access)
        return Ended(*grant.keys) if late > 0 or access in self.revoked else grant.keys


class CredentialHandler(Handler):
    def serve(self, request):
        owner = self.server.owner
        owner.asked.append(request.path)
        first = request.path.split("/")[1]
        answer = {"sts": self.sts, "container": self.container, "instance": self.instance}.get(first)
        if answer is None:
            owner.complain(request, "no such service")
            return self.answer(404, {}, b"")
        return answer(request)

    def wrong(self, request, text, code=400):
        self.server.owner.complain(request, text)
        self.answer(code, {}, text.encode())

    def keys(self):
        keys, ends, _ = self.server.owner.issued.grant()
        return keys, ends.strftime("%Y-%m-%dT%H:%M:%SZ")

    def json(self, **more):
        keys, ends = self.keys()
        self.answer(200, {"Content-Type": "application/json"}, json.dumps(
            {**more, "AccessKeyId": keys.access, "SecretAccessKey": keys.secret, "Token": keys.token, "Expiration": ends}).encode())

    def container(self, request):
        owner = self.server.owner
        if request.method != "GET" or request.headers.get("Authorization") != owner.container_token:
            return self.wrong(request, "not the container's token", 403)
        return self.json(RoleArn="arn:aws:iam::1:role/task")

    def instance(self, request):
        owner = self.server.owner
        path = request.path.removeprefix("/instance")
        if request.headers.get("X-Forwarded-For") or request.headers.get("Authorization"):
            return self.wrong(request, "something that is not for the metadata service", 403)
        if path == "/latest/api/token":
            if request.method != "PUT" or not 1 <= int(request.headers.get("X-aws-ec2-metadata-token-ttl-seconds", 0)) <= 21600:
                return self.wrong(request, "no PUT with a lifetime", 400)
            owner.sessions.append(secrets.token_urlsafe(40) + "==")
            return self.answer(200, {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}, owner.sessions[-1].encode())
        if request.method != "GET" or request.headers.get("X-aws-ec2-metadata-token") not in owner.sessions:
            return self.wrong(request, "no session of version 2", 401)
        if path == "/latest/meta-data/iam/security-credentials/":
            return self.answer(200, {}, owner.role.encode()) if owner.role else self.answer(404, {}, b"")
        if path == f"/latest/meta-data/iam/security-credentials/{owner.role}":
            return self.json(Code="Success", LastUpdated="2026-01-01T00:00:00Z", Type="AWS-HMAC")
        return self.wrong(request, "nothing there", 404)

    def sts(self, request):
        owner = self.server.owner
        form = dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=True, keep_blank_values=True))
        action = form.pop("Action", "")
        if request.method != "POST" or request.query or form.pop("Version", "") != "2011-06-15":
            return self.wrong(request, "no POST of version 2011-06-15")
        if form.pop("RoleArn", "") != owner.arn or not NAME.fullmatch(form.pop("RoleSessionName", "")):
            return self.wrong(request, "another role, or no name of a session")
        if action == "AssumeRoleWithWebIdentity":
            if not owner.tls or "Authorization" in request.headers:
                owner.complain(request, "an open token, or a signature")
            if form.pop("WebIdentityToken", "") != owner.identity():
                return self.sts_error("InvalidIdentityToken", "another token")
        elif action == "AssumeRole":
            bad = check_signature(owner.source, request, "sts")
            if bad:
                return self.sts_error(*bad)
            if form.pop("ExternalId", None) != owner.external:
                return self.sts_error("AccessDenied", "another external id")
        else:
            return self.wrong(request, f"no such action: {action}")
        if form:
            return self.wrong(request, f"more than was asked for: {form}")
        keys, ends = self.keys()
        said = "".join(f"\n      <{name}>{xml.sax.saxutils.escape(value)}</{name}>" for name, value in (
            ("SessionToken", keys.token), ("SecretAccessKey", keys.secret), ("Expiration", ends), ("AccessKeyId", keys.access)))
        body = f"""<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <{action}Result>
    <AssumedRoleUser><Arn>{owner.arn}/x</Arn><AssumedRoleId>A:x</AssumedRoleId></AssumedRoleUser>
    <Credentials>{said}
    </Credentials>
  </{action}Result>
  <ResponseMetadata><RequestId>c6104cbe-af31-11e0-8154-cbc7ccf896c7</RequestId></ResponseMetadata>
</{action}Response>
"""
        return self.answer(200, {"Content-Type": "text/xml"}, body.encode())

    def sts_error(self, name, text):
        body = f'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">\n  <Error>\n    <Type>Sender</Type>\n    <Code>{name}</Code>\n' \
            f'    <Message>{text}</Message>\n  </Error>\n  <RequestId>c6104cbe</RequestId>\n</ErrorResponse>\n'
        self.answer(403, {"Content-Type": "text/xml"}, body.encode())


class CredentialServer(ObjectServer):
    """identity(): what the token of a web identity must be. source: who may ask for the role `arn`, with `external`. container_token: what a
    container shows. role: of the machine; None: it has none."""
    handler = CredentialHandler
    arn = "arn:aws:iam::123456789012:role/reader"
    external = None
    container_token = None
    role = "machine-role"

    def __init__(self, issued, source=None, identity=lambda: None, **options):
        self.folder_of_none = tempfile.TemporaryDirectory()
        super().__init__(self.folder_of_none.name, keys=issued, **options)
        self.issued, self.source, self.identity = issued, source, identity
        self.asked, self.sessions = [], []

    def __exit__(self, *_):
        super().__exit__()
        self.folder_of_none.cleanup()
