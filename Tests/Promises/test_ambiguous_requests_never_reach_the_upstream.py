"""Promise: ambiguous framing is refused with 400 and a close, never repaired, never forwarded."""

import pytest

SMUGGLED = "GET /hr/rest/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


def post(*lines, body="", target="/hr/rest/echo", version="HTTP/1.1", host="Host: {host}"):
    head = [f"POST {target} {version}"] + ([host] if host else []) + list(lines)
    return "\r\n".join(head) + "\r\n\r\n" + body


CL, TE = "Content-Length: 5", "Transfer-Encoding: chunked"
CHUNKED = "5\r\nhello\r\n0\r\n\r\n"
BAD = {400}

HEADS = {
    "length and chunked": (post(CL, TE, body=CHUNKED), BAD),
    "chunked and length": (post(TE, CL, body=CHUNKED), BAD),
    "two lengths that differ": (post(CL, "Content-Length: 6", body="hello!"), BAD),
    "two equal lengths": (post(CL, CL, body="hello"), BAD),
    "a list of lengths": (post("Content-Length: 5, 5", body="hello"), BAD),
    "a length with a sign": (post("Content-Length: +5", body="hello"), BAD),
    "a negative length": (post("Content-Length: -5", body="hello"), BAD),
    "a hexadecimal length": (post("Content-Length: 0x5", body="hello"), BAD),
    "a length with a space inside": (post("Content-Length: 5 0", body="hello"), BAD),
    "an empty length": (post("Content-Length:", body="hello"), BAD),
    "a length past 64 bits": (post("Content-Length: 18446744073709551621", body="hello"), {400, 413}),
    "chunked is not last": (post("Transfer-Encoding: chunked, gzip", body=CHUNKED), {400, 501}),
    "an unknown coding": (post("Transfer-Encoding: xchunked", body=CHUNKED), {400, 501}),
    "a coding before chunked": (post("Transfer-Encoding: gzip, chunked", body=CHUNKED), {400, 501}),
    "identity and chunked": (post("Transfer-Encoding: identity, chunked", body=CHUNKED), {400, 501}),
    "chunked twice in a list": (post("Transfer-Encoding: chunked, chunked", body=CHUNKED), {400, 501}),
    "chunked in two lines": (post(TE, TE, body=CHUNKED), {400, 501}),
    "a vertical tab before chunked": (post("Transfer-Encoding: \x0bchunked", body=CHUNKED), {400, 501}),
    "quoted chunked": (post('Transfer-Encoding: "chunked"', body=CHUNKED), {400, 501}),
    "chunked in HTTP/1.0": (post(TE, version="HTTP/1.0", body=CHUNKED), BAD),
    "a space before the colon": (post("Transfer-Encoding : chunked", body=CHUNKED), BAD),
    "a tab before the colon": (post("Content-Length\t: 5", body="hello"), BAD),
    "a folded coding": (post("Transfer-Encoding:\r\n chunked", body=CHUNKED), BAD),
    "a folded field": (post(CL, "X-A: b\r\n\tc", body="hello"), BAD),
    "a space before the first field": (post(" X-A: b", CL, host="", body="hello"), BAD),
    "bare LF between lines": (post(CL, "X-A: b", body="hello").replace("\r\n", "\n"), BAD),
    "one bare LF": (post("X-A: b\nX-B: c", CL, body="hello"), BAD),
    "a bare CR in a value": (post("X-A: b\rX-B: c", CL, body="hello"), BAD),
    "a bare CR before the colon": (post("X-A\r: b", CL, body="hello"), BAD),
    "NUL in a value": (post("X-A: b\x00c", CL, body="hello"), BAD),
    "NUL in a name": (post("X-\x00A: b", CL, body="hello"), BAD),
    "a line without a colon": (post("just words", CL, body="hello"), BAD),
    "an empty name": (post(": value", CL, body="hello"), BAD),
    "a space inside a name": (post("X A: b", CL, body="hello"), BAD),
    "brackets in a name": (post("X(A): b", CL, body="hello"), BAD),
    "no Host": (post(CL, host="", body="hello"), BAD),
    "two Hosts": (post("Host: other.example", CL, body="hello"), {400, 421}),
    "a Host with a path": (post(CL, host="Host: {host}/x", body="hello"), {400, 421}),
    "a Host with a user": (post(CL, host="Host: a@{host}", body="hello"), {400, 421}),
    "two spaces in the request line": (post(CL, target=" /hr/rest/echo", body="hello"), BAD),
    "a tab in the request line": (post(CL, target="/hr/rest/echo\t", body="hello"), BAD),
    "a space in the target": (post(CL, target="/hr/rest/echo x", body="hello"), BAD),
    "a control octet in the target": (post(CL, target="/hr/rest/\x01echo", body="hello"), BAD),
    "a fragment in the target": (post(CL, target="/hr/rest/echo#x", body="hello"), BAD),
    "no version": (post(CL, version="", body="hello"), BAD),
    "a lower-case version": (post(CL, version="http/1.1", body="hello"), {400, 505}),
    "version 2.0": (post(CL, version="HTTP/2.0", body="hello"), {400, 505}),
    "version 1.10": (post(CL, version="HTTP/1.10", body="hello"), {400, 505}),
    "a dot segment": (post(CL, target="/hr/rest/../admin", body="hello"), BAD),
    "an encoded dot segment": (post(CL, target="/hr/rest/%2e%2e/admin", body="hello"), BAD),
    "an encoded slash": (post(CL, target="/hr/rest%2fecho", body="hello"), BAD),
    "an encoded backslash": (post(CL, target="/hr/rest%5Cecho", body="hello"), BAD),
    "a double slash": (post(CL, target="/hr//rest/echo", body="hello"), BAD),
    "an encoded NUL": (post(CL, target="/hr/rest/%00echo", body="hello"), BAD),
}

