"""Promise: on a route with `answers: conceal` no answer gives the route's credential back, in whichever of the promised forms its upstream
shows it."""

import base64
import contextlib
import json
import pathlib
import re
import threading
import urllib.parse

import pytest

import http2_peers
from echoes import FORMS, SECRET, chunks, shows
from harness import PATTERN, eventually, together
from scripted import Issuer, Scripted, get, identified
from wire import Answer, Raw, call

CONCEAL = {"answers": "conceal"}


def start(gateway, upstream, secret=SECRET, route=None, **changes):
    block = {"static": {"value": gateway.secret("value", secret), "prefix": "Bearer "}}
    return identified(gateway, upstream, block, CONCEAL | (route or {}), **changes).start()


def test_the_readers_of_this_page_read():
    for name, form in FORMS.items():
        assert shows(form(f"X: y\r\nAuthorization: Bearer {SECRET}\r\nZ: w")), name


# --- The ways in which an answer comes ---------------------------------------------------------------------------------


def in_pieces(peer, data, size):
    for at in range(0, len(data), size):
        peer.send(data[at : at + size])


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
FRAMINGS = {
    "length": lambda peer, body: peer.send(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body),
    "length-in-pieces": lambda peer, body: in_pieces(peer, HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body, 7),
    "one-chunk": lambda peer, body: peer.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(body, len(body))),
    "chunks-of-one": lambda peer, body: peer.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(body, 1)),
    "chunks-in-pieces": lambda peer, body: in_pieces(peer, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks(body, 5), 3),
    "until-close": lambda peer, body: peer.send(HEAD + b"Connection: close\r\n\r\n" + body),
}


class Echoing:
    """Answers `/FORM/FRAMING` with the request's head in that form."""

    def __init__(self):
        self.bodies = {}

    def __call__(self, peer):
        for request in peer.requests():
            _, form, framing = request.target.split("/")
            body = FORMS[form](request.head.decode("latin-1")).encode()
            self.bodies[request.target] = body
            FRAMINGS[framing](peer, body)
            if framing == "until-close":
                return

    def over2(self, stream):
        _, form, framing = stream.target.split("/")
        text = "".join(f"{name}: {value}\r\n" for name, value in stream.fields)
        body = FORMS[form](text).encode()
        self.bodies[stream.target] = body
        length = [("content-length", str(len(body)))] if framing == "length" else []
        stream.send_head([(":status", "200"), ("x-echo", text.partition("Bearer ")[2][:60].split("\r")[0]), *length])
        size = 1 if framing == "chunks-of-one" else 11
        for at in range(0, len(body), size):
            stream.write(body[at : at + size])
        stream.end([("x-after", stream.field("authorization"))] if framing == "trailers" else ())


def assert_concealed(answer, sent):
    """Its octets are those that were sent, but for those of the credential."""
    assert answer.status == 200 and len(answer.body) == len(sent), (answer, sent)
    assert shows(sent) and not shows(answer.body), answer.body
    assert all(got in (was, ord("*")) for got, was in zip(answer.body, sent)), answer.body
    assert not any(shows(value) for _, value in answer.fields)


@pytest.mark.parametrize("form", FORMS)
def test_in_every_form_and_framing(gateway, form):
    echoing = Echoing()
    with Scripted(echoing) as upstream:
        start(gateway, upstream)
        for framing in FRAMINGS:
            target = f"/{form}/{framing}"
            assert_concealed(call(gateway.listen, path=target), echoing.bodies[target])


@pytest.mark.parametrize("framing", ["length", "no-length", "chunks-of-one", "trailers"])
def test_http2_on_both_sides(gateway, framing):
    echoing = Echoing()
    with http2_peers.Server(echoing.over2) as upstream:
        start(gateway, upstream, route={"http": "2"})
        with http2_peers.Caller(gateway.listen) as caller:
            for form in FORMS:
                if form == "base64-of-the-value":
                    continue
                target = f"/{form}/{framing}"
                stream = caller.request("GET", target)
                status, body = stream.head(), stream.body()
                assert_concealed(Answer(status, stream.fields, body), echoing.bodies[target])
                assert not any(shows(value) for _, value in stream.trailers)
                assert (framing == "trailers") == bool(stream.trailers)
        answer = call(gateway.listen, path="/json/trailers")
        assert_concealed(answer, echoing.bodies["/json/trailers"])


