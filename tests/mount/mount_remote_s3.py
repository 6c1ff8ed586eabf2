#!/usr/bin/python3
"""Files in object stores with the interface of S3: who asks for them, and with what right."""
import errno
import os
import time

import h5py

import object_server
from credential_server import CredentialServer, Issued
from mountlib import Mount, MountFailed, main, read, refusal, write
from object_server import ObjectServer, hang, redirect, status
from remotelib import SECRET, Case, fetcher_of
from tunnel import Tunnel

KEYS = object_server.Keys("AKIDEXAMPLE", SECRET + "/+=", None, "eu-test-1")


def processor_time(pid):
    """Seconds that the process has used."""
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class StoreCase(Case):
    """s3://BUCKET/KEY. The server computes each signature itself."""
    ENV = {**{name: "" for name in os.environ if name.startswith("AWS_")}, "AWS_REGION": KEYS.region, "AWS_CONFIG_FILE": "/no/file",
           "AWS_SHARED_CREDENTIALS_FILE": "/no/file", "AWS_EC2_METADATA_DISABLED": "true"}

    def mount(self, server, env=None, options="", **more):
        options = f"s3_endpoint={server.url()[:-1]}" + options
        return Mount("s3://bucket/x.h5", "-f", options=options, env={**self.ENV, **(env or {})}, **more)

    def setUp(self):
        super().setUp()
        os.mkdir(self.file("served", "bucket"))
        for name in "x.h5", "data+x=1,(\u00e9)~%20.h5":
            os.link(self.path, self.file("served", "bucket", name))

    def refused(self, server, env, options=""):
        """The exit status and what is said."""
        with self.assertRaises(MountFailed) as caught, self.mount(server, env, options):
            pass
        return caught.exception.status, caught.exception.said


class Stores(StoreCase):
    KEYS = KEYS
    ENV = {**StoreCase.ENV, "AWS_ACCESS_KEY_ID": KEYS.access, "AWS_SECRET_ACCESS_KEY": KEYS.secret}

    def test_environment(self):
        for token in None, "session/token+=":
            with self.serve(keys=self.KEYS._replace(token=token)) as server, \
                    self.mount(server, {"AWS_SESSION_TOKEN": token or ""}) as m:
                self.block(m, 3)
                self.assertEqual({r.status for r in server.requests}, {206})
                seen = read(f"/proc/{m.daemon}/environ") + read(f"/proc/{fetcher_of(m.daemon)}/environ") + m.said().encode()
                self.assertNotIn(SECRET.encode(), seen)

    def test_profile(self):
        write(self.file("credentials"), f"[default]\naws_access_key_id = none\naws_secret_access_key = none\n[lab]\n# comment\n"
              f"aws_access_key_id={self.KEYS.access}\n aws_secret_access_key = indented\n"
              f"aws_secret_access_key = {self.KEYS.secret}\n".encode())
        write(self.file("config"), f"[profile lab]\nregion = {self.KEYS.region}\n[default]\nregion = other\n".encode())
        env = {"AWS_ACCESS_KEY_ID": "", "AWS_REGION": "", "AWS_PROFILE": "lab", "AWS_CONFIG_FILE": self.file("config"),
               "AWS_SHARED_CREDENTIALS_FILE": self.file("credentials")}
        with self.serve(keys=self.KEYS) as server, self.mount(server, env) as m:
            self.block(m, 3)

    def test_names(self):
        """All but unreserved bytes of a key are encoded."""
        with self.serve(keys=self.KEYS) as server, Mount("s3://bucket/data+x=1,(\u00e9)~%20.h5", env=self.ENV,
                                                         options=f"s3_endpoint={server.url()}") as m:
            self.block(m, 3)

    def test_refused(self):
        write(self.file("config"), b"[default]\ncredential_process = /bin/true\n")
        with self.serve(keys=self.KEYS) as server:
            for expected, said, env, options in (
                    (14, "no permission", {"AWS_SECRET_ACCESS_KEY": "wrong"}, ""), (14, "no permission", {}, ",s3_anonymous"),
                    (14, "no credentials", {"AWS_ACCESS_KEY_ID": ""}, ""),
                    (3, "credential_process", {"AWS_ACCESS_KEY_ID": "", "AWS_CONFIG_FILE": self.file("config")}, "")):
                with self.subTest(said):
                    code, heard = self.refused(server, env, options)
                    self.assertEqual(code, expected, heard)
                    self.assertIn(said, heard)
        self.assertEqual(refusal("s3://bucket/x.h5", options="s3_endpoint=127.0.0.1")[0], 2)

    def test_anonymous(self):
        with self.serve() as server, self.mount(server, options=",s3_anonymous") as m:
            self.block(m, 3)


