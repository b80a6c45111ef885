"""A server that admits what botocore would have signed in the same way, and requests of every kind for it."""

import contextlib
import hashlib
import random
import re
from urllib.parse import quote, unquote_to_bytes

import botocore.auth
import botocore.awsrequest
import botocore.credentials

import http2_peers
from aws_chunks import Chunks
from origins import Gone, Over1, Over2
from scripted import Scripted

KEY_ID, KEY = "AKIDEXAMPLEFORTESTS", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
OURS = ("authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token")


def reads(target, s3):
    """The target as a server reads it, in the one form in which signatures have it: decoded and encoded again."""
    path, _, query = target.partition("?")
    if s3:
        path = quote(unquote_to_bytes(path.encode("latin-1")), safe="/~")
    else:
        path = path.encode("latin-1").decode()

    def word(text):
        return quote(unquote_to_bytes(text.replace("+", " ").encode("latin-1")), safe="-_.~")

    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    query = "&".join(f"{word(name)}={word(value)}" for name, _, value in pairs)
    return path + ("?" + query if query else "")


def authorization(request, service, region, key=KEY, key_id=KEY_ID, read=True):
    """What botocore writes into Authorization for what has arrived.

    - read: the target is read as by a server first; else botocore has it as it came."""
    named = dict(request.fields)
    host = named.get("host") or named[":authority"]
    signed = [
        (name, value.encode("latin-1").decode())
        for name, value in request.fields
        if name in ("content-type", "content-md5") or name.startswith("x-amz-")
    ]
    s3 = service == "s3"
    target = reads(request.target, s3) if read else request.target
    asked = botocore.awsrequest.AWSRequest(method=request.method, url=f"http://{host}{target}")
    asked.headers["Host"] = host
    for name, value in signed:
        asked.headers.add_header(name, value)
    asked.context["timestamp"] = named["x-amz-date"]
    kind = botocore.auth.S3SigV4Auth if s3 else botocore.auth.SigV4Auth
    signer = kind(botocore.credentials.Credentials(key_id, key), service, region)
    signature = signer.signature(signer.string_to_sign(asked, signer.canonical_request(asked)), asked)
    names = signer.signed_headers(signer.headers_to_sign(asked))
    return f"AWS4-HMAC-SHA256 Credential={signer.scope(asked)}, SignedHeaders={names}, Signature={signature}"


class Service:
    """One service of one region: counts what it admits, and keeps what it does not.

    - payload: the kind of body that it takes; with `chunks`, all kinds."""

    def __init__(self, service="s3", region="eu-central-1", key=KEY, token=None, payload="signed", read=True, version=1):
        self.service, self.region, self.key, self.token, self.payload, self.read = service, region, key, token, payload, read
        self.good, self.wrong, self.seen, self.status = 0, [], [], 403
        # Requests whose bodies ended too early.
        self.cut = 0
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
        body, length = hashlib.sha256(), 0
        chunks = self.chunks(dict(exchange.fields))
        try:
            while piece := exchange.read():
                body.update(piece)
                length += len(piece)
                if chunks:
                    chunks.feed(piece)
        except Gone:
            self.cut += 1
            raise
        fault = self.fault(exchange, body.hexdigest(), chunks)
        if chunks:
            length = chunks.count
        if fault:
            self.wrong.append((fault, exchange.method, exchange.target, exchange.fields))
        else:
            self.good += 1
        data = (fault or f"good {length}").encode()
        exchange.respond(self.status if fault else 200, [("content-length", str(len(data)))])
        if exchange.method != "HEAD":
            exchange.write(data)
        exchange.end()

    def chunks(self, named):
        if self.payload == "chunks" and named.get("x-amz-content-sha256", "").startswith("STREAMING-"):
            return Chunks(named, self.service, self.region, self.key, KEY_ID)
        return None

    def fault(self, request, digest, chunks):
        for name in OURS:
            count = sum(key == name for key, _ in request.fields)
            if count != (name != "x-amz-security-token" or self.token is not None):
                return f"{count} {name}"
        named = dict(request.fields)
        if named.get("x-amz-security-token") != self.token:
            return "another token"
        wanted = {"signed": [digest], "unsigned": ["UNSIGNED-PAYLOAD"], "chunks": [digest, "UNSIGNED-PAYLOAD"]}[self.payload]
        if not chunks and named["x-amz-content-sha256"] not in wanted:
            return "another body"
        if not re.fullmatch(r"\d{8}T\d{6}Z", named["x-amz-date"]):
            return "no date"
        wanted = authorization(request, self.service, self.region, self.key, read=self.read)
        if named["authorization"] != wanted:
            return f"not {wanted}"
        return chunks.finish() if chunks else None