def test_a_route_that_does_not_conceal_passes_everything(gateway):
    """So what the other tests see is the route's doing."""
    echoing = Echoing()
    with Scripted(echoing) as upstream:
        start(gateway, upstream, route={"answers": "pass"})
        answer = call(gateway.listen, path="/as-it-is/length")
        assert answer.body == echoing.bodies["/as-it-is/length"] and SECRET.encode() in answer.body
        gateway.secrets.clear()


# --- Heads -------------------------------------------------------------------------------------------------------------


def test_fields_interim_answers_reasons_and_trailers(gateway):
    def script(peer):
        for request in peer.requests():
            token = request.field("Authorization").encode()
            peer.send(
                b"HTTP/1.1 103 Early Hints\r\nLink: </a?k=%s>\r\n\r\n" % urllib.parse.quote(token).encode()
                + b"HTTP/1.1 200 %s\r\nX-Seen: %s\r\nX-Coded: %s\r\nLocation: http://elsewhere.example/?t=%s\r\n"
                % (token, token, base64.b64encode(b"a:" + token), urllib.parse.quote(token, safe="").encode())
                + b"Trailer: X-After\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-After: <%s>\r\n\r\n" % token
            )

    with Scripted(script) as upstream:
        start(gateway, upstream)
        with gateway.raw() as raw:
            raw.send(get(gateway, "/", "Connection: close"))
            text = raw.rest().decode("latin-1")
        assert text.startswith("HTTP/1.1 103 ") and "X-After: <Bearer ***" in text
        assert f"\r\nX-Seen: Bearer {'*' * len(SECRET)}\r\n" in text and "hello" in text, text
        assert not any(shows(line) for line in text.split("\r\n")), text


def test_folded_fields(gateway):
    """The caller gets such a field in one line."""
    password = "correct horse battery staple"

    def script(peer):
        for request in peer.requests():
            token = request.field("Authorization")
            plain = base64.b64decode(token.split()[1]).decode()
            folded = [password.replace(" ", "\r\n "), plain.replace(" ", " \t\r\n\t "), token.replace(" ", "\r\n "), f"\r\n {password}\r\n "]
            lines = "".join(f"X-Fold-{place}: {value}\r\n" for place, value in enumerate(folded))
            peer.send(f"HTTP/1.1 200 OK\r\n{lines}Set-Cookie:\r\n a=\r\n b\r\nContent-Length: 0\r\n\r\n".encode())

    with Scripted(script) as upstream:
        block = {"basic": {"username": "svc", "password": gateway.secret("password", password)}}
        identified(gateway, upstream, block, CONCEAL).start()
        answer = call(gateway.listen)
        hidden = ["*" * len(password), "*" * len(f"svc:{password}"), "Basic " + "*" * 44, "*" * len(password)]
        assert [answer.field(f"X-Fold-{place}") for place in range(4)] == hidden, answer
        assert answer.field("Set-Cookie") == "a= b"


@pytest.mark.parametrize("status", ["200", "204", "304"])
def test_answers_without_a_body(gateway, status):
    def script(peer):
        for request in peer.requests():
            token = request.field("Authorization")
            length = "Content-Encoding: gzip\r\nContent-Length: 1000\r\n" if status == "200" else ""
            peer.send(f"HTTP/1.1 {status} Said\r\nX-Seen: {token}\r\n{length}\r\n".encode())

    with Scripted(script) as upstream:
        start(gateway, upstream)
        with gateway.raw() as raw:
            for _ in range(3):
                answer = raw.send(get(gateway, "/", method="HEAD")).answer("HEAD")
                assert answer.status == int(status) and answer.field("X-Seen") == "Bearer " + "*" * len(SECRET)
        assert upstream.connections == 1


# --- Other credentials -------------------------------------------------------------------------------------------------


def echo_everything(peer):
    for request in peer.requests():
        body = request.head + b"\r\n" + "".join(
            form(request.head.decode("latin-1")) for name, form in FORMS.items() if name != "base64-of-the-value"
        ).encode()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


