"""Promise: a message signature (RFC 9421) is one of the octets on the wire, whatever is drawn or left out on the way, and leaves the caller's own
signatures alone."""

import pytest
from http_message_signatures import InvalidSignature
from message_signatures import MINIMUM, Key, Service

import http2_peers
from origins import Over2
from test_requests_carry_a_message_signature import Asking, covered, input_of, signing

# The warning of the library that a label alone is not signed.
pytestmark = pytest.mark.filterwarnings("ignore:Using only a label")


@pytest.mark.parametrize("version", [1, 2])
def test_a_name_of_the_hop_that_is_drawn_is_drawn_once(gateway, version):
    key = Key("ed25519")
    with Service(key, version, required=["forwarded"]) as service:
        signing(gateway, service, key, {"http": {1: "1.1", 2: "2"}[version], "forwarded": "on"}, cover=["forwarded"])
        assert {gateway.get("/a").status for _ in range(3)} == {200}, service.wrong
        # Another one for each request (RFC 7239, section 6.3).
        assert len({dict(seen.fields)["forwarded"] for seen in service.seen}) == 3


def test_a_websocket_over_http2_is_signed_as_it_is_sent(gateway):
    key = Key("ed25519")
    service, found = Service(key), []

    def script(stream):
        exchange = Over2(stream)
        try:
            found.append((exchange.method, covered(service.verify(exchange, b""))))
        except InvalidSignature as error:
            found.append((exchange.method, repr(error)))
        stream.send_head([(":status", "200" if exchange.method == "CONNECT" else "204")], ended=exchange.method != "CONNECT")

    with http2_peers.Server(script, extended_connect=True) as server:
        fields = ["sec-websocket-key", "sec-websocket-version"]
        signing(gateway, server, key, {"http": "2"}, cover=fields)
        # The upstream says with its first settings that it serves them.
        assert gateway.get("/").status == 204
        with gateway.raw() as caller:
            caller.send(
                f"GET /chat HTTP/1.1\r\nHost: {gateway.listen}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
            assert caller.head()[0] == 101
        assert found == [("GET", [*MINIMUM]), ("CONNECT", [*MINIMUM, "sec-websocket-version"])]


def test_a_wish_behind_one_that_is_fulfilled_is_heard(gateway):
    key = Key("ed25519")
    asking = Asking('cardea=("@method"), more=("content-type")', fulfilled=lambda exchange: "content-type" in input_of(exchange))
    with Service(key, label="more", asks=asking) as service:
        signing(gateway, service, key, components=["content-type"])
        assert gateway.call("POST", "/a", b"body", {"Content-Type": "text/plain"}).status == 200, service.wrong


def test_a_wish_does_not_take_a_label_from_the_caller(gateway):
    key = Key("ed25519")
    asking = Asking('sig1=("content-type")', fulfilled=lambda exchange: "content-type" in input_of(exchange))
    with Service(key, asks=asking) as service:
        signing(gateway, service, key, components=["content-type"])
        own = {"Signature-Input": 'sig1=("@method");keyid="k"', "Signature": "sig1=:AAEC:", "Content-Type": "text/plain"}
        assert gateway.call("POST", "/a", b"body", own).status == 200, service.wrong
        assert input_of(service.seen[1]).startswith('sig1=("@method");keyid="k", cardea=("@method" ')
