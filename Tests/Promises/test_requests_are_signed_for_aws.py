"""Promise: a request of any caller goes out with an AWS signature, and botocore computes the same one from what has arrived."""

import contextlib
import json
import time

import pytest
from aws_signatures import KEY, KEY_ID, Requests, Service

import http2_peers
from harness import eventually, together
from scripted import get, identified, problem_type


def block(gateway, service, key=KEY, **changes):
    settings = {"access_key_id": gateway.secret("key-id", KEY_ID), "secret_access_key": gateway.secret("key", key)}
    if service.token:
        settings["session_token"] = gateway.secret("session-token", service.token)
    return settings | {"service": service.service, "region": service.region, "payload": service.payload} | changes


def signing(gateway, service, route=None, key=KEY, changes=None, **top):
    way = {"paths": "raw"} | (route or {})
    return identified(gateway, service, {"aws_sigv4": block(gateway, service, key, **(changes or {}))}, way, **top).start()


SEED, EACH = 20261128, 2500


@pytest.mark.parametrize("exact", [True, False], ids=["as-botocore-writes", "as-others-write"])
@pytest.mark.parametrize("kind", ["s3", "execute-api"])
def test_botocore_signs_what_arrives_in_the_same_way(gateway, kind, exact):
    # S3 reads the path in one form only, which is the one that botocore writes.
    with Service(kind, read=not exact) as service:
        signing(gateway, service)
        requests = Requests(f"{SEED} {kind} {exact}", exact, kind == "s3")
        with gateway.raw() as caller:
            for number in range(EACH):
                method, sent = requests.draw(gateway.listen)
                answer = caller.send(sent).answer(method)
                assert answer.status == 200, (number, sent, answer, service.wrong)
        assert (service.good, service.wrong) == (EACH, [])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("payload", ["signed", "unsigned"])
def test_bodies_and_session_tokens(gateway, version, payload):
    with Service(token="FwoGZXIvYXdzE/+=" * 40, payload=payload, version=version) as service:
        signing(gateway, service, {"http": {1: "1.1", 2: "2"}[version]})
        for size in (None, 0, 1, 17_000, 300_000):
            answer = gateway.call("PUT" if size is not None else "GET", "/bucket/key", None if size is None else b"b" * size)
            assert (answer.status, answer.body) == (200, f"good {size or 0}".encode()), service.wrong
        assert gateway.call("PUT", "/bucket/key", iter([b"y" * 40_000] * 3)).body == b"good 120000"
        named = dict(service.seen[-1].fields)
        if version == 1:
            # S3 takes no body whose length it is not told; one that was held has a length.
            told = ("120000", None) if payload == "signed" else (None, "chunked")
            assert (named.get("content-length"), named.get("transfer-encoding")) == told
        assert {answer.status for answer in together(16, lambda number: gateway.get(f"/object/{number}?n={number}"))} == {200}


def test_edits_of_the_route_are_signed_too(gateway):
    with Service() as service:
        edits = {"to": f"http://{service.address}/tenant-7", "host": "storage.internal", "headers": {"set": {"X-Amz-Acl": "private"}}}
        signing(gateway, service, edits)
        assert gateway.get("/a?x=1").status == 200
        named = dict(service.seen[-1].fields)
        assert (service.seen[-1].target, named["host"], named["x-amz-acl"]) == ("/tenant-7/a?x=1", "storage.internal", "private")


def test_what_a_caller_wrote_under_these_names_does_not_pass(gateway):
    with Service() as service:
        signing(gateway, service)
        forged = {"Authorization": "AWS4-HMAC-SHA256 forged", "X-Amz-Date": "20000101T000000Z", "X-AMZ-SECURITY-TOKEN": "forged"}
        assert gateway.get("/a", headers=forged | {"x-amz-content-sha256": "UNSIGNED-PAYLOAD", "X_Amz_Date": "1"}).status == 200
        assert not any("forged" in value or name == "x_amz_date" for name, value in service.seen[-1].fields)


STREAMING = "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"