PLACES = {"query": {"query": "api.key"}, "cookie": {"cookie": "session"}, "template": {"header": "X-Key", "value": "Key {token}; v=1"}}


@pytest.mark.parametrize("place", PLACES)
def test_wherever_the_credential_goes(gateway, place):
    with Scripted(echo_everything) as upstream:
        start(gateway, upstream, route={"inject": PLACES[place]})
        answer = call(gateway.listen, path="/a?b=c")
        assert answer.status == 200 and not shows(answer.body), answer
        assert b"**********" in answer.body


def test_a_password_of_basic_alone(gateway):
    password = "correct horse/battery+staple"

    def script(peer):
        for request in peer.requests():
            plain = base64.b64decode(request.field("Authorization").split()[1])
            body = request.head + b"\n%s\n%s\n%s" % (plain, plain.split(b":")[1], base64.b64encode(plain.split(b":")[1]))
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with Scripted(script) as upstream:
        block = {"basic": {"username": "svc", "password": gateway.secret("password", password)}}
        identified(gateway, upstream, block, CONCEAL).start()
        body = call(gateway.listen).body
        assert not shows(body, password) and not shows(body, f"svc:{password}"), body


def test_a_trial_tells_of_a_credential_too_short(gateway):
    for secret, is_good in ("short77", False), ("eight888", True):
        with Scripted(echo_everything) as upstream:
            block = {"static": {"value": gateway.secret("value", secret), "prefix": "Bearer "}}
            identified(gateway, upstream, block, CONCEAL)
            gateway.file.write_text(json.dumps(gateway.config))
            status, out, errors = gateway.command("check", "--live")
            assert (status == 0) == is_good, (out, errors)
            assert ("fewer than 8 octets" not in out + errors) == is_good, (out, errors)


def test_a_secret_file_with_a_scheme_in_it(gateway):
    with Scripted(echo_everything) as upstream:
        block = {"static": {"value": gateway.secret("value", f"Bearer {SECRET}"), "prefix": ""}}
        identified(gateway, upstream, block, CONCEAL).start()
        answer = call(gateway.listen)
        assert answer.status == 200 and not shows(answer.body), answer
        assert b"Authorization: Bearer ***" in answer.body


def test_a_token_that_was_refused_and_its_successor(gateway):
    """The second answer may show what came with the first request."""
    seen = []

    def script(peer):
        for request in peer.requests():
            seen.append(request.field("Authorization"))
            body = json.dumps(seen).encode()
            status, more = (b"401 No", b'WWW-Authenticate: Bearer error="invalid_token"\r\n') if len(seen) == 1 else (b"200 OK", b"")
            peer.send(b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, more, len(body), body))

    with Scripted(Issuer(token="granted-token-no-{}".format)) as issuer, Scripted(script) as upstream:
        block = {
            "oauth2": {
                "token_url": f"http://{issuer.address}/token",
                "client_id": "c",
                "client_secret": gateway.secret("client", "secret-of-the-client"),
            }
        }
        identified(gateway, upstream, block, CONCEAL).start()
        answer = call(gateway.listen)
        assert seen == ["Bearer granted-token-no-1", "Bearer granted-token-no-2"]
        assert answer.json == ["Bearer " + "*" * len("granted-token-no-1")] * 2, answer


SHORT = {"itself": ("Bearer ", "short77"), "behind-a-scheme": ("", "Bearer short77")}


@pytest.mark.parametrize("written", SHORT)
def test_a_credential_too_short_to_be_concealed_is_not_sent(gateway, written):
    prefix, value = SHORT[written]
    with Scripted(echo_everything) as upstream:
        block = {"static": {"value": gateway.secret("value", value), "prefix": prefix}}
        identified(gateway, upstream, block, CONCEAL).start()
        answer = call(gateway.listen)
        assert answer.status == 503 and "fewer than 8 octets" in answer.body.decode(), answer
        assert not upstream.requests


# --- Cookies -----------------------------------------------------------------------------------------------------------


