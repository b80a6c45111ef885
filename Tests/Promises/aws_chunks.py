"""Bodies in aws-chunked: written as SDKs write them, with signatures that mean nothing, and read by a service that believes nothing."""

import base64
import hashlib
import re
import zlib

import botocore.auth
import botocore.awsrequest
import botocore.credentials

ZEROS = b"0" * 64
SIGNED, TRAILING = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
FORMS = {"signed": SIGNED, "signed-with-trailer": TRAILING, "unsigned-with-trailer": UNSIGNED}
CHECKSUM = "x-amz-checksum-crc32"


def checksum(data):
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def announced(form, length):
    """The fields before such a body."""
    fields = {"X-Amz-Content-Sha256": form, "X-Amz-Decoded-Content-Length": str(length), "Content-Encoding": "aws-chunked"}
    return fields | ({"X-Amz-Trailer": CHECKSUM} if form != SIGNED else {})


def encoded(data, form, size=65536):
    """The body; every signature in it is of zeros."""
    mark = b"" if form == UNSIGNED else b";chunk-signature=" + ZEROS
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    body = b"".join(b"%x%s\r\n%s\r\n" % (len(part), mark, part) for part in parts)
    body += b"0%s\r\n" % mark
    if form != SIGNED:
        body += f"{CHECKSUM}:{checksum(data)}\r\n".encode()
    if form == TRAILING:
        body += b"x-amz-trailer-signature:" + ZEROS + b"\r\n"
    return body + b"\r\n"


class Chunks:
    """Reads a body in pieces and compares all that is signed in it with what botocore computes. `wrong` is the first fault."""

    def __init__(self, named, service, region, key, key_id):
        self.form, self.length = named["x-amz-content-sha256"], int(named["x-amz-decoded-content-length"])
        self.announced = [name.strip().lower() for name in named.get("x-amz-trailer", "").split(",") if name.strip()]
        self.previous = named["authorization"].rpartition("Signature=")[2]
        self.asked = botocore.awsrequest.AWSRequest(method="PUT", url="http://h/")
        self.asked.context["timestamp"] = named["x-amz-date"]
        self.signer = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(key_id, key), service, region)
        self.buffer, self.count, self.crc, self.wrong = bytearray(), 0, 0, None
        self.trailers, self.stage = [], "chunks"

    def signature(self, kind, *parts):
        scope = self.signer.scope(self.asked).partition("/")[2]
        text = "\n".join([f"AWS4-HMAC-SHA256-{kind}", self.asked.context["timestamp"], scope, self.previous, *parts])
        self.previous = self.signer.signature(text, self.asked)
        return self.previous.encode()

    def feed(self, piece):
        self.buffer += piece
        while not self.wrong and self.step():
            pass

    def line(self):
        line, found, _ = bytes(self.buffer[:9000]).partition(b"\r\n")
        return line if found else None

    def step(self):
        line = self.line()
        if self.stage == "done":
            self.wrong = "octets behind the body" if self.buffer else None
            return False
        if line is None:
            return False
        if self.stage == "chunks":
            pattern = rb"([0-9a-f]+)" if self.form == UNSIGNED else rb"([0-9a-f]+);chunk-signature=([0-9a-f]{64})"
            matched = re.fullmatch(pattern, line)
            if not matched:
                self.wrong = f"chunk line {line!r}"
                return False
            size = int(matched[1], 16)
            if size and len(self.buffer) < len(line) + size + 4:
                return False
            data = bytes(self.buffer[len(line) + 2 : len(line) + 2 + size])
            if self.form != UNSIGNED:
                empty = hashlib.sha256(b"").hexdigest()
                if matched[2] != self.signature("PAYLOAD", empty, hashlib.sha256(data).hexdigest()):
                    self.wrong = f"signature of the chunk behind {self.count} octets"
                    return False
            if size and self.buffer[len(line) + 2 + size : len(line) + 4 + size] != b"\r\n":
                self.wrong = "a chunk's end"
                return False
            self.count += size
            self.crc = zlib.crc32(data, self.crc)
            del self.buffer[: len(line) + 2 + (size + 2 if size else 0)]
            if not size:
                self.stage = "trailers"
            return True
        del self.buffer[: len(line) + 2]
        if line:
            self.trailers.append(line.decode("latin-1").partition(":")[::2])
            return True
        self.stage, self.wrong = "done", self.fault_of_trailers()
        return True

    def fault_of_trailers(self):
        if self.count != self.length:
            return f"{self.count} octets of {self.length}"
        if self.form == TRAILING:
            if not self.trailers or self.trailers[-1][0] != "x-amz-trailer-signature":
                return "no signature of the trailers"
            given = self.trailers.pop()[1]
            lines = "".join(f"{name.lower()}:{value.strip()}\n" for name, value in sorted(self.trailers))
            if given.encode() != self.signature("TRAILER", hashlib.sha256(lines.encode()).hexdigest()):
                return "signature of the trailers"
        if [name.lower() for name, _ in self.trailers] != self.announced:
            return f"trailers {self.trailers}"
        sums = [value.strip() for name, value in self.trailers if name.lower() == CHECKSUM]
        if sums and sums != [base64.b64encode(self.crc.to_bytes(4, "big")).decode()]:
            return "checksum"
        return None

    def finish(self):
        """The fault of the whole, if there is one."""
        return self.wrong or (None if self.stage == "done" else f"it ends in its {self.stage}")
