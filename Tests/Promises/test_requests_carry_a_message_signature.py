"""Promise: a request of any caller goes out with a signature (RFC 9421) that http-message-signatures verifies, and the server chooses of it what the
configuration lets it choose."""

import base64
import hashlib
import json
import pathlib
import re

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
from message_signatures import ALGORITHMS, MINIMUM, Key, Service

import http2_peers
from harness import eventually, together
from scripted import get, identified, problem_type

# The warning of the library that a label alone is not signed.
pytestmark = pytest.mark.filterwarnings("ignore:Using only a label")


def signing(gateway, service, key, route=None, start=True, **settings):
    block = key.settings(gateway) | settings
    identified(gateway, service, {"http_signature": block}, {"paths": "raw"} | (route or {}))
    return gateway.start() if start else gateway


def covered(result):
    return [name.strip('"') for name in result.covered_components if "signature-params" not in name]


# --- What is signed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_every_algorithm_over_every_version(gateway, algorithm, version):
    key = Key(algorithm)
    with Service(key, version) as service:
        signing(gateway, service, key, {"http": {1: "1.1", 2: "2"}[version]})
        for target in ("/", "/a", "/a?", "/a?b=c&b=%C3%A4+d", "/%7Ea/./b//c;d?x=/../y"):
            assert gateway.get(target).status == 200, (target, service.wrong, gateway.text())
        for size in (0, 1, 17_000, 300_000):
            answer = gateway.call("POST", "/items?q=1", b"b" * size)
            assert (answer.status, answer.body) == (200, f"good {size}".encode()), (service.wrong, gateway.text())
        assert gateway.call("PUT", "/items", iter([b"y" * 40_000] * 3)).body == b"good 120000", service.wrong
        assert {answer.status for answer in together(16, lambda number: gateway.get(f"/{number}?n={number}"))} == {200}
        assert service.wrong == []
        for result, exchange in zip(service.results, service.seen, strict=True):
            assert covered(result) == [*MINIMUM, *(["content-digest"] if exchange.body else [])]
            assert set(result.parameters) == {"created", "keyid"} and result.parameters["keyid"] == "key"


def test_callers_of_http2(gateway):
    key = Key("ed25519")
    with Service(key) as service:
        signing(gateway, service, key)
        with http2_peers.Caller(gateway.listen) as caller:
            assert caller.request("GET", "/a?b=c").head() == 200, service.wrong
            stream = caller.request("POST", "/a", ended=False)
            stream.write(b"some ")
            stream.write(b"octets")
            stream.end()
            assert stream.head() == 200, service.wrong


@pytest.mark.parametrize("version", [1, 2])
def test_every_parameter_that_the_settings_name(gateway, version):
    key = Key("ecdsa-p256-sha256", name='a "quoted\\ key')
    required = ["content-type", "x-twice", "@scheme", "@target-uri", "content-length"]
    with Service(key, version, label="sig_1", required=required) as service:
        cover = ["Content-Type", "@scheme", "@target-uri", "@method", "x-twice", "x-not-there", "content-length"]
        settings = {"cover": cover, "expires": "90s", "nonce": True, "alg": True, "tag": "app-1", "digest": "sha-512"}
        signing(gateway, service, key, {"http": {1: "1.1", 2: "2"}[version]}, label="sig_1", **settings)
        fields = "Content-Type:  text/plain \r\nX-Twice: a\r\nX-TWICE:   b, c"
        with gateway.raw() as caller:
            head = f"POST /a?b HTTP/1.1\r\nHost: {gateway.listen}\r\n{fields}\r\nContent-Length: 2\r\n\r\n"
            for _ in range(2):
                assert caller.send(head.encode() + b"ok").answer().status == 200, service.wrong
        first, second = service.results
        assert first.covered_components['"x-twice"'] == "a, b, c" and first.covered_components['"content-type"'] == "text/plain"
        told = first.parameters
        assert told["expires"] == told["created"] + 90 and told["alg"] == "ecdsa-p256-sha256" and told["tag"] == "app-1"
        assert first.nonce != second.nonce and len(first.nonce) == 22
        digest = base64.b64encode(hashlib.sha512(b"ok").digest()).decode()
        assert dict(service.seen[0].fields)["content-digest"] == f"sha-512=:{digest}:"
        assert covered(first)[:4] == list(MINIMUM) and "x-not-there" not in covered(first)