def test_a_cookie_that_carries_the_credential_is_not_set_at_the_caller(gateway):
    def script(peer):
        for request in peer.requests():
            peer.send(
                b"HTTP/1.1 200 OK\r\nSet-Cookie: session=the-next-one; Path=/\r\nSet-Cookie: theme=dark\r\n"
                b"Set-Cookie: sessions=2\r\nSet-Cookie: session =again\r\nContent-Length: 2\r\n\r\nok"
            )

    with Scripted(script) as upstream:
        start(gateway, upstream, route={"inject": {"cookie": "session"}})
        assert call(gateway.listen).values("Set-Cookie") == ["theme=dark", "sessions=2"]


def test_cookies_of_a_field_of_cookies(gateway):
    def script(peer):
        for request in peer.requests():
            body = request.head
            peer.send(
                b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=other\r\nSet-Cookie: theme=dark\r\nSet-Cookie: csrf=x\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )

    with Scripted(script) as upstream:
        block = {"static": {"header": "Cookie", "value": gateway.secret("jar", "sid=abcdefgh-1234; csrf=ponmlkji-9876")}}
        identified(gateway, upstream, block, CONCEAL).start()
        answer = call(gateway.listen)
        assert answer.values("Set-Cookie") == ["theme=dark"]
        assert b"abcdefgh" not in answer.body and b"ponmlkji" not in answer.body


def test_the_session_of_a_webgate_stays_with_us(gateway):
    gateway.webgate(route=CONCEAL).start().warm()
    answer = gateway.get()
    assert answer.status == 200 and not answer.values("Set-Cookie"), answer


def test_a_webgate_that_passes_its_cookies_cannot_conceal(gateway):
    gateway.webgate(identity={"strip_cookies": False}, route=CONCEAL)
    gateway.file.write_text(json.dumps(gateway.config))
    status, out, errors = gateway.command("check")
    assert status == 78 and "strip_cookies" in out + errors, (status, out, errors)


# --- Cost --------------------------------------------------------------------------------------------------------------


def test_an_event_does_not_wait_for_the_next_one(gateway):
    """Only octets that may begin a credential are held."""
    goes_on = threading.Event()

    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n")
        assert goes_on.wait(30)
        peer.send(b"data: two\n\n")

    with Scripted(script) as upstream:
        start(gateway, upstream)
        with gateway.raw() as raw:
            raw.send(get(gateway, "/"))
            raw.head()
            raw._until(b"data: one\n\n")
            goes_on.set()
            raw._until(b"data: two\n\n")


def test_two_that_answer_each_other_never_wait_for_each_other(gateway):
    """A message that ends as the credential begins comes whole, though nothing follows it before it is answered."""
    messages = [b"come in ", b"to the pay" + SECRET[:1].encode(), SECRET[:3].encode(), b"100%", b"enough"]

    def script(stream):
        stream.send_head([(":status", "200")])
        for message in messages:
            stream.read()
            stream.write(message)
        stream.read()
        stream.write(SECRET[:3].encode())
        stream.write(SECRET[3:].encode())
        stream.end()

    with http2_peers.Server(script) as upstream:
        start(gateway, upstream, route={"http": "2"})
        with http2_peers.Caller(gateway.listen) as caller:
            stream = caller.request("POST", "/", ended=False)
            stream.head()
            for message in messages:
                stream.write(b"next")
                came = b""
                while len(came) < len(message):
                    came += stream.read()
                assert came == message
            stream.write(b"the end")
            stream.end()
            body = stream.body()
            assert len(body) == len(SECRET) and body[3:] == b"*" * len(body[3:])


SIZES = {"length": 100 << 20, "chunked": 20 << 20}


