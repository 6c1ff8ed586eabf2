#!/usr/bin/python3
"""Files in object stores with the interface of S3: who asks for them, and with what right."""
import os

import object_server
from mountlib import Mount, MountFailed, main, read, refusal, write
from remotelib import SECRET, Case, fetcher_of


class Stores(Case):
    """s3://BUCKET/KEY. The server computes each signature itself."""
    KEYS = object_server.Keys("AKIDEXAMPLE", SECRET + "/+=", None, "eu-test-1")
    ENV = {"AWS_ACCESS_KEY_ID": KEYS.access, "AWS_SECRET_ACCESS_KEY": KEYS.secret, "AWS_REGION": KEYS.region, "AWS_PROFILE": "",
           "AWS_SESSION_TOKEN": "", "AWS_CONFIG_FILE": "/no/file", "AWS_SHARED_CREDENTIALS_FILE": "/no/file"}

    def mount(self, server, env=None, options="", **more):
        options = f"s3_endpoint={server.url()[:-1]}" + options
        return Mount("s3://bucket/x.h5", "-f", options=options, env={**self.ENV, **(env or {})}, **more)

    def setUp(self):
        super().setUp()
        os.mkdir(self.file("served", "bucket"))
        for name in "x.h5", "data+x=1,(\u00e9)~%20.h5":
            os.link(self.path, self.file("served", "bucket", name))

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
                with self.subTest(said), self.assertRaises(MountFailed) as caught:
                    with self.mount(server, env, options):
                        pass
                self.assertEqual(caught.exception.status, expected, caught.exception.said)
                self.assertIn(said, caught.exception.said)
        self.assertEqual(refusal("s3://bucket/x.h5", options="s3_endpoint=127.0.0.1")[0], 2)

    def test_anonymous(self):
        with self.serve() as server, self.mount(server, options=",s3_anonymous") as m:
            self.block(m, 3)


if __name__ == "__main__":
    main()
