"""Clients that share nothing with each other read what the gateway passed on: each gives (status, reason, fields, body), or None for what
it takes as broken or cut, and the same of a second answer on the same connection where the first lets one follow."""

import concurrent.futures
import http.client
import io
import json
import os
import pathlib
import socket
import subprocess

import h11
import pycurl

import tolerated
from findings import Finding
from gateway import executable

SENTINEL = b"HTTP/1.1 200 OK\r\nX-Sentinel: 1\r\nContent-Length: 8\r\n\r\nsentinel"
SENTINEL_READ = (200, b"OK", [(b"content-length", b"8"), (b"x-sentinel", b"1")], b"sentinel")
HERE = pathlib.Path(__file__).resolve().parent


class Standard:
    """http.client"""

    name = "http.client"

    def read(self, passed):
        octets = io.BytesIO(passed.octets + (b"" if passed.ended else SENTINEL))

        class Wire:
            def makefile(self, _):
                return Kept(octets)

        first = self.one(Wire(), passed.method)
        return first, None if passed.ended or first is None else self.one(Wire(), b"GET")

    @staticmethod
    def one(wire, method):
        answer = http.client.HTTPResponse(wire, method=method.decode())
        try:
            answer.begin()
            body = answer.read()
        except (http.client.HTTPException, ValueError):
            return None
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.raw_items()]
        return answer.status, answer.reason.encode("latin-1"), fields, body


class Kept(io.BufferedIOBase):
    """Octets that stay open when a reader of them closes them."""

    def __init__(self, octets):
        self.octets = octets

    def readline(self, *size):
        return self.octets.readline(*size)

    def read(self, *size):
        return self.octets.read(*size)

    def readinto(self, room):
        return self.octets.readinto(room)

    def read1(self, *size):
        return self.octets.read1(*size)

    def peek(self, *size):
        return self.octets.getbuffer()[self.octets.tell() :].tobytes()

    def readable(self):
        return True

    def close(self):
        pass


class Sans:
    """h11, which httpx reads with."""

    name = "h11"

    def read(self, passed):
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        ends = passed.ended
        first = self.one(connection, passed.method, passed.octets + (b"" if ends else SENTINEL), ends)
        if ends or first is None:
            return first, None
        try:
            connection.start_next_cycle()
        except h11.LocalProtocolError:
            return first, None
        return first, self.one(connection, b"GET", b"", False)

    @staticmethod
    def one(connection, method, octets, ends):
        try:
            connection.send(h11.Request(method=method, target=b"/", headers=[(b"host", b"h.example")]))
            connection.send(h11.EndOfMessage())
            if octets:
                connection.receive_data(octets)
            if ends:
                connection.receive_data(b"")
            head, body = None, b""
            while True:
                event = connection.next_event()
                if isinstance(event, h11.Response):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    return (
                        head.status_code,
                        bytes(head.reason),
                        [(bytes(a), bytes(b)) for a, b in head.headers.raw_items()],
                        body,
                    )
                elif not isinstance(event, h11.InformationalResponse):
                    return None
        except (h11.RemoteProtocolError, h11.LocalProtocolError):
            return None


class Curl:
    """libcurl on one end of a socket pair. It closes a connection on which something waits, so no second answer is read."""

    name = "curl"

    def __init__(self):
        self.handle = pycurl.Curl()

    def read(self, passed):
        ours, theirs = socket.socketpair()
        lines, body = [], io.BytesIO()
        handle = self.handle
        handle.reset()
        try:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            ours.sendall(passed.octets)
            if passed.ended:
                ours.shutdown(socket.SHUT_WR)
            handle.setopt(pycurl.URL, "http://127.0.0.1/")
            handle.setopt(pycurl.CUSTOMREQUEST, passed.method.decode())
            handle.setopt(pycurl.NOBODY, passed.method == b"HEAD")
            handle.setopt(pycurl.OPENSOCKETFUNCTION, lambda *_: theirs)
            handle.setopt(pycurl.SOCKOPTFUNCTION, lambda *_: pycurl.SOCKOPT_ALREADY_CONNECTED)
            # curl has a copy of the descriptor.
            handle.setopt(pycurl.CLOSESOCKETFUNCTION, lambda descriptor: os.close(descriptor) or 0)
            handle.setopt(pycurl.HEADERFUNCTION, lines.append)
            handle.setopt(pycurl.WRITEFUNCTION, body.write)
            handle.setopt(pycurl.PROXY, "")
            handle.setopt(pycurl.FORBID_REUSE, 1)
            handle.setopt(pycurl.TIMEOUT_MS, 2000)
            handle.perform()
        except pycurl.error as fault:
            return ("waits" if fault.args[0] == pycurl.E_OPERATION_TIMEDOUT else None), None
        finally:
            ours.close()
            theirs.close()
        return self.head(lines, body.getvalue()), None

    @staticmethod
    def head(lines, body):
        """The last answer's head; curl gives lines of trailers behind it as further lines."""
        heads = [[]]
        for text in lines:
            text = text.rstrip(b"\r\n")
            if not text:
                heads.append([])
            else:
                heads[-1].append(text)
        finals = [
            head
            for head in heads
            if head and head[0].startswith(b"HTTP/") and not head[0].split(b" ")[1].startswith(b"1")
        ]
        start, *rest = finals[-1]
        words = start.split(b" ", 2)
        fields = [tuple(part.strip(b" \t") for part in line.split(b":", 1)) for line in rest]
        return int(words[1]), words[2] if len(words) > 2 else b"", fields, body