def test_edits_of_the_route_are_signed_too(gateway):
    key = Key("ed25519")
    with Service(key, required=["x-tenant"]) as service:
        edits = {"to": f"http://{service.address}/tenant-7", "host": "API.internal:80", "headers": {"set": {"X-Tenant": "seven"}}}
        signing(gateway, service, key, edits, cover=["x-tenant"])
        assert gateway.get("/a?x=1").status == 200, service.wrong
        assert service.seen[0].target == "/tenant-7/a?x=1" and service.results[0].covered_components['"@authority"'] == "api.internal"


@pytest.mark.parametrize("form", ["pkcs12", "encrypted", "jwk", "pss"])
def test_every_form_of_a_key(gateway, form):
    if form == "encrypted":
        key = Key("ecdsa-p384-sha384", password="open-the-key-file")
    elif form == "pss":
        # The key says itself that it signs with PSS alone: nothing has to be named.
        key = Key("rsa-pss-sha512")
    else:
        key = Key("ecdsa-p256-sha256")
    settings = {}
    if form == "jwk":
        numbers = key.private.private_numbers()
        spell = lambda number: base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()  # noqa: E731
        point = numbers.public_numbers
        jwk = {"kty": "EC", "crv": "P-256", "x": spell(point.x), "y": spell(point.y), "d": spell(numbers.private_value), "kid": "key"}
        settings = {"key": gateway.secret("jwk", json.dumps(jwk)), "key_id": None}
    elif form == "pkcs12":
        path = gateway.folder / "key.p12"
        path.write_bytes(pkcs12.serialize_key_and_certificates(b"key", key.private, None, None, NoEncryption()))
        path.chmod(0o600)
        settings = {"key": f"file:{path}"}
    elif form == "pss":
        der = key.private.private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        octets = b"\x04" + length(der) + der
        body = b"\x02\x01\x00" + bytes.fromhex("300b06092a864886f70d01010a") + octets
        text = base64.encodebytes(b"\x30" + length(body) + body).decode()
        settings = {"key": gateway.secret("pss", f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----\n"), "algorithm": "auto"}
    with Service(key) as service:
        block = {name: value for name, value in (key.settings(gateway) | settings).items() if value is not None}
        identified(gateway, service, {"http_signature": block}).start()
        assert gateway.call("POST", "/a", b"body").status == 200, (service.wrong, gateway.text())


def length(octets):
    return b"\x82" + len(octets).to_bytes(2, "big")


# --- What callers bring ----------------------------------------------------------------------------------------------


def test_a_changed_body_is_refused_by_the_server(gateway):
    key = Key("ed25519")
    changed = []

    class Meddling(Service):
        def verify(self, exchange, body):
            if exchange.target == "/changed":
                changed.append(body)
                body = body.replace(b"1", b"2")
            return super().verify(exchange, body)

    with Meddling(key) as service:
        signing(gateway, service, key)
        assert gateway.call("POST", "/changed", b"pay 100").status == 502
        assert gateway.call("POST", "/kept", b"pay 100").status == 200
        assert len(changed) == 1 and "does not match" in service.wrong[0][0]


def test_signatures_of_the_caller_under_other_labels_pass_untouched(gateway):
    key = Key("ed25519")
    with Service(key) as service:
        signing(gateway, service, key)
        own = {
            "Signature-Input": 'sig1=("@method"   "x-a");created=1;keyid="k" , cardea=("@path");created=5;keyid="key", b=()',
            "Signature": "sig1=:AAEC:, cardea=:AAAA:,b=:AA==:",
        }
        assert gateway.get("/a", headers=own).status == 200, service.wrong
        named = dict(service.seen[0].fields)
        assert named["signature-input"].startswith('sig1=("@method"   "x-a");created=1;keyid="k", b=(), cardea=("@method" ')
        assert named["signature"].startswith("sig1=:AAEC:, b=:AA==:, cardea=:")
        assert len([name for name, _ in service.seen[0].fields if name == "signature"]) == 1


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"Signature": 'keyId="a",algorithm="hs2019",signature="AAAA"'}, "its own Signature cannot be read"),
        ({"Signature-Input": "sig1=("}, "its own Signature-Input cannot be read"),
        ({"Signature-Input": "a=(), a=()"}, "a key stands twice"),
        # No verifier could read ours beside these.
        ({"Signature-Input": "*=()"}, "none of RFC 9421"),
        ({"Signature": "x=:AAAA:"}, "none of RFC 9421"),
        ({"Signature-Input": "x=@5", "Signature": "x=:AAAA:"}, "none of RFC 9421"),
        ({"Signature-Input": "x=();a=@5", "Signature": "x=:AAAA:"}, "none of RFC 9421"),
        ({"Signature-Input": "x=(a)", "Signature": "x=:AAAA:"}, "none of RFC 9421"),
        ({"Signature-Input": "x=()", "Signature": "x=tok"}, "none of RFC 9421"),
        ({"Content-Digest": "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"}, "not that of its body"),
        ({"Content-Digest": "sha-256=abc"}, "not that of its body"),
        ({"Content-Digest": "SHA-256=:AAAA:"}, "its Content-Digest cannot be read"),
    ],
)
def test_what_a_caller_says_wrongly_is_not_signed(gateway, fields, reason):
    key = Key("ed25519")
    with Service(key) as service:
        signing(gateway, service, key)
        answer = gateway.call("POST", "/a", b"body", fields)
        assert (answer.status, problem_type(answer)) == (400, "unsignable-request"), answer
        assert reason in answer.problem["detail"]
        assert gateway.call("POST", "/a", b"body").status == 200
        assert (service.good, service.wrong, len(service.seen)) == (1, [], 1)


