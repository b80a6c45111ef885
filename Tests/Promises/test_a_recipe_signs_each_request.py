"""Promise: a request is signed as it is sent, each for itself; botocore computes the signature that must stand in it."""

import contextlib
import re

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from harness import together
from recipes import recipe
from served import Quiet, Served

KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/(\d{8})/eu-central-1/s3/aws4_request, "
    r"SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=([0-9a-f]{64})"
)


class Storage(Served):
    """Admits what botocore would have signed in the same way."""

    def __init__(self, key=KEY):
        outer = self
        self.key, self.seen = key, []

        class Handler(Quiet):
            def serve(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                fault = outer.fault(self.command, self.path, self.headers)
                outer.seen.append((self.path, dict(self.headers)))
                self.respond(401 if fault else 200, (fault or f"good {len(body)}").encode())

            do_GET = do_PUT = do_POST = do_DELETE = serve

        super().__init__(Handler)

    def fault(self, method, target, headers):
        for name in ("Authorization", "X-Amz-Date", "X-Amz-Content-Sha256"):
            if len(headers.get_all(name, [])) != 1:
                return f"{len(headers.get_all(name, []))} {name}"
        found = AUTHORIZATION.fullmatch(headers["Authorization"])
        if not found:
            return "Authorization has another shape"
        names = {name: headers[name] for name in ("Host", "X-Amz-Date", "X-Amz-Content-Sha256")}
        request = botocore.awsrequest.AWSRequest(
            method=method, url=f"http://{headers['Host']}{target}", headers=names
        )
        request.context["timestamp"] = headers["X-Amz-Date"]
        credentials = botocore.credentials.Credentials("AKIDEXAMPLE", self.key)
        auth = botocore.auth.S3SigV4Auth(credentials, "s3", "eu-central-1")
        wanted = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        return None if found[2] == wanted else "another signature"


@pytest.fixture
def storage():
    with contextlib.closing(Storage()) as server:
        yield server


def configured(gateway, storage, key=KEY, **route):
    block = recipe(
        "aws-sigv4",
        {
            "https://storage.example.com": f"http://{storage.address}",
            "file:/run/secrets/storage-secret-key": gateway.secret("storage-key", key),
        },
    )
    routes = [gateway.route("storage", storage.address) | route]
    gateway.config = gateway.frame({"identities": {"storage": {"recipe": block}}, "routes": routes})
    return gateway.start()


@pytest.mark.parametrize(
    "target", ["/", "/bucket/a%20b/c~d", "/?list-type=2&prefix=a%2Fb&delimiter=%2F", "/b?z=1&a=2&a=1&acl=", "/%E1%88%B4"]
)
def test_every_kind_of_target(gateway, storage, target):
    configured(gateway, storage)
    answer = gateway.get(target)
    assert (answer.status, answer.body) == (200, b"good 0")


def test_methods_and_bodies(gateway, storage):
    configured(gateway, storage)
    for method, body in (("PUT", b"x" * 100_000), ("POST", b"{}"), ("DELETE", None)):
        assert gateway.call(method, "/bucket/key", body).body == f"good {len(body or b'')}".encode()
    chunks = gateway.call("PUT", "/bucket/key", iter([b"a" * 10, b"b"]))
    # Chunked: this server reads no such body, so only the signature is looked at.
    assert chunks.status == 200


def test_what_a_caller_wrote_under_these_names_does_not_pass(gateway, storage):
    configured(gateway, storage)
    forged = {"Authorization": "AWS4-HMAC-SHA256 forged", "X-Amz-Date": "20000101T000000Z", "x-amz-content-sha256": "0", "X_Amz_Date": "1"}
    assert gateway.get("/a", headers=forged).status == 200
    assert "X_Amz_Date" not in storage.seen[-1][1]


def test_many_at_once(gateway, storage):
    configured(gateway, storage)
    assert {a.status for a in together(8, lambda i: gateway.get(f"/object/{i}?n={i}"))} == {200}


def test_edits_of_the_route_are_signed_too(gateway, storage):
    configured(gateway, storage, to=f"http://{storage.address}/tenant-7", host="storage.internal")
    assert gateway.get("/a?x=1").status == 200
    path, headers = storage.seen[-1]
    assert (path, headers["Host"]) == ("/tenant-7/a?x=1", "storage.internal")


def test_a_wrong_key_is_a_502_and_a_new_one_helps(gateway, storage):
    configured(gateway, storage, key="wrong-secret-key-1")
    answer = gateway.get("/a")
    assert answer.status == 502 and answer.problem["type"].endswith("upstream-refused-credential")
