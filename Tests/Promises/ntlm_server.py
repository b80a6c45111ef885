"""A server that takes NTLM and nothing else, connection by connection, as those of Windows do; PyPI's pyspnego judges the messages."""

import base64
import contextlib
import hashlib
import http.server
import os
import pathlib
import ssl
import threading

import spnego
from spnego.channel_bindings import GssChannelBindings

USER, DOMAIN, PASSWORD = "anna", "CORP", "pass-wörd-of-anna-9"


class NTLMServer:
    """Answers with who asked. `word`: the scheme of HTTP. `leaf`: certificate and key of a server with TLS, to which answers have to be
    bound. `forgets`: after so many requests a connection has to be authenticated anew. `asks_first`: a refusal does not wait for the body, and
    ends the connection under it. `ends_at_refusal`: a wrong answer gets none."""

    def __init__(self, folder, word="NTLM", leaf=None, forgets=None, users=((DOMAIN, USER, PASSWORD),),
                 asks_first=False, ends_at_refusal=False):
        folder.mkdir(parents=True, exist_ok=True)
        self.users = folder / "users"
        self.users.write_text("".join(f"{':'.join(user)}\n" for user in users))
        # pyspnego's store of users, which has no other name.
        os.environ["NTLM_USER_FILE"] = str(self.users)
        self.word, self.forgets = word, forgets
        self.bindings = None
        if leaf:
            end = "-----END CERTIFICATE-----\n"
            der = ssl.PEM_cert_to_DER_cert(pathlib.Path(leaf[0]).read_text().split(end)[0] + end)
            self.bindings = GssChannelBindings(
                application_data=b"tls-server-end-point:" + hashlib.sha256(der).digest())
        # Of each request: its connection, the kind of its message (0: none), method, length of its body, the status.
        self.asked = []
        self.attempts = 0
        # Answers on connections that were not challenged.
        self.strays = 0
        self.asks_first, self.ends_at_refusal = asks_first, ends_at_refusal
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            context = None
            served = 0
            user = None

            def log_message(self, *_):
                pass

            def reply(self, status, body=b"", **fields):
                outer.asked.append((self.client_address[1], self.kind, self.command, self.length, status))
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else body)

            def do_GET(self):
                self.kind = 0
                self.length = int(self.headers.get("Content-Length", 0))
                is_answer = base64.b64decode(self.headers.get("Authorization", "").partition(" ")[2])[8:9] == b"\3"
                if outer.asks_first and self.length and self.user is None and not is_answer:
                    self.close_connection = True
                    return self.reply(401, WWW_Authenticate=outer.word)
                body = self.rfile.read(self.length)
                word, _, text = self.headers.get("Authorization", "").partition(" ")
                if word != outer.word:
                    if self.user is None:
                        return self.reply(401, WWW_Authenticate=outer.word)
                else:
                    message = base64.b64decode(text)
                    self.kind = message[8]
                    if self.kind == 1:
                        self.context = spnego.server("localhost", "http", protocol="ntlm", channel_bindings=outer.bindings)
                    if self.context is None:
                        outer.strays += 1
                        return self.reply(401, WWW_Authenticate=outer.word)
                    try:
                        token = self.context.step(message)
                    except spnego.exceptions.SpnegoError:
                        outer.attempts += 1
                        self.user = self.context = None
                        if outer.ends_at_refusal:
                            self.close_connection = True
                            return None
                        return self.reply(401, WWW_Authenticate=outer.word)
                    if not self.context.complete:
                        return self.reply(401, WWW_Authenticate=f"{outer.word} {base64.b64encode(token).decode()}")
                    outer.attempts += 1
                    self.user, self.served = self.context.client_principal, 0
                self.served += 1
                user = self.user
                if outer.forgets and self.served >= outer.forgets:
                    self.user = None
                self.reply(200, f"{user} {hashlib.sha256(body).hexdigest()}".encode())

            do_HEAD = do_POST = do_PUT = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if leaf:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*leaf)
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.address = f"localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def kinds(self):
        return [kind for _, kind, _, _, _ in self.asked]


@contextlib.contextmanager
def served(*arguments, **settings):
    server = NTLMServer(*arguments, **settings)
    try:
        yield server
    finally:
        server.close()