# --- Requests --------------------------------------------------------------------------------------------------------

PLAIN = "ABCxyz019-._~"
ESCAPED = ["%20", "%2B", "%26", "%3D", "%25", "%3A", "%40", "%E1%88%B4", "%C3%A4", "%00", "%28", "%22"]
# Targets as other clients send them: marks as they are, small digits, letters that need no escape, octets beyond ASCII, broken UTF-8.
LOOSE = list("!$'()*,;:@+") + ["%2b", "%2E", "%41", "%7e", "%c3%a4", "ä", "%E4"]
VALUES = ["a", "a  b   c", "  led", "trailed  ", "a\tb", '"quoted  text"', "", "a, b,c", "ä  ö"]
OTHERS = ["User-Agent: a/1", "X-Amzn-Trace-Id: Root=1", "Cookie: a=b", "X-Other: 1", "Range: bytes=0-1", "Date: now"]
FORGED = [
    "Authorization: AWS4-HMAC-SHA256 forged",
    "X-Amz-Date: 20000101T000000Z",
    "x-amz-security-token: forged",
    "X-Amz-Content-Sha256: 0",
]


class Requests:
    """Drawn requests: octets to send. `exact`: written as botocore writes them."""

    def __init__(self, seed, exact, s3):
        self.random, self.exact, self.s3 = random.Random(seed), exact, s3

    def word(self, most=6):
        parts = [*PLAIN, *ESCAPED] if self.exact else [*PLAIN, *ESCAPED, *LOOSE]
        return "".join(self.random.choices(parts, k=self.random.randint(1, most)))

    def path(self):
        segments = [self.word() for _ in range(self.random.randint(0, 4))]
        for odd in (".", "..", "", "..."):
            if self.random.random() < 0.15:
                segments.insert(self.random.randint(0, len(segments)), odd)
        return "/" + "/".join(segments)

    def query(self):
        pairs = []
        for _ in range(self.random.choice([0, 0, 1, 2, 3, 8])):
            name = self.random.choice(["a", "A", "a-b", "list-type", "X-Amz-Meta", self.word(3)])
            values = ["=", "=" + self.word(), "=" + self.word()] + ([] if self.exact else ["", "=b=c", "=/+ä"])
            pairs.append(name + self.random.choice(values))
        if not self.exact and self.random.random() < 0.1:
            pairs.insert(0, "")
        return "?" + "&".join(pairs) if pairs or self.random.random() < 0.05 else ""

    def draw(self, host):
        method = self.random.choice(["GET", "GET", "PUT", "POST", "DELETE", "HEAD", "PATCH"])
        fields = [f"Host: {host}"] + [field for field in OTHERS + FORGED if self.random.random() < 0.2]
        for name in ("Content-Type", "Content-MD5", "X-Amz-Target", "x-amz-meta-a", "X-AMZ-Meta-B", "X-Amz-Acl"):
            if self.random.random() < 0.3:
                fields.append(f"{name}: {self.random.choice(VALUES)}")
        if self.random.random() < 0.2:
            fields += [f"X-Amz-Meta-Twice: {self.random.choice(VALUES)}" for _ in range(2)]
        self.random.shuffle(fields)
        body = b""
        if method in ("PUT", "POST", "PATCH"):
            body = self.random.randbytes(self.random.choice([0, 1, 100, 3000]))
            if self.random.random() < 0.3:
                fields.append("Transfer-Encoding: chunked")
                half = len(body) // 2
                pieces = [piece for piece in (body[:half], body[half:]) if piece]
                body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
            else:
                fields.append(f"Content-Length: {len(body)}")
        head = "\r\n".join([f"{method} {self.path()}{self.query()} HTTP/1.1", *fields]) + "\r\n\r\n"
        return method, head.encode() + body
