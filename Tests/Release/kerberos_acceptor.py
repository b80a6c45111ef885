"""A server with TLS that takes Kerberos by Negotiate, and only tokens that are bound to its certificate; run by Debian's Python, whose GSSAPI
it uses: CERTIFICATE KEY KEYTAB PORT MODE.

Modes: `good`; `mute` proves nothing; `lying` proves it with a token of nobody; `each` closes each connection behind its answer.
"""

import base64
import hashlib
import http.server
import pathlib
import ssl
import sys

import gssapi

CERTIFICATE, KEY, KEYTAB, PORT, MODE = sys.argv[1:]
# MIT tells that both sides are bound to the same channel (RFC 2743 has no word for it; krb5 1.19 and later).
CHANNEL_BOUND = 0x800
END = "-----END CERTIFICATE-----\n"
# The first of the chain is the server's own.
DER = ssl.PEM_cert_to_DER_cert(pathlib.Path(CERTIFICATE).read_text().split(END)[0] + END)
BINDINGS = gssapi.raw.ChannelBindings(
    application_data=b"tls-server-end-point:" + hashlib.sha256(DER).digest())
KEYS = gssapi.Credentials(usage="accept", store={"keytab": KEYTAB, "rcache": "none:"})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, *fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.close_connection or MODE == "each"

    def do_GET(self):
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Negotiate":
            return self.answer(401, b"", ("WWW-Authenticate", "Negotiate"))
        context = gssapi.SecurityContext(usage="accept", creds=KEYS, channel_bindings=BINDINGS)
        try:
            reply = context.step(base64.b64decode(token)) or b""
        except gssapi.exceptions.GSSError as error:
            print("refused:", error, file=sys.stderr, flush=True)
            return self.answer(401, b"", ("WWW-Authenticate", "Negotiate"))
        if not context.complete or not int(context.actual_flags) & CHANNEL_BOUND:
            print("not bound", file=sys.stderr, flush=True)
            return self.answer(401, b"", ("WWW-Authenticate", "Negotiate"))
        if MODE == "lying":
            reply = reply[:-4] + bytes(octet ^ 1 for octet in reply[-4:])
        proof = [("WWW-Authenticate", "Negotiate " + base64.b64encode(reply).decode())] if MODE != "mute" else []
        # The connection that a request came on, so that a test sees which are used again.
        self.answer(
            200, str(context.initiator_name).encode(), ("Connection-Number", str(self.client_address[1])), *proof)

    do_POST = do_GET


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(CERTIFICATE, KEY)
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
