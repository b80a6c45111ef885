"""An HTTP proxy that takes NTLM and nothing else, connection by connection; PyPI's pyspnego judges the messages."""

import base64
import contextlib
import http.client
import http.server
import os
import select
import socket
import threading

import spnego

from ntlm_server import DOMAIN, PASSWORD, USER


class NTLMProxy:
    """`word`: the scheme of HTTP. `forgets`: after so many requests a connection has to be authenticated anew. `ends`: which of its refusals
    end their connection: none, "challenge" (the one with its message) or "refusal". `chunks`: refusals have a body in chunks."""

    def __init__(self, folder, word="NTLM", forgets=None, ends=None, chunks=False, users=((DOMAIN, USER, PASSWORD),)):
        folder.mkdir(parents=True, exist_ok=True)
        self.users = folder / "users"
        self.users.write_text("".join(f"{':'.join(user)}\n" for user in users))
        # pyspnego's store of users, which has no other name.
        os.environ["NTLM_USER_FILE"] = str(self.users)
        # Of each request: its connection, the kind of its message (0: none), method, target, the status of the proxy's own answer (0: none).
        self.asked = []
        self.attempts = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            context = None
            user = None
            served = 0

            def log_message(self, *_):
                pass

            def note(self, status):
                outer.asked.append((self.client_address[1], self.kind, self.command, self.path, status))

            def refuse(self, challenge, ends=False):
                self.note(407)
                self.send_response(407)
                self.send_header("Proxy-Authenticate", challenge)
                if ends:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                if chunks and self.command != "HEAD":
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(b"3\r\nno!\r\n0\r\n\r\n")
                else:
                    self.send_header("Content-Length", "3")
                    self.end_headers()
                    self.wfile.write(b"no!" if self.command != "HEAD" else b"")

            def is_known(self):
                self.kind = 0
                scheme, _, text = self.headers.get("Proxy-Authorization", "").partition(" ")
                if scheme != word:
                    if self.user is None:
                        self.refuse(word)
                    return self.user is not None
                message = base64.b64decode(text)
                self.kind = message[8]
                if self.kind == 1:
                    self.context = spnego.server("localhost", "http", protocol="ntlm")
                if self.context is None:
                    self.refuse(word)
                    return False
                try:
                    token = self.context.step(message)
                except spnego.exceptions.SpnegoError:
                    outer.attempts += 1
                    self.user = self.context = None
                    self.refuse(word, ends == "refusal")
                    return False
                if not self.context.complete:
                    self.refuse(f"{word} {base64.b64encode(token).decode()}", ends == "challenge")
                    return False
                outer.attempts += 1
                self.user, self.served = self.context.client_principal, 0
                return True

            def do_CONNECT(self):
                if not self.is_known():
                    return
                self.note(0)
                host, _, port = self.path.rpartition(":")
                with socket.create_connection((host, int(port))) as server:
                    self.send_response(200)
                    self.end_headers()
                    ends = {self.connection: server, server: self.connection}
                    while True:
                        for ready in select.select(list(ends), [], [])[0]:
                            data = ready.recv(65536)
                            if not data:
                                self.close_connection = True
                                return
                            ends[ready].sendall(data)

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if not self.is_known():
                    return
                self.served += 1
                if forgets and self.served >= forgets:
                    self.user = None
                self.note(0)
                host, _, path = self.path.removeprefix("http://").partition("/")
                server = http.client.HTTPConnection(host)
                fields = {name: value for name, value in self.headers.items() if name != "Proxy-Authorization"}
                server.request(self.command, f"/{path}", body, fields)
                answer = server.getresponse()
                told = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told if self.command != "HEAD" else b"")
                server.close()

            do_HEAD = do_POST = do_PUT = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def kinds(self):
        return [kind for _, kind, *_ in self.asked]


@contextlib.contextmanager
def proxied(*arguments, **settings):
    proxy = NTLMProxy(*arguments, **settings)
    try:
        yield proxy
    finally:
        proxy.close()