@pytest.mark.parametrize(
    "target, field, reason",
    [
        ("/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0", None, "presigned"),
        ("/a?b=c&X-Amz-Signature=0", None, "presigned"),
        ("/a?x%2damz%2Dalgorithm", None, "presigned"),
        # Bodies in aws-chunked that are announced by halves; whole ones: test_uploads_in_chunks_are_signed_anew.py.
        ("/a", STREAMING, "aws-chunked"),
        ("/a", "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "aws-chunked"),
        ("/a", "Content-Encoding: gzip, AWS-Chunked", "aws-chunked"),
        ("/a", "X-Amz-Decoded-Content-Length: 5", "aws-chunked"),
        ("/a", "X-Amz-Trailer: x-amz-checksum-crc32", "aws-chunked"),
        ("/a%zz", None, "percent sign"),
        ("/a%", None, "percent sign"),
        ("/a?b=%4", None, "percent sign"),
        ("/a?%g0=", None, "percent sign"),
        ("/a", b"X-Amz-Meta-A: caf\xe9", "not UTF-8"),
    ],
)
def test_requests_that_are_not_signed_are_a_400(gateway, target, field, reason):
    with Service() as service:
        signing(gateway, service)
        field = field.encode() if isinstance(field, str) else field
        sent = f"GET {target} HTTP/1.1\r\nHost: {gateway.listen}\r\n".encode() + (field + b"\r\n" if field else b"") + b"\r\n"
        with gateway.raw() as caller:
            answer = caller.send(sent).answer()
            assert (answer.status, problem_type(answer)) == (400, "unsignable-request"), answer
            assert reason in answer.problem["detail"]
            # Neither connection is lost over it.
            assert caller.send(get(gateway, "/good")).answer().status == 200
        assert (service.good, service.wrong, service.server.connections) == (1, [], 1)


CHUNKS = b"5;chunk-signature=0\r\nhello\r\n0;chunk-signature=0\r\n\r\n"


@pytest.mark.parametrize("payload", ["signed", "unsigned"])
@pytest.mark.parametrize("version", [1, 2])
def test_an_upload_in_chunks_that_is_announced_by_halves_reaches_nobody(gateway, version, payload):
    with Service(version=version, payload=payload) as service:
        signing(gateway, service, {"http": {1: "1.1", 2: "2"}[version]})
        name, value = STREAMING.split(": ")
        answer = gateway.call("PUT", "/a", CHUNKS, {name: value})
        assert (answer.status, problem_type(answer)) == (400, "unsignable-request")
        with http2_peers.Caller(gateway.listen) as caller:
            stream = caller.request("PUT", "/a", [(name.lower(), value)], ended=False)
            # It is refused by its head.
            with contextlib.suppress(http2_peers.Reset):
                stream.write(CHUNKS)
                stream.end()
            assert stream.head() == 400
            assert caller.request("GET", "/a").head() == 200
        assert (service.good, service.wrong) == (1, [])


def test_ten_thousand_parameters_cost_no_more_each_than_few(gateway):
    with Service(read=False) as service:
        limits = {"limits": {"target_size": "512KiB", "header_size": "1MiB"}}
        signing(gateway, service, **limits)
        spent = {1_000: [], 10_000: []}
        for count in list(spent) * 3:
            query = "&".join(f"p{index % 7}{index * 7919 % count}={index}" for index in range(count))
            with gateway.raw() as caller:
                began = time.monotonic()
                assert caller.send(get(gateway, f"/a?{query}")).answer().status == 200, service.wrong
                spent[count].append(time.monotonic() - began)
        # A hundred times as long would be quadratic.
        assert min(spent[10_000]) < 40 * min(spent[1_000]), spent


def test_new_files_are_a_new_key(gateway):
    with Service(token="the-first-token") as service:
        signing(gateway, service)
        assert gateway.get("/a").status == 200
        service.key, service.token = "another/secret/key", "the-second-token"
        gateway.secret("key", service.key)
        gateway.secret("session-token", service.token)
        eventually(lambda: gateway.get("/a").status == 200, what="the new key")


def test_one_key_signs_for_two_regions(gateway):
    with Service(region="eu-west-1") as west, Service("sqs", region="us-east-2") as east:
        blocks = {name: {"aws_sigv4": block(gateway, service)} for name, service in (("west", west), ("east", east))}
        routes = [
            gateway.route("west", west.address) | {"paths": "raw", "match": {"path": "/west/"}},
            gateway.route("east", east.address) | {"match": {"path": "/east/"}},
        ]
        gateway.config = gateway.frame({"identities": blocks, "routes": routes})
        gateway.start()
        for _ in range(2):
            assert [gateway.get(path).status for path in ("/west/a", "/east/a")] == [200, 200]


def signs_for(scope, key_id="dummy"):
    return {"Authorization": f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}/aws4_request, SignedHeaders=host, Signature={'0' * 64}"}


def test_a_caller_chooses_among_services_and_regions_by_its_own_signature(gateway):
    with Service("sqs", region="eu-west-1") as service:
        lists = {"service": None, "region": None, "services": ["s3", "sqs"], "regions": ["eu-west-1", "us-east-1"]}
        settings = {name: value for name, value in (block(gateway, service) | lists).items() if value is not None}
        way = {"paths": "raw", "host": "caller", "hosts": ["any"]}
        identified(gateway, service, {"aws_sigv4": settings}, way).start()
        dummy = {"X-Amz-Security-Token": "dummy", "X-Amz-Date": "20261128T000000Z"}
        assert gateway.get("/a", headers=signs_for("20261128/eu-west-1/sqs") | dummy).status == 200, service.wrong
        assert not any("dummy" in value for _, value in service.seen[-1].fields)
        # Without a signature its host says it.
        assert gateway.get("/a", headers={"Host": "sqs.eu-west-1.amazonaws.com"}).status == 200, service.wrong
        # The lists grant what this service does not take.
        assert gateway.get("/a", headers=signs_for("20261128/us-east-1/s3")).status == 403
        wrong = len(service.wrong)
        for headers, reason in [
            ({}, "neither a signature"),
            ({"Authorization": "Basic YTpi"}, "neither a signature"),
            ({"Host": "sts.eu-west-1.amazonaws.com"}, "'services'"),
            ({"Host": "sqs.us-east-2.amazonaws.com"}, "'regions'"),
            (signs_for("20261128/eu-west-1/sts"), "'services'"),
            (signs_for("20261128/us-east-2/sqs"), "'regions'"),
            (signs_for("20261128/eu-west-1"), "does not name one day"),
            (signs_for("20261128/eu-west-1/sqs", "") | {"Host": "sqs.eu-west-1.amazonaws.com"}, "does not name one day"),
            ({"Authorization": "AWS4-ECDSA-P256-SHA256 Credential=a/20261128/sqs/aws4_request"}, "does not name one day"),
        ]:
            answer = gateway.get("/a", headers=headers)
            assert (answer.status, problem_type(answer)) == (400, "unsignable-request"), (headers, answer)
            assert reason in answer.problem["detail"], (headers, answer)
        assert (service.good, len(service.wrong)) == (2, wrong)


def test_a_callers_signature_chooses_nothing_without_lists(gateway):
    with Service("sqs", region="eu-west-1") as service:
        signing(gateway, service)
        for headers in (signs_for("20261128/us-east-1/s3"), {"Authorization": "AWS4-HMAC-SHA256 Credential=////"}):
            assert gateway.get("/a", headers=headers).status == 200, service.wrong


def test_a_refusal_of_the_service_passes_unless_the_route_counts_it(gateway):
    with Service() as service:
        signing(gateway, service, key="wrong/secret/key")
        assert gateway.get("/a").status == 403
    with Service() as service:
        gateway.stop()
        signing(gateway, service, {"on_rejected": {"statuses": [401, 403]}}, key="wrong/secret/key")
        answer = gateway.get("/a")
        assert (answer.status, problem_type(answer)) == (502, "upstream-refused-credential")


# --- Commands --------------------------------------------------------------------------------------------------------


def checked(gateway, settings, **route):
    settings = {"access_key_id": gateway.secret("key-id", KEY_ID), "secret_access_key": gateway.secret("key", KEY)} | settings
    way = gateway.route("only", "https://sts.eu-west-1.amazonaws.com") | route
    gateway.config = gateway.frame({"identities": {"only": {"aws_sigv4": settings}}, "routes": [way]})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    return status, out + errors


@pytest.mark.parametrize(
    "settings, route, words",
    [
        ({}, {"to": "https://api.example.com"}, "needs 'service' of identity 'only': its host 'api.example.com' does not say it"),
        ({"service": "sts"}, {"to": "https://api.example.com"}, "needs 'region' of identity 'only'"),
        ({}, {"host": "caller"}, "'host: caller' leaves it to the caller"),
        ({}, {"to": "https://b.s3.amazonaws.com"}, "needs 'paths: raw'"),
        ({"service": "s3", "region": "x"}, {"to": "https://storage.example.com", "paths": "strict"}, "needs 'paths: raw'"),
        ({}, {"inject": {"header": "X-Key"}}, "writes Authorization, whose place its protocol names"),
        ({}, {"headers": {"set": {"X-Amz-Date": "now"}}}, "edits 'X-Amz-Date', which identity 'only' writes"),
        ({"payload": "some"}, {}, "one of signed, unsigned"),
        ({"services": ["sts"]}, {"host": "caller"}, "needs 'region' of identity 'only'"),
        ({"services": ["sts", "s3"]}, {}, "needs 'paths: raw'"),
        ({"services": ["sts"], "service": "sts"}, {}, "write one of the two"),
        ({"regions": []}, {}, "names nothing that a caller may choose"),
        ({"regions": ["EU-west-1"]}, {}, "lower case"),
        ({"max_chunk": "1KiB"}, {}, "from 8KiB to 64MiB"),
    ],
)
def test_check_says_what_cannot_be_signed(gateway, settings, route, words):
    status, said = checked(gateway, settings, **route)
    assert status == 78 and words in said, said


def test_check_warns_of_bodies_that_nothing_protects(gateway):
    status, said = checked(
        gateway, {"payload": "unsigned"}, to="http://192.0.2.1", host="sqs.eu-west-1.amazonaws.com", allow_cleartext=True
    )
    assert status == 0 and "bodies are neither signed nor encrypted" in said, said


def test_the_host_says_service_and_region(gateway):
    assert checked(gateway, {})[0] == 0
    assert checked(gateway, {}, to="https://b.s3.eu-west-1.amazonaws.com", paths="raw")[0] == 0
    assert checked(gateway, {}, to="https://10.0.0.1", host="sts.eu-west-1.amazonaws.com")[0] == 0
    lists = {"services": ["sts", "sqs"], "regions": ["eu-west-1"]}
    assert checked(gateway, lists, to="https://api.example.com", host="caller")[0] == 0


def test_explain_and_schema_know_it(gateway):
    assert checked(gateway, {"payload": "unsigned"})[0] == 0
    status, said, _ = gateway.command("explain", "GET", f"http://{gateway.listen}/a")
    assert status == 0 and "AWS Signature Version 4" in said and "not the body" in said, said
    status, schema, _ = gateway.command("schema", config=False)
    assert status == 0 and "session_token" in schema and "aws_sigv4" in schema
