"""Promise: an interim answer passes to callers that can know it, without the fields that belong to the connection."""

import pytest

from scripted import OK, Scripted, get, plain

HINTS = (
    b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nConnection: X-Private, keep-alive\r\n"
    b"X-Private: secret of the hop\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n"
    b"Upgrade: h2c\r\nProxy-Authenticate: Basic realm=\"x\"\r\nX-Public: yes\r\n\r\n"
)
NOTHING = b"HTTP/1.1 204 No Content\r\n\r\n"
HOP = ("connection", "x-private", "keep-alive", "proxy-connection", "te", "upgrade", "transfer-encoding", "trailer")


def hinting(peer):
    for request in peer.requests():
        peer.send(HINTS + HINTS + (NOTHING if request.method == "HEAD" else OK))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_hop_by_hop_fields_stay_behind(gateway, method):
    with Scripted(hinting) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as raw:
            for _ in range(3):
                raw.send(get(gateway, "/a", method=method))
                for _ in range(2):
                    status, fields, _ = raw.head()
                    names = {name.lower() for name, _ in fields}
                    assert status == 103 and ("X-Public", "yes") in fields
                    assert ("Link", "</style.css>; rel=preload") in fields
                    assert not names & set(HOP), fields
                    assert "content-length" not in names
                assert raw.answer(method).status in (200, 204)
        assert upstream.connections == 1


def test_callers_of_1_0_get_the_final_one_alone(gateway):
    with Scripted(hinting) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as raw:
            assert raw.send(get(gateway, "/a", version="1.0")).head()[0] == 200


def test_a_100_passes_only_to_whoever_expects_it(gateway):
    def script(peer):
        for _ in peer.requests():
            peer.send(b"HTTP/1.1 100 Continue\r\nConnection: X-Private\r\nX-Private: 1\r\n\r\n" + OK)

    with Scripted(script) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as raw:
            assert raw.send(get(gateway, "/a")).head()[0] == 200
        with gateway.raw() as raw:
            raw.send(get(gateway, "/a", "Expect: 100-continue", "Content-Length: 3", method="POST"))
            raw.send("abc")
            status, fields, _ = raw.head()
            assert status == 100 and not {"x-private", "connection"} & {name.lower() for name, _ in fields}
            assert raw.answer().status == 200


def test_interim_answers_without_end_are_not_relayed_without_end(gateway):
    def script(peer):
        peer.request()
        while True:
            peer.send(HINTS)

    with Scripted(script) as upstream:
        plain(gateway, upstream).start()
        with gateway.raw() as raw:
            assert raw.send(get(gateway, "/a")).answer().status == 502