class Node:
    """Node's http in a process of its own; many answers at once."""

    name = "node"

    def __init__(self):
        binary = executable("CARDEA_NODE", "node", "apt-get install nodejs")
        self.process = subprocess.Popen(
            [binary, HERE / "node_client.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def all(self, many):
        results = []
        # A pipe holds so much that neither side waits for the other.
        for at in range(0, len(many), 16):
            part = many[at : at + 16]
            for passed in part:
                line = [passed.octets.decode("latin-1"), passed.method.decode(), passed.ended, SENTINEL.decode()]
                self.process.stdin.write(json.dumps(line).encode() + b"\n")
            self.process.stdin.flush()
            results += [self.result(json.loads(self.process.stdout.readline())) for _ in part]
        return results

    @staticmethod
    def result(told):
        def one(value):
            if not isinstance(value, list):
                return value
            status, reason, fields, body = value
            pairs = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in fields]
            return status, reason.encode("latin-1"), pairs, body.encode("latin-1")

        first, second, made = told
        return one(first), one(second) if made == 1 else None


class Clients:
    """All of them; `compare` gives findings to the tally."""

    def __init__(self, tally):
        self.tally, self.seen = tally, set()
        # For tests of the test: number of a connection → clients that did not read what was meant.
        self.noticed = {}
        self.node, self.pool = Node(), concurrent.futures.ThreadPoolExecutor(1)
        self.others = (Standard(), Sans(), Curl())

    def close(self):
        self.pool.shutdown()
        self.node.close()

    def fresh(self, many):
        """The answers whose octets were not read before. Ids are left out of the comparison; they have the same length everywhere."""
        for passed in many:
            mark = hash((passed.octets.replace(b"%08x" % (passed.number * 8), b""), passed.method, passed.ended))
            if mark in self.seen:
                self.tally.count("clients: the same octets as before")
                continue
            self.seen.add(mark)
            yield passed

    def compare(self, many):
        many = list(self.fresh(many))
        # Node works meanwhile.
        results = self.pool.submit(self.node.all, many)
        for client in self.others:
            for passed in many:
                self.judge(client.name, passed, *client.read(passed))
        for passed, result in zip(many, results.result()):
            self.judge("node", passed, *result)

    def judge(self, name, passed, first, second):
        if tolerated.cannot_read(name, passed.octets):
            return self.tally.count(f"{name}: not asked")

        def found(what, expected, other):
            self.noticed.setdefault(passed.number, set()).add(name)
            self.tally.found(Finding(name, what, expected, other, passed.octets, passed.received, passed.number))

        if first == "waits":
            return found("waits for more", passed.message, None)
        if first is None:
            self.noticed.setdefault(passed.number, set()).add(name)
            return self.tally.count(f"{name}: {'took as cut' if passed.message is None else 'refused'}")
        if passed.message is None:
            return found("took as whole what is cut", None, first)
        message = passed.message
        wanted = tolerated.read(name, message.start[0], message.start[1], message.fields, message.body)
        got = tolerated.read(name, *first)
        for part, one, other in zip(("status", "reason", "fields", "body"), wanted, got):
            if one != other:
                return found(f"{part} differs", one, other)
        if second == "waits":
            return found("waits for the next answer", passed.message, None)
        if second is not None and tolerated.read(name, *second) != SENTINEL_READ:
            return found("the next answer is another one", SENTINEL_READ, second)
        self.tally.count(f"{name}: agreed" + (", and on the next answer" if second is not None else ""))


NAMES = tuple(client.name for client in (Standard, Sans, Curl, Node))