def test_a_digest_of_the_caller_that_is_right_is_ours(gateway):
    key = Key("ed25519")
    with Service(key, required=["content-digest"]) as service:
        signing(gateway, service, key)
        right = base64.b64encode(hashlib.sha256(b"body").digest()).decode()
        nothing = base64.b64encode(hashlib.sha256(b"").digest()).decode()
        # By other functions nothing was verified, so nothing is signed.
        told = {"Content-Digest": f"md5=:AAAA:, sha-256=:{right}:"}
        assert gateway.call("POST", "/a", b"body", told).status == 200, service.wrong
        assert dict(service.seen[0].fields)["content-digest"] == f"sha-256=:{right}:"
        assert gateway.get("/a", headers={"Content-Digest": f"sha-256=:{nothing}:"}).status == 200, service.wrong


@pytest.mark.parametrize(
    "target, field, reason",
    [
        ("/caf\u00e9", "", "'@path', which is signed, has octets"),
        ("/a?caf\u00e9", "", "'@query', which is signed, has octets"),
        ("/a", "X-Name: caf\u00e9\r\n", "'x-name', which is signed, has octets"),
    ],
)
def test_octets_that_no_signature_base_can_have_are_a_400(gateway, target, field, reason):
    key = Key("ed25519")
    with Service(key) as service:
        signing(gateway, service, key, cover=["x-name"])
        with gateway.raw() as caller:
            answer = caller.send(f"GET {target} HTTP/1.1\r\nHost: {gateway.listen}\r\n{field}\r\n".encode()).answer()
            assert (answer.status, problem_type(answer)) == (400, "unsignable-request"), answer
            assert reason in answer.problem["detail"]
            assert caller.send(get(gateway, "/good")).answer().status == 200
        assert (service.good, service.wrong) == (1, [])


def test_a_body_that_is_too_large_to_be_held_is_a_413(gateway):
    key = Key("ed25519")
    with Service(key) as service:
        signing(gateway, service, key, {"on_rejected": {"max_body": "64KiB"}})
        assert gateway.call("POST", "/a", b"x" * 65536).status == 200, service.wrong
        for body in (b"x" * 65537, iter([b"x" * 40_000] * 2)):
            answer = gateway.call("POST", "/a", body)
            assert (answer.status, problem_type(answer)) == (413, "big-body")
        assert len(service.seen) == 1


# --- What the server may ask for ---------------------------------------------------------------------------------------


class Asking:
    """Asks for the lines until a signature fulfils `fulfilled`."""

    def __init__(self, *lines, fulfilled=lambda exchange: False):
        self.lines, self.fulfilled, self.asked = lines, fulfilled, 0

    def __call__(self, exchange, result, fault):
        if self.fulfilled(exchange):
            return None
        self.asked += 1
        return self.lines