@pytest.mark.alone
@pytest.mark.parametrize("framing", SIZES)
def test_a_large_body_passes_in_constant_memory(gateway, framing):
    size, piece = SIZES[framing], PATTERN * 4096

    def script(peer):
        token = peer.request().field("Authorization").encode()
        peer.send(b"HTTP/1.1 200 OK\r\n")
        is_chunked = framing == "chunked"
        peer.send(b"Transfer-Encoding: chunked\r\n\r\n" if is_chunked else b"Content-Length: %d\r\n\r\n" % size)
        for number in range(size // len(piece)):
            # At another place in each piece.
            at = number * 977 % (len(piece) - len(token))
            data = (piece[:at] + token + piece[at:])[: len(piece)]
            peer.send(b"%x\r\n%s\r\n" % (len(data), data) if is_chunked else data)
        if is_chunked:
            peer.send(b"0\r\n\r\n")

    with Scripted(script) as upstream:
        start(gateway, upstream)
        status = pathlib.Path(f"/proc/{gateway.process.pid}/status")
        pathlib.Path(f"/proc/{gateway.process.pid}/clear_refs").write_text("5")
        before = gateway.resident()
        answer = call(gateway.listen, timeout=120)
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) << 10
        assert len(answer.body) == size and SECRET.encode() not in answer.body
        # Where a body without an announced length pauses, the first three octets are not waited with.
        shown = range(4 if framing == "chunked" else 1)
        concealed = [b"Bearer " + SECRET.encode()[:count] + b"*" * (len(SECRET) - count) for count in shown]
        assert sum(map(answer.body.count, concealed)) == size // len(piece)
        assert peak - before < 12 << 20


# --- Many --------------------------------------------------------------------------------------------------------------

COUNT, CALLERS, AT_ONCE = 100_000, 4, 50
END = re.compile(rb'"}|\r\n0\r\n\r\n')


def answers_of_the_echo(head):
    token = re.search(rb"Authorization: (.*?)\r", head)[1]
    coded = base64.b64encode(b"x" + token)
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(b"seen: " + token, 3)
    body = b'{"headers": "%s", "again": "%s"}' % (urllib.parse.quote(token).encode(), coded)
    plain = b"HTTP/1.1 200 OK\r\nX-Seen: %s\r\nContent-Length: %d\r\n\r\n%s" % (token, len(body), body)
    return plain, chunked


def echo_fast(peer):
    """As the others, without a note of each request."""
    made, number = None, peer.number
    with contextlib.suppress(EOFError):
        while True:
            head = peer._until(b"\r\n\r\n")
            made = made or answers_of_the_echo(head)
            number += 1
            peer.socket.sendall(made[number % 2])


@pytest.mark.alone
def test_a_hundred_thousand_answers(gateway):
    with Scripted(echo_fast) as upstream:
        start(gateway, upstream, threads=2, log={"access": "off"})
        forms = [form(f"Bearer {SECRET}") for name, form in FORMS.items() if name != "base64-of-the-value"]
        needles = [form.encode() for form in forms] + [SECRET.encode(), base64.b64encode(b"x" + f"Bearer {SECRET}".encode())[-20:-4]]

        def caller(_):
            seen = 0
            with Raw(gateway.listen, timeout=60) as raw:
                for _ in range(COUNT // CALLERS // AT_ONCE):
                    raw.send(get(gateway, "/") * AT_ONCE)
                    text, found, at = b"", 0, 0
                    while found < AT_ONCE:
                        text += raw.socket.recv(1 << 18)
                        for end in END.finditer(text, at):
                            found, at = found + 1, end.end()
                    assert not any(needle in text for needle in needles), text[:400]
                    seen += text.count(b"HTTP/1.1 200 ")
            return seen

        assert sum(together(CALLERS, caller)) == COUNT
        counted = eventually(lambda: gateway.metrics().get(("cardea_concealed_total", (("route", "only"),))))
        # Three places in half of the answers, one in the others; each connection has its turn.
        assert abs(counted - 2 * COUNT) <= upstream.connections


# --- Telling -----------------------------------------------------------------------------------------------------------


def test_it_is_counted_logged_and_explained(gateway):
    echoing = Echoing()
    with Scripted(echoing) as upstream:
        start(gateway, upstream)
        assert gateway.metrics()["cardea_concealed_total", (("route", "only"),)] == 0
        for _ in range(3):
            call(gateway.listen, path="/as-it-is/length")
        assert gateway.metrics()["cardea_concealed_total", (("route", "only"),)] == 3
        event = gateway.told(lambda event: event["message"] == "a credential was kept out of an answer")[0]
        assert event["route"] == "only" and event["places"] == 1
        status, text, _ = gateway.command("explain", "GET", f"http://{gateway.listen}/")
        assert status == 0 and "answers that show the credential" in text
