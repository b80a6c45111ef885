"""A server that admits what `http-message-signatures` verifies (RFC 9421, RFC 9530), and the keys that it does so with."""

import base64
import contextlib
import secrets
import types

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature, algorithms

import http2_peers
from origins import Gone, Over1, Over2
from scripted import Scripted

MINIMUM = ("@method", "@authority", "@path", "@query")

ALGORITHMS = {
    "rsa-pss-sha512": algorithms.RSA_PSS_SHA512,
    "rsa-v1_5-sha256": algorithms.RSA_V1_5_SHA256,
    "ecdsa-p256-sha256": algorithms.ECDSA_P256_SHA256,
    "ecdsa-p384-sha384": algorithms.ECDSA_P384_SHA384,
    "ed25519": algorithms.ED25519,
    "hmac-sha256": algorithms.HMAC_SHA256,
}


class Key:
    """A new key for one algorithm: `public` as the server has it, `settings(gateway)` as an identity has it."""

    def __init__(self, algorithm, name="key", password=None):
        self.algorithm, self.name, self.password = algorithm, name, password
        make = {
            "rsa": lambda: rsa.generate_private_key(65537, 2048),
            "ecdsa-p256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "ecdsa-p384": lambda: ec.generate_private_key(ec.SECP384R1()),
            "ed25519": ed25519.Ed25519PrivateKey.generate,
            "hmac": lambda: secrets.token_bytes(48),
        }
        self.private = next(make[kind] for kind in make if algorithm.startswith(kind))()
        self.is_shared = algorithm == "hmac-sha256"
        self.public = self.private if self.is_shared else self.private.public_key()

    def pem(self):
        lock = BestAvailableEncryption(self.password.encode()) if self.password else NoEncryption()
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode()

    def write(self, gateway):
        """Into the file that the gateway reads, in the place of another key."""
        return gateway.secret("signing-key", base64.b64encode(self.private).decode() if self.is_shared else self.pem())

    def settings(self, gateway):
        file = self.write(gateway)
        if self.is_shared:
            return {"shared_key": file, "shared_key_form": "base64", "key_id": self.name}
        # An RSA key signs in two ways; all others say it themselves.
        named = {"algorithm": self.algorithm} if self.algorithm.startswith("rsa") else {}
        locked = {"key_password": gateway.secret("key-password", self.password)} if self.password else {}
        return {"key": file, "key_id": self.name} | named | locked


class Fields:
    """The lines of a head in their order."""

    def __init__(self, fields):
        self.lines = [(name, value) for name, value in fields if not name.startswith(":")]

    def items(self):
        return iter(self.lines)


class Verifier(HTTPMessageVerifier):
    allow_label_only_selection = True


class Resolver(HTTPSignatureKeyResolver):
    def __init__(self, keys):
        self.keys = keys

    def resolve_public_key(self, key_id):
        key = self.keys.get(key_id)
        return key and key.public


class Service:
    """Counts what it admits, and keeps what it does not.

    - label: of the signature that counts.
    - asks: for each request (exchange, verified result or None, fault) the `Accept-Signature` of a 401; nil: the request is admitted, if
      it verifies."""

    def __init__(self, key, version=1, label="cardea", asks=None, scheme="http", required=()):
        self.keys = {key.name: key}
        self.algorithm, self.label, self.asks, self.scheme, self.required = key.algorithm, label, asks, scheme, required
        self.seen, self.good, self.wrong, self.results = [], 0, [], []
        if version == 2:
            self.server = http2_peers.Server(self.stream)
        else:
            self.server = Scripted(self.connection)

    @property
    def address(self):
        return self.server.address

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def connection(self, peer):
        with contextlib.suppress(EOFError, Gone):
            while True:
                self.serve(Over1(peer))

    def stream(self, stream):
        with contextlib.suppress(Gone):
            self.serve(Over2(stream))

    def serve(self, exchange):
        self.seen.append(exchange)
        body = b""
        while piece := exchange.read():
            body += piece
        exchange.body = body
        result = fault = None
        try:
            result = self.verify(exchange, body)
        except InvalidSignature as error:
            fault = repr(error)
        asked = self.asks and self.asks(exchange, result, fault)
        if asked:
            self.tell(exchange, 401, b"sign it otherwise", [("accept-signature", line) for line in asked])
        elif fault:
            self.wrong.append((fault, exchange.fields))
            self.tell(exchange, 401, fault.encode())
        else:
            self.good += 1
            self.results.append(result)
            self.tell(exchange, 200, b"good %d" % len(body))

    def verify(self, exchange, body):
        named = dict(exchange.fields)
        host = named.get("host") or named[":authority"]
        message = types.SimpleNamespace(
            method=exchange.method, url=f"{self.scheme}://{host}{exchange.target}", headers=Fields(exchange.fields)
        )
        verifier = Verifier(signature_algorithm=ALGORITHMS[self.algorithm], key_resolver=Resolver(self.keys))
        required = {*MINIMUM, *self.required, *(["content-digest"] if body else [])}
        return verifier.verify(message, expect_label=self.label, require_components=sorted(required), body=body)[0]

    @staticmethod
    def tell(exchange, status, data, fields=()):
        exchange.respond(status, [("content-length", str(len(data))), *fields])
        if exchange.method != "HEAD":
            exchange.write(data)
        exchange.end()