def input_of(exchange):
    return dict(exchange.fields)["signature-input"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_server_may_ask_for_components_a_label_and_a_nonce(gateway, version):
    key = Key("ecdsa-p256-sha256")
    asking = Asking(
        'other=("date");keyid="key", asked=("content-type" "@method" "@target-uri" "content-digest");created;nonce="n-\\"1";keyid="key"',
        fulfilled=lambda exchange: "nonce=" in input_of(exchange),
    )
    with Service(key, version, label="asked", asks=asking) as service:
        route = {"http": {1: "1.1", 2: "2"}[version]}
        signing(gateway, service, key, route, components=["content-type", "@target-uri", "accept"])
        for number in range(1, 3):
            answer = gateway.call("POST", "/a?b=c", b"body", {"Content-Type": "text/plain"})
            assert (answer.status, answer.body) == (200, b"good 4"), (service.wrong, gateway.text())
            # One request's wish is not the next one's.
            assert (asking.asked, len(service.seen)) == (number, 2 * number)
        result = service.results[0]
        assert result.nonce == 'n-"1' and covered(result) == [*MINIMUM, "content-type", "@target-uri", "content-digest"]


def test_a_digest_of_nothing_is_signed_for_who_asks(gateway):
    key = Key("ed25519")
    asking = Asking('cardea=("content-digest")', fulfilled=lambda exchange: "content-digest" in input_of(exchange))
    with Service(key, asks=asking, required=["content-digest"]) as service:
        signing(gateway, service, key)
        assert gateway.get("/a").status == 200, service.wrong
        assert len(service.seen) == 2


@pytest.mark.parametrize(
    "line, reason",
    [
        ('sig=("date" "@path" "cookie")', "asks for date, cookie, which 'components' does not allow"),
        ('sig=("content-type");keyid="another"', "asks for another key"),
        ('sig=("content-type");alg="rsa-pss-sha512"', "asks for another algorithm"),
        ('sig=("content-type");tag="app"', "asks for another tag"),
        ('sig=("content-type");expires', "asks for 'expires'"),
        ('sig=("@status")', "asks for '@status', which is not signed here"),
        ('sig=("content-type";sf)', "with a parameter"),
        ("sig=(", "it is no dictionary"),
    ],
)
def test_more_than_is_allowed_is_the_callers_401(gateway, line, reason):
    key = Key("ed25519")
    with Service(key, asks=Asking(line)) as service:
        signing(gateway, service, key, components=["content-type"], algorithm="ed25519")
        answer = gateway.get("/a")
        assert (answer.status, answer.body, answer.field("Accept-Signature")) == (401, b"sign it otherwise", line)
        gateway.told(lambda event: reason in event.get("reason", ""))
        assert len(service.seen) == 1


MALFORMED = json.loads((pathlib.Path(__file__).parent / "malformed_accept_signatures.json").read_text())


def test_what_cannot_be_read_is_the_callers_401_and_costs_nothing(gateway):
    key = Key("ed25519")
    lines = []
    with Service(key, asks=lambda exchange, result, fault: lines) as service:
        signing(gateway, service, key, components=["content-type"], algorithm="ed25519")
        for number, (line, _) in enumerate(MALFORMED, start=1):
            lines[:] = [line]
            answer = gateway.call("POST", "/a", b"body", {"Content-Type": "text/plain"})
            assert (answer.status, answer.body) == (401, b"sign it otherwise"), (line, answer)
            assert len(service.seen) == number, line
        lines.clear()
        assert gateway.call("POST", "/a", b"body").status == 200, service.wrong
        identity = gateway.ask("/status").json["identities"][0]
        assert identity["state"] == "fresh" and len(MALFORMED) >= 50, identity


def test_who_asks_twice_is_answered_once(gateway):
    key = Key("ed25519")
    asking = Asking('sig=("content-type");nonce="always-another"')
    with Service(key, asks=asking) as service:
        signing(gateway, service, key, components=["content-type"])
        for number in range(1, 4):
            answer = gateway.call("POST", "/a", b"body", {"Content-Type": "text/plain"})
            assert (answer.status, answer.body) == (401, b"sign it otherwise"), answer
            assert [exchange.body for exchange in service.seen] == [b"body"] * (2 * number)
        gateway.told(lambda event: "asks for another signature again" in event.get("reason", ""))


def test_where_nothing_is_replayed_nothing_is_answered(gateway):
    key = Key("ed25519")
    with Service(key, asks=Asking('sig=();nonce="n"')) as service:
        signing(gateway, service, key, {"on_rejected": {"replay": "never"}})
        assert gateway.get("/a").status == 401
        assert len(service.seen) == 1


def test_a_refusal_that_asks_for_nothing_new_is_one_of_the_key(gateway):
    key = Key("ed25519")
    with Service(key, asks=Asking('cardea=("@method" "@path");created;keyid="key"')) as service:
        signing(gateway, service, key)
        answer = gateway.get("/a")
        assert (answer.status, problem_type(answer)) == (502, "upstream-refused-credential")
        assert len(service.seen) == 1


# --- Keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asks", [None, "satisfied", "more"])
def test_a_key_is_rotated_under_a_running_gateway(gateway, asks):
    """Without a reload, whatever the server says with its 401."""
    old, new = Key("ed25519"), Key("ed25519")
    line = {None: None, "satisfied": 'cardea=("@method")', "more": 'cardea=("@method");nonce="n"'}[asks]
    with Service(old, asks=line and (lambda exchange, result, fault: [line] if fault else None)) as service:
        signing(gateway, service, old)
        for _ in range(3):
            assert gateway.call("POST", "/a", b"body").status == 200, service.wrong
        new.write(gateway)
        service.keys = {"key": new}
        eventually(lambda: gateway.call("POST", "/a", b"body").status == 200, what="the new key to be used")
        before = len(service.seen)
        assert gateway.call("POST", "/b", b"body").status == 200
        assert len(service.seen) == before + 1


def test_a_key_that_is_refused_is_a_502(gateway):
    key = Key("ed25519")
    with Service(Key("ed25519")) as service:
        signing(gateway, service, key)
        answer = gateway.get("/a")
        assert (answer.status, problem_type(answer)) == (502, "upstream-refused-credential")
        gateway.stop()
        signing(gateway, service, key, {"on_rejected": {"final": "pass"}})
        assert gateway.get("/a").status == 401


# --- Commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, route, words",
    [
        ({"key": None}, {}, "needs 'key', or 'shared_key'"),
        ({"shared_key": "literal:x"}, {}, "write one of the two"),
        ({"algorithm": "hmac-sha256"}, {}, "needs 'shared_key'"),
        ({"algorithm": "rsa"}, {}, "one of auto, rsa-pss-sha512"),
        ({"shared_key_form": "base64"}, {}, "belongs to 'shared_key'"),
        ({"label": "Sig"}, {}, "lower case"),
        ({"key_id": "kl\u00fc"}, {}, "printable ASCII"),
        ({"tag": "t" * 257}, {}, "at most 256 characters"),
        ({"expires": "2h"}, {}, "at most 1h"),
        ({"cover": ["connection"]}, {}, "has 'connection', which cannot be signed here"),
        ({"components": ["@status"]}, {}, "has '@status', which cannot be signed here"),
        ({"components": ["signature"]}, {}, "has 'signature', which cannot be signed here"),
        ({}, {"inject": {"header": "X-Key"}}, "whose places its protocol names"),
        ({}, {"headers": {"set": {"Content-Digest": "x"}}}, "edits 'Content-Digest', which identity 'only' writes"),
    ],
)
def test_check_says_what_cannot_be_signed(gateway, settings, route, words):
    block = {name: value for name, value in (Key("ed25519").settings(gateway) | settings).items() if value is not None}
    way = gateway.route("only", "https://api.example.com") | route
    gateway.config = gateway.frame({"identities": {"only": {"http_signature": block}}, "routes": [way]})
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and words in out + errors, out + errors


