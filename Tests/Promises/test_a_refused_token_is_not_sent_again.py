"""Promise: whoever has seen a refusal sends its next request, at once, without the token that was refused."""

import http.server
import json
import threading

import pytest

from scripted import Issuer, Scripted, get, identified

BODY = b"0123456789abcdef" * (5 << 16)
ROUNDS = 30


class API(http.server.ThreadingHTTPServer):
    """Python's own server. It takes a body to its end before it says that the token was revoked meanwhile."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Resource)
        self.address = "127.0.0.1:%d" % self.server_address[1]
        self.revoked, self.seen = 0, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Resource(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one segment.
    wbufsize = -1

    def handle_one_request(self):
        super().handle_one_request()

    def do_POST(self):
        number = int(self.headers["Authorization"].removeprefix("Bearer token-"))
        self.server.seen.append((self.path, number))
        left = int(self.headers["Content-Length"] or 0)
        while left:
            left -= len(self.rfile.read(min(left, 1 << 20)))
        good = number > self.server.revoked
        body = json.dumps({"token": number}).encode()
        self.send_response(200 if good else 401)
        if not good:
            self.send_header("WWW-Authenticate", 'Bearer error="invalid_token"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        self.do_POST()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("connections", [1, 2], ids=["the same connection", "another connection"])
def test_the_next_request_goes_out_with_a_new_token(gateway, connections):
    with Scripted(Issuer()) as issuer, API() as upstream:
        block = {
            "oauth2": {
                "token_url": f"http://{issuer.address}/token",
                "client_id": "c",
                "client_secret": gateway.secret("s", "secret-of-the-client"),
            }
        }
        # Of several loops the second connection is another one's, most often.
        identified(gateway, upstream, block, {"on_rejected": {"max_body": "64KiB"}}, threads=3).start()
        upload = get(gateway, "/upload", f"Content-Length: {len(BODY)}", method="POST") + BODY
        with gateway.raw() as caller:
            others = [gateway.raw() for _ in range(4)] if connections > 1 else [caller]
            for other in others:
                assert other.send(get(gateway, "/before")).answer().status == 200
            for number in range(ROUNDS):
                upstream.revoked += 1
                found = caller.send(upload).answer()
                assert found.status == 401 and json.loads(found.body) == {"token": upstream.revoked}
                found = others[number % len(others)].send(get(gateway, "/next")).answer()
                assert (found.status, json.loads(found.body)) == (200, {"token": upstream.revoked + 1})
            for other in others:
                other.socket.close()
        assert [number for path, number in upstream.seen if path == "/next"] == list(range(2, ROUNDS + 2))
        assert len(issuer.requests) == ROUNDS + 1
