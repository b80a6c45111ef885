"""Promise: a program that writes keys as AWS' tools want them brings what requests are signed with, and is run again before they end."""

import json

import pytest
from s3_store import REGION, Store, client

from harness import call, eventually
from programs import Bringer, at
from scripted import Scripted, echo, identified

SECRET = "secret-key-that-a-program-wrote"


@pytest.fixture
def echo_upstream():
    with Scripted(echo) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("moto")) as store:
        yield store


def aws(program, **changes):
    return {"aws_sigv4": program.block() | {"service": "s3", "region": REGION} | changes}


def written_by(key, **members):
    return {"Version": 1, "AccessKeyId": key[0], "SecretAccessKey": key[1]} | members


def test_a_credential_process_signs_for_a_store_that_checks(gateway, store):
    program = Bringer(gateway, written_by(store.key))
    gateway.secrets.append(store.key[1])
    identified(gateway, store, aws(program), {"paths": "raw"}).start()
    s3 = client("s3", gateway.listen)
    s3.create_bucket(Bucket="of-a-program", CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket="of-a-program", Key="a b", Body=b"body")
    assert s3.get_object(Bucket="of-a-program", Key="a b")["Body"].read() == b"body"
    assert call(store.address, "GET", "/of-a-program/a%20b").status == 403
    assert program.runs == 1
    assert gateway.stop() == 0
    # A key stays in memory.
    gateway.start()
    assert s3.get_object(Bucket="of-a-program", Key="a b")["Body"].read() == b"body"
    assert program.runs == 2


def test_keys_are_brought_anew_before_they_end(gateway):
    keys = [("AKIDONE", "secret-of-the-first-key-1"), ("AKIDTWO", "secret-of-the-second-key-2")]
    gateway.secrets += [secret for _, secret in keys]
    program = Bringer(gateway, written_by(keys[0], SessionToken="token-one", Expiration=at(4)))
    with Scripted(echo) as upstream:
        identified(gateway, upstream, aws(program, payload="unsigned"), {"paths": "raw"}).start()
        assert gateway.get("/").status == 200
        program.answers(written_by(keys[1], Expiration=at(3600).replace("Z", "+00:00")))

        def signed_by(key):
            assert gateway.get("/").status == 200
            return f"Credential={key}/" in upstream.requests[-1].field("Authorization")

        eventually(lambda: signed_by("AKIDTWO"), what="the second key")
        first, last = upstream.requests[0], upstream.requests[-1]
        assert "Credential=AKIDONE/" in first.field("Authorization") and first.field("X-Amz-Security-Token") == "token-one"
        assert last.field("X-Amz-Security-Token") is None
        assert program.runs == 2


@pytest.mark.parametrize(
    "written, reason",
    [
        (written_by(("AKID", SECRET), Version=2), "'Version' is not 1"),
        (written_by(("AKID", SECRET), Version="1"), "'Version' is not 1"),
        ({"AccessKeyId": "AKID", "SecretAccessKey": SECRET}, "'Version' is not 1"),
        ({"Version": 1, "SecretAccessKey": SECRET}, "no 'AccessKeyId'"),
        ({"Version": 1, "AccessKeyId": "AKID"}, "no 'SecretAccessKey'"),
        (written_by(("A/B", SECRET)), "its access_key_id is not"),
        (written_by(("AKID", SECRET + "\n")), "its secret_access_key is"),
        (written_by(("AKID", SECRET), SessionToken="a b"), "its session_token is"),
        (written_by(("AKID", SECRET), SessionToken=7), "'SessionToken' is no text"),
        (written_by(("AKID", SECRET), Expiration=at(-5)), "'Expiration' is over"),
        (written_by(("AKID", SECRET), Expiration="Sun, 29 Nov 2026"), "'Expiration' is no time"),
    ],
)
def test_a_malformed_key_signs_nothing(gateway, echo_upstream, written, reason):
    gateway.secrets.append(SECRET)
    identified(gateway, echo_upstream, aws(Bringer(gateway, written)), {"paths": "raw"}).start()
    found = gateway.get("/")
    assert found.status == 503 and f"program: {reason}" in found.problem["detail"], found
    assert not echo_upstream.requests


@pytest.mark.parametrize(
    "block, reason",
    [
        ({"service": "s3", "region": REGION}, "needs 'access_key_id', or a 'program' that brings them"),
        ({"access_key_id": "env:A", "service": "s3", "region": REGION}, "needs 'secret_access_key', or a 'program'"),
        ({"access_key_id": "env:A", "program": {"command": ["/bin/true"]}}, "'access_key_id' of identity 'only' (aws_sigv4) is brought by the 'program' beside it"),
        ({"program": {"command": ["keys"]}}, "must begin with the absolute path"),
        ({"program": {}}, "needs 'command'"),
        ({"program": {"command": ["/bin/true"], "format": "docker"}}, "unknown key 'format'"),
    ],
)
def test_check_says_what_is_wrong_with_keys(gateway, echo_upstream, block, reason):
    identified(gateway, echo_upstream, {"aws_sigv4": block})
    gateway.file.write_text(json.dumps(gateway.config, indent=2))
    status, out, _ = gateway.command("check")
    assert status == 78 and reason in out, out