@pytest.mark.parametrize(
    "key, settings, reason",
    [
        ("rsa-pss-sha512", {"algorithm": "auto"}, "an RSA key signs in two ways"),
        ("ecdsa-p256-sha256", {"algorithm": "ed25519"}, "does not go with this kind of key"),
        ("hmac-sha256", {"shared_key": "literal:no base 64"}, "not base 64"),
    ],
)
def test_a_key_that_cannot_sign_is_said_before_anybody_asks(gateway, key, settings, reason):
    key = Key(key)
    with Service(key) as service:
        signing(gateway, service, key, start=False, **settings)
        gateway.start(ready=False)
        gateway.told(lambda event: reason in json.dumps(event))
        gateway.file.write_text(json.dumps(gateway.config))
        status, out, errors = gateway.command("check", "--live")
        assert status != 0 and reason in out + errors, out + errors
        assert service.seen == []
        gateway.stop()


def test_explain_schema_status_and_metrics_know_it(gateway):
    key = Key("ed25519")
    with Service(key, asks=Asking('sig=("date")')) as service:
        signing(gateway, service, key, cover=["content-type"], components=["date-2"])
        status, said, _ = gateway.command("explain", "GET", f"http://{gateway.listen}/a")
        assert status == 0 and "RFC 9421" in said and "content-type" in said and "date-2" in said, said
        assert "other signatures of the caller pass" in said
        status, schema, _ = gateway.command("schema", config=False)
        assert status == 0 and "http_signature" in schema and "shared_key_form" in schema
        assert gateway.get("/a").status == 401
        identity = gateway.ask("/status").json["identities"][0]
        assert identity["scheme"] == "http_signature", identity
        glitches = [value for (name, labels), value in gateway.metrics().items() if "unusable" in name or ("kind", "unusable_challenge") in labels]
        assert sum(glitches) >= 1, sorted(gateway.metrics())
        assert re.search(r"\bsig\b", json.dumps(service.seen[0].fields)) is None
