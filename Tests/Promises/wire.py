"""Speaking HTTP/1.1: through http.client for ordinary requests, through a bare socket for the others."""

import http.client
import json
import socket


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Answer:
    """A received answer: status, fields in order, body."""

    def __init__(self, status, fields, body, reason=""):
        self.status, self.fields, self.body, self.reason = status, fields, body, reason

    def values(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def field(self, name):
        found = self.values(name)
        return found[0] if found else None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def problem(self):
        """The RFC 9457 body, after checking that it is one."""
        assert (self.field("Content-Type") or "").startswith("application/problem+json"), self
        assert self.json["status"] == self.status, self
        return self.json

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:300]!r}>"


def call(to, method="GET", path="/", body=None, headers=None, timeout=30.0):
    """One request on a connection of its own. `headers` is a dict or a list of pairs; an iterator as a body is sent
    chunked."""
    host, port = address(to)
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        return send(connection, method, path, body, headers)
    finally:
        connection.close()


def send(connection, method="GET", path="/", body=None, headers=None):
    """One request on an open http.client connection."""
    pairs = list(headers.items() if isinstance(headers, dict) else headers or [])
    names = {name.lower() for name, _ in pairs}
    chunked = body is not None and not isinstance(body, bytes)
    connection.putrequest(method, path, skip_host="host" in names, skip_accept_encoding=True)
    for name, value in pairs:
        connection.putheader(name, value)
    if chunked:
        connection.putheader("Transfer-Encoding", "chunked")
    elif body is not None and "content-length" not in names:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body, encode_chunked=chunked)
    response = connection.getresponse()
    return Answer(response.status, response.getheaders(), response.read(), response.reason)


class Raw:
    """A socket for requests that no library would send, with a reader that says what came back."""

    def __init__(self, to, timeout=15.0):
        self.socket = socket.create_connection(address(to), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
        return self

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def _fill(self):
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)

    def _until(self, mark):
        while mark not in self.buffer:
            if not self._fill():
                raise EOFError(f"closed in the middle of an answer: {self.buffer[:200]!r}")
        part, self.buffer = self.buffer.split(mark, 1)
        return part

    def _exactly(self, count):
        while len(self.buffer) < count:
            if not self._fill():
                raise EOFError(f"closed after {len(self.buffer)} of {count} octets of a body")
        part, self.buffer = self.buffer[:count], self.buffer[count:]
        return part

    def head(self):
        """The next head, interim or final: (status, fields, reason)."""
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        assert words[0] in ("HTTP/1.1", "HTTP/1.0"), lines[0]
        fields = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        return int(words[1]), fields, words[2] if len(words) > 2 else ""

    def answer(self, method="GET"):
        """The next final answer with its body."""
        status, fields, reason = self.head()
        while 100 <= status < 200:
            status, fields, reason = self.head()
        found = Answer(status, fields, b"", reason)
        if method == "HEAD" or status in (204, 304):
            return found
        if (found.field("Transfer-Encoding") or "").lower() == "chunked":
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                found.body += self._exactly(size)
                assert self._exactly(2) == b"\r\n"
            while self._until(b"\r\n"):
                pass
        elif found.field("Content-Length") is not None:
            found.body = self._exactly(int(found.field("Content-Length")))
        else:
            found.body = self.rest()
        return found

    def rest(self):
        """Everything until the peer closes; a reset counts as a close."""
        try:
            while self._fill():
                pass
        except ConnectionResetError:
            pass
        data, self.buffer = self.buffer, b""
        return data

    def is_closed(self, within=5.0):
        """True when the peer ends the connection without sending anything more."""
        self.socket.settimeout(within)
        try:
            return self.buffer == b"" and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False
