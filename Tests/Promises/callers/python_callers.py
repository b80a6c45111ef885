"""Ordinary Python and curl callers: every shape, as the same kind of rows as the Java and Node programs print."""

import hashlib
import subprocess
import urllib.error
import urllib.request

BIG = b"0123456789abcdef" * (5 * 1024 * 64)
SMALL = b'{"note":"a small body"}'


def halves(body):
    return iter([body[: len(body) // 2], body[len(body) // 2 :]])


def rows(client, get, post, close):
    """get(path), post(body, chunked) and close() give (status, body)."""
    shapes = [
        ("get", lambda: get("/employees/1")),
        ("post_length", lambda: post(SMALL, False)),
        ("post_chunked", lambda: post(SMALL, True)),
        ("up", lambda: post(BIG, False)),
        ("up_chunked", lambda: post(BIG, True)),
        ("down", lambda: get("/stream?bytes=5242880")),
        ("down_chunked", lambda: get("/stream?bytes=5242880&chunked=1")),
        *((f"keep_alive_{i}", lambda i=i: get(f"/employees/{i}")) for i in (1, 2, 3)),
        ("close", close),
    ]
    found = []
    for shape, work in shapes:
        try:
            status, body = work()
            text = body.decode() if len(body) < 500 else ""
            digest = hashlib.sha256(body).hexdigest()
            found.append(
                {
                    "client": client,
                    "shape": shape,
                    "status": status,
                    "length": len(body),
                    "sha256": digest,
                    "text": text,
                }
            )
        except Exception as error:
            found.append({"client": client, "shape": shape, "status": 0, "error": repr(error)})
    return found


def with_urllib(base):
    def send(path, body=None, chunked=False):
        request = urllib.request.Request(base + path, data=halves(body) if chunked else body)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    return rows("urllib", send, lambda body, chunked: send("/echo", body, chunked), lambda: send("/employees/1"))


def with_requests(base):
    import requests

    with requests.Session() as session:

        def send(method, path, **rest):
            response = session.request(method, base + path, timeout=60, **rest)
            return response.status_code, response.content

        return rows(
            "requests",
            lambda path: send("GET", path),
            lambda body, chunked: send("POST", "/echo", data=halves(body) if chunked else body),
            lambda: send("GET", "/employees/1", headers={"Connection": "close"}),
        )


def with_curl(base, curl):
    def send(path, *options, body=None):
        mark = b"\nSTATUS:"
        done = subprocess.run(
            [curl, "-sS", "--max-time", "60", "-w", "\nSTATUS:%{http_code}", *options, base + path],
            input=body,
            capture_output=True,
            check=True,
        )
        content, _, status = done.stdout.rpartition(mark)
        return int(status), content

    def post(body, chunked):
        # curl asks with Expect: 100-continue before a large body, which is a shape of its own.
        framing = ["-H", "Transfer-Encoding: chunked"] if chunked else []
        return send(
            "/echo", "-X", "POST", "-H", "Content-Type: application/json", *framing, "--data-binary", "@-", body=body
        )

    return rows("curl", send, post, lambda: send("/employees/1", "-H", "Connection: close"))