BODIES = {
    "a size that is no number": "zz\r\nhello\r\n0\r\n\r\n",
    "a negative size": "-5\r\nhello\r\n0\r\n\r\n",
    "a size with 0x": "0x5\r\nhello\r\n0\r\n\r\n",
    "an empty size": "\r\nhello\r\n0\r\n\r\n",
    "a size with a leading space": " 5\r\nhello\r\n0\r\n\r\n",
    "a size past 64 bits": "10000000000000005\r\nhello\r\n0\r\n\r\n",
    "a size ended by LF": "5\nhello\r\n0\r\n\r\n",
    "a size ended by CR": "5\rhello\r\n0\r\n\r\n",
    "data longer than the size": "5\r\nhello!\r\n0\r\n\r\n",
    "data ended by LF": "5\r\nhello\n0\r\n\r\n",
    "an extension with LF": "5;a=\nb\r\nhello\r\n0\r\n\r\n",
    "a folded trailer": "5\r\nhello\r\n0\r\nX-A: b\r\n c\r\n\r\n",
    "a trailer with a space before its colon": "5\r\nhello\r\n0\r\nX-A : b\r\n\r\n",
    "a trailer with LF": "5\r\nhello\r\n0\r\nX-A: b\n\r\n",
}


@pytest.fixture(scope="module")
def running(lab_process, tmp_path_factory):
    """One hot gateway for the whole table."""
    from harness import Cardea

    lab_process.reset()
    gateway = Cardea(lab_process, tmp_path_factory.mktemp("smuggling"))
    try:
        gateway.webgate().start().warm()
        yield gateway
        gateway.finish()
    finally:
        gateway.abandon()


def refused(gateway, octets, statuses):
    with gateway.raw() as raw:
        raw.send(octets.replace("{host}", gateway.listen) + SMUGGLED)
        answer = raw.answer()
        assert answer.status in statuses, answer
        assert raw.rest() == b"", "something came after the refusal"


@pytest.mark.parametrize("name", HEADS)
def test_a_head_that_can_be_read_in_two_ways(running, name):
    octets, statuses = HEADS[name]
    running.lab.reset(tokens=False)
    refused(running, octets, statuses)
    assert running.lab.counts()["protected_requests"] == 0


@pytest.mark.parametrize("name", BODIES)
def test_a_chunked_body_that_can_be_read_in_two_ways(running, name):
    running.lab.reset(tokens=False)
    refused(running, post(TE) + BODIES[name], {400})
    assert not [line for line in running.lab.get("/requests") if "smuggled" in line]
    assert running.lab.counts()["malformed"] == 0


def test_chunk_extensions_and_allowed_trailers_do_no_harm(running):
    running.lab.reset(tokens=False)
    with running.raw() as raw:
        body = '5;a=b;c="d"\r\nhello\r\n0\r\nX-Checksum: 1\r\n\r\n'
        assert raw.send(post(TE).replace("{host}", running.listen) + body).answer().json["length"] == 5
    assert running.lab.counts()["malformed"] == 0


def test_the_gateway_still_serves(running):
    assert running.get().status == 200


def test_a_path_that_others_read_as_another_routes_is_400(gateway):
    """Servers that take `;…` off, have no case or add the slash would answer these as the stricter route's."""
    gateway.webgate(route={"match": {"path": "/hr/"}})
    gateway.config["routes"].append(gateway.route("none", gateway.lab.plain) | {"name": "open"})
    gateway.start().warm()
    gateway.lab.reset(tokens=False)
    for path in ("/hr;a=b/rest/echo", "/;x/hr/rest/echo", "/hr%3b/rest/echo", "/HR/rest/echo", "/hr", "/Hr;x"):
        answer = gateway.get(path)
        assert answer.status == 400 and answer.json["type"].endswith("unsafe-path"), (path, answer)
    assert gateway.lab.counts()["protected_requests"] == 0
    _, out, _ = gateway.command("explain", "GET", f"http://{gateway.listen}/HR/rest/echo")
    assert "route hr" in out and "400" in out
    for path in ("/hr/rest/employees/7", "/hr/rest/Employees/7;jsessionid=1"):
        assert gateway.get(path).status != 400, path