class Granted(StoreCase):
    """Credentials for a while, from each place where there are some."""

    def setUp(self):
        super().setUp()
        self.issued = Issued(KEYS.region)
        self.store = self.enterContext(self.serve(keys=self.issued))
        self.store.keys_region = KEYS.region

    def give(self, **options):
        giver = self.enterContext(CredentialServer(self.issued, **options))
        self.addCleanup(lambda: self.assertEqual((giver.wrong, self.issued.late), ([], [])))
        return giver

    def reads(self, env, grants=1):
        """A mount that gets credentials, and newer ones when the store does not take these any more."""
        with self.mount(self.store, env) as m:
            self.block(m, 3)
            self.block(m, 4)
            self.assertEqual(len(self.issued.grants), grants)
            self.issued.revoke()
            self.block(m, 5)
            self.assertGreater(len(self.issued.grants), grants)
            self.assertEqual([r.status for r in self.store.requests], [206] * 3 + [400, 206])

    def with_identity(self):
        """A token server, and what the environment says of it."""
        self.identity = SECRET + ".first"
        write(self.file("token"), self.identity.encode() + b"\n")
        giver = self.give(tls=True, identity=lambda: self.identity)
        return giver, {"CURL_CA_BUNDLE": giver.certificate, "AWS_ENDPOINT_URL_STS": giver.url("sts"), "AWS_ROLE_ARN": giver.arn,
                       "AWS_WEB_IDENTITY_TOKEN_FILE": self.file("token")}

    def test_web_identity(self):
        giver, env = self.with_identity()
        self.reads(env)
        self.assertEqual(giver.asked, ["/sts", "/sts"])

    def test_no_answer(self):
        """The token server is asked again when the time is over."""
        giver, env = self.with_identity()
        giver.on(lambda _: len(giver.requests) == 1, hang())
        with self.mount(self.store, env, ",remote_timeout=1") as m:
            self.block(m, 3)
        self.assertEqual(len(giver.requests), 2)

    def test_web_identity_of_a_profile(self):
        giver, env = self.with_identity()
        write(self.file("config"), f"[default]\nrole_arn = {giver.arn}\nweb_identity_token_file = {self.file('token')}\n"
              "role_session_name = me\n".encode())
        self.reads({**env, "AWS_CONFIG_FILE": self.file("config"), "AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_ROLE_ARN": ""})

    def test_token_that_is_replaced(self):
        """A file with a token is read anew, also if another one has taken its place."""
        _, env = self.with_identity()
        with self.mount(self.store, env) as m:
            self.identity = SECRET + ".second"
            write(self.file("token.new"), self.identity.encode())
            os.rename(self.file("token.new"), self.file("token"))
            self.issued.revoke()
            self.block(m, 3)

    def test_role(self):
        """The keys of one profile, or those of the machine, ask for the role of another one."""
        giver = self.give(source=KEYS)
        giver.external = "an id & more"
        role = f"[default]\nrole_arn = {giver.arn}\nexternal_id = {giver.external}\n"
        env = {"AWS_CONFIG_FILE": self.file("config"), "AWS_SHARED_CREDENTIALS_FILE": self.file("credentials"),
               "AWS_ENDPOINT_URL_STS": giver.url("sts"), "AWS_EC2_METADATA_SERVICE_ENDPOINT": giver.url("instance"),
               "AWS_EC2_METADATA_DISABLED": ""}
        write(self.file("credentials"), f"[base]\naws_access_key_id={KEYS.access}\naws_secret_access_key={KEYS.secret}\n".encode())
        write(self.file("config"), (role + "source_profile = base\n").encode())
        self.reads(env)
        self.store.forget()
        giver.source = self.issued
        write(self.file("config"), (role + "credential_source = Ec2InstanceMetadata\n").encode())
        self.reads(env, 4)

    def test_container(self):
        giver = self.give()
        giver.container_token = f"Bearer {SECRET}"
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": giver.url("container/task")}
        write(self.file("token"), giver.container_token.encode())
        self.reads({**env, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "wrong", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": self.file("token")})
        # No proxy sees that.
        env = {**self.ENV, **env, "http_proxy": "http://127.0.0.1:1", "no_proxy": "localhost", "AWS_CONTAINER_AUTHORIZATION_TOKEN": giver.container_token}
        with Mount("s3://bucket/x.h5", options="s3_endpoint=" + self.store.url(host="localhost"), env=env) as m:
            self.block(m, 3)

    def test_instance(self):
        giver = self.give()
        env = {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": giver.url("instance")}
        self.reads(env)
        self.assertEqual([path.rsplit("/", 1)[1] for path in giver.asked], ["token", "", "machine-role"] * 2)
        giver.role = None
        self.assertEqual(self.refused(self.store, env)[0], 14)

    def make_links(self):
        """Many files: each is asked for when it is read."""
        with h5py.File(self.path, "a") as f:
            for i in range(200):
                f[f"links/{i}"] = h5py.ExternalLink(f"{i}.h5", "/group/small")
                os.link(self.path, self.file("served", "bucket", f"{i}.h5"))

    def read_links(self, m, ends):
        for i in range(200):
            read(m.at("links", str(i)))
            if ends():
                break
            time.sleep(0.05)

    def test_renewal_that_fails_while_nobody_reads(self):
        """It is tried again when somebody does; until then the fetcher rests."""
        giver = self.give()
        giver.on(lambda _: len(giver.requests) == 2, status(503))
        giver.container_token = "token"
        self.issued.seconds = 6
        self.make_links()
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": giver.url("container"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token"}
        with self.mount(self.store, env) as m:
            self.read_links(m, lambda: len(giver.requests) == 2 and giver.requests[1].ended)
            fetcher = fetcher_of(m.daemon)
            before, end = processor_time(fetcher), time.monotonic() + 1
            while time.monotonic() < end:
                time.sleep(0.05)
            self.assertLess(processor_time(fetcher) - before, 0.3)
            self.assertEqual(len(giver.requests), 2)
            read(m.at("links/199"))
            self.assertGreater(len(giver.requests), 2)

    def test_before_they_end(self):
        """New ones are there before the old ones end: the store never sees those. While they are got, reads go on."""
        giver = self.give()
        giver.on(lambda _: len(giver.requests) >= 2, hang(), 2)
        giver.container_token = "token"
        self.issued.seconds = 12
        self.make_links()
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": giver.url("container"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token"}
        with self.mount(self.store, env) as m:
            self.read_links(m, lambda: len(self.issued.grants) == 2)
            read(m.at("links/199"))
        first, second = self.issued.grants.values()
        self.assertLess(second.made, first.ends.timestamp())
        _, hanging, _, last = giver.requests
        self.assertTrue([r for r in self.store.requests if hanging.began < r.began and r.ended < last.began])
        self.assertEqual({r.status for r in self.store.requests}, {206})

    def test_profile_that_is_renewed(self):
        """Keys with a token are for a while, and another program writes the next ones."""
        def put():
            keys = self.issued.grant().keys
            write(self.file("new"), f"[default]\naws_access_key_id={keys.access}\naws_secret_access_key={keys.secret}\n"
                  f"aws_session_token={keys.token}\n".encode())
            os.rename(self.file("new"), self.file("credentials"))
        put()
        with self.mount(self.store, {"AWS_SHARED_CREDENTIALS_FILE": self.file("credentials")}) as m:
            self.block(m, 3)
            self.issued.revoke()
            put()
            self.block(m, 4)
            self.issued.revoke()
            self.assertErrno(errno.EIO, self.block, m, 5)

    def test_that_do_not_help(self):
        """One renewal, and no more, if newer ones are refused as well."""
        giver = self.give()
        giver.container_token = "token"
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": giver.url("container"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token"}
        with self.mount(self.store, env) as m:
            self.store.forget()
            self.store.on("", status(403, body=b"<Error><Code>ExpiredToken</Code></Error>"), None)
            self.assertErrno(errno.EIO, self.block, m, 3)
            self.assertErrno(errno.EIO, self.block, m, 3)
            self.assertEqual(len(self.issued.grants), 2)
            self.store.rules.clear()
            self.block(m, 4)

    def test_giver_that_fails(self):
        """While credentials are good, nobody waits for their server; when they are not, reads fail, and the mount lives."""
        giver = self.give()
        giver.container_token = "token"
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": giver.url("container"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token"}
        giver.on("", status(503))
        with self.mount(self.store, env) as m:
            self.assertEqual(giver.count.requests, 2)
            giver.on("", status(400), None)
            self.block(m, 3)
            self.issued.revoke()
            self.assertErrno(errno.EIO, self.block, m, 4)
            self.assertErrno(errno.EIO, self.block, m, 5)
            self.assertEqual(giver.count.requests, 3)  # nobody is asked again at once

    def test_refused(self):
        giver, env = self.with_identity()
        profile = {"AWS_CONFIG_FILE": self.file("config"), "AWS_EC2_METADATA_DISABLED": ""}
        closed = ObjectServer(self.folder)
        closed.server.server_close()
        for expected, said, change, text in (
                (14, "InvalidIdentityToken", {"AWS_WEB_IDENTITY_TOKEN_FILE": self.path[:-4] + "wrong"}, ""),
                (14, "token file", {"AWS_WEB_IDENTITY_TOKEN_FILE": "/no/file"}, ""),
                (3, "https", {"AWS_ENDPOINT_URL_STS": "http://192.0.2.1/"}, ""),
                (16, "certificate", {"CURL_CA_BUNDLE": ""}, ""),
                (14, "no credentials", {"AWS_ROLE_ARN": "", "AWS_EC2_METADATA_DISABLED": "",
                                        "AWS_EC2_METADATA_SERVICE_ENDPOINT": closed.url("")}, ""),
                (3, "neither this machine", {"AWS_ROLE_ARN": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/x"}, ""),
                (3, "AWS_PROFILE", {"AWS_PROFILE": "nobody"}, ""),
                (3, "single sign-on", {"AWS_ROLE_ARN": "", **profile}, "sso_session = x"),
                (3, "mfa_serial", profile, "role_arn = x\nsource_profile = y\nmfa_serial = z"),
                (3, "source_profile", profile, "role_arn = x\nsource_profile = y"),
                (3, "region", {"AWS_REGION": "a.b/c"}, "")):
            write(self.file("served", "wrong"), b"not that token")
            write(self.file("config"), b"[default]\n" + text.encode())
            with self.subTest(said):
                code, heard = self.refused(self.store, {**env, **change})
                self.assertIn(said, heard)
                self.assertEqual(code, expected, heard)
        self.assertEqual(self.store.requests, [])


class Places(StoreCase):
    """Buckets of other regions, and objects that keep their versions."""
    ENV = {**StoreCase.ENV, "AWS_ACCESS_KEY_ID": KEYS.access, "AWS_SECRET_ACCESS_KEY": KEYS.secret}
    HOST = "bucket.s3.{}.amazonaws.com"

    def test_region(self):
        """The region that the store names is remembered."""
        for answer in (400, False), (400, True), (301, True), (307, True):
            with self.subTest(answer), self.serve(keys=KEYS, wrong_region=answer) as server, \
                    self.mount(server, {"AWS_REGION": "us-wrong-1"}) as m:
                self.block(m, 3)
                self.assertEqual([r.status for r in server.requests], [answer[0], 206, 206])

    def test_regions_without_end(self):
        with self.serve(keys=KEYS) as server:
            for signed, named in ("/eu-1/", "eu-2"), ("/eu-2/", "eu-1"):
                server.on(lambda request, signed=signed: signed in request.headers["Authorization"],
                          status(301, {"x-amz-bucket-region": named}), None)
            self.assertEqual(self.refused(server, {"AWS_REGION": "eu-1"})[0], 16)
            self.assertLess(len(server.requests), 20)
            server.rules.clear()
            for fault in status(301, {"x-amz-bucket-region": "evil.org/"}), status(301, {"x-amz-bucket-region": KEYS.region}), status(301):
                server.on("", fault)
                self.assertEqual(self.refused(server, {})[0], 16)

    def test_amazon(self):
        """Each region has servers of its own; a bucket whose name has dots is in the path."""
        os.link(self.path, self.file("served", "bucket", "other.h5"))
        with h5py.File(self.path, "a") as f:
            f["link"] = h5py.ExternalLink("other.h5", "/group/small")
        os.mkdir(self.file("served", "my.bucket"))
        os.link(self.path, self.file("served", "my.bucket", "x.h5"))
        regions = "us-east-1", KEYS.region
        names = [self.HOST.format(region) for region in regions] + [f"s3.{region}.amazonaws.com" for region in regions]
        with self.serve(keys=KEYS, tls=True, names=names, wrong_region=(301, True)) as server, Tunnel(server) as tunnel:
            env = {**self.ENV, "AWS_REGION": "us-east-1", "https_proxy": tunnel.url, "CURL_CA_BUNDLE": server.certificate, "no_proxy": ""}
            for bucket, expected in ("bucket", names[:2]), ("my.bucket", names[2:]):
                tunnel.names.clear()
                with self.subTest(bucket), Mount(f"s3://{bucket}/x.h5", env=env) as m:
                    self.block(m, 3)
                    if bucket == "bucket":
                        self.assertEqual(len(read(m.at("link"))), 8000)
                    self.assertEqual(sorted(set(tunnel.names)), sorted(expected))

    def test_authorities(self):
        """The variable of the tools of AWS is for object stores alone."""
        for variable in "AWS_CA_BUNDLE", "CURL_CA_BUNDLE":
            with self.subTest(variable), self.serve(keys=KEYS, tls=True) as server, \
                    self.mount(server, {"CURL_CA_BUNDLE": "", variable: server.certificate}) as m:
                self.block(m, 3)
        with self.serve(tls=True) as server:
            self.assertEqual(refusal(server.url("x.h5"), env={**self.ENV, "AWS_CA_BUNDLE": server.certificate, "CURL_CA_BUNDLE": ""})[0], 17)

    def test_redirects_of_amazon(self):
        """A signature goes to servers of the same bucket, and no others."""
        home, away = self.HOST.format(KEYS.region), "bucket.s3-x1.amazonaws.com"
        with self.serve(keys=KEYS, tls=True, names=[home, away, "evil.org"]) as server, Tunnel(server) as tunnel:
            env = {**self.ENV, "https_proxy": tunnel.url, "CURL_CA_BUNDLE": server.certificate, "no_proxy": ""}

            def lead_to(host):
                server.on(lambda request: request.headers["Host"] == home, redirect(f"https://{host}/x.h5?rk=1", 307))

            lead_to(away)
            with Mount("s3://bucket/x.h5", env=env) as m:
                self.block(m, 3)
            self.assertEqual([(r.headers["Host"], r.status) for r in server.requests], [(home, 307), (away, 206), (away, 206)])
            server.forget()
            lead_to("evil.org")
            self.assertEqual(refusal("s3://bucket/x.h5", env=env)[0], 14)
            self.assertEqual([(r.headers["Host"], "Authorization" in r.headers) for r in server.requests], [(home, True), ("evil.org", False)])

    def test_redirects_of_others(self):
        other = self.enterContext(ObjectServer(self.file("served", "bucket")))
        with self.serve(keys=KEYS) as server:
            server.on("", redirect(other.url("x.h5"), 307), None)
            with self.mount(server) as m:
                self.block(m, 3)
        self.assertEqual((other.wrong, len(server.requests)), ([], 1))

    def replace(self):
        """Another object of the same name."""
        write(self.file("new"), read(self.path)[::-1])
        os.rename(self.file("new"), self.file("served", "bucket", "x.h5"))

    def test_versions(self):
        """What was mounted stays readable, also if the object is written anew."""
        with self.serve(keys=KEYS, versions=True) as server, self.mount(server) as m:
            self.block(m, 3)
            self.replace()
            self.block(m, 4)
            self.block(m, 5)
            self.assertEqual({r.status for r in server.requests}, {206})
            first, *later = [r.version for r in server.requests]
            self.assertEqual((first, len(set(later))), (None, 1))
            self.assertIsNotNone(later[0])

    def test_versions_that_nobody_may_read(self):
        with self.serve(keys=KEYS, versions="forbidden") as server, self.mount(server) as m:
            self.block(m, 3)
            self.block(m, 4)
            self.assertEqual([r.status for r in server.requests], [206, 403, 206, 206])
            self.replace()
            self.assertErrno(errno.ESTALE, self.block, m, 5)

    def test_version_that_is_removed(self):
        with self.serve(keys=KEYS, versions=True) as server, self.mount(server) as m:
            self.replace()
            server.kept.clear()
            self.assertErrno(errno.ESTALE, self.block, m, 3)


if __name__ == "__main__":
    main()
