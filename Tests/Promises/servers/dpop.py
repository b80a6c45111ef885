"""A proof of possession (RFC 9449) as a server looks at it, with PyJWT."""

import base64
import hashlib
import json
import threading
import time

import jwt
from jwt.algorithms import ECAlgorithm


class Refused(Exception):
    pass


class Verifier:
    """Each proof once. `ahead`: how far this server's clock is ahead, in seconds."""

    def __init__(self):
        self.lock, self.used, self.ahead = threading.Lock(), set(), 0

    def verify(self, request, token=None, nonce=None, note=lambda *_: None):
        """The thumbprint of the proof's key, by everything that RFC 9449 §4.3 has a server look at."""
        # Two fields of one name reach WSGI as one value with a comma, which no JWT contains.
        proof = request.headers.get("DPoP", "")
        try:
            header = jwt.get_unverified_header(proof)
            jwk = header["jwk"]
            if header["typ"] != "dpop+jwt" or header["alg"] != "ES256" or "d" in jwk:
                raise Refused("header")
            options = {"require": ["jti", "htm", "htu", "iat"], "verify_iat": False}
            claims = jwt.decode(proof, ECAlgorithm.from_jwk(jwk), algorithms=["ES256"], options=options)
        except (jwt.InvalidTokenError, KeyError) as error:
            raise Refused(repr(error)) from error
        note(header, claims)
        if (claims["htm"], claims["htu"]) != (request.method, request.base_url):
            raise Refused(f"{claims['htm']} {claims['htu']} instead of {request.method} {request.base_url}")
        if abs(claims["iat"] - time.time() - self.ahead) > 10:
            raise Refused("iat")
        with self.lock:
            if claims["jti"] in self.used:
                raise Refused("jti")
            self.used.add(claims["jti"])
        if claims.get("ath") != (token and unpadded(hashlib.sha256(token.encode()).digest())):
            raise Refused("ath")
        if nonce and claims.get("nonce") != nonce:
            raise Refused("nonce")
        return thumbprint(jwk)


def unpadded(digest):
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def thumbprint(jwk):
    """RFC 7638."""
    text = json.dumps({name: jwk[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":"), sort_keys=True)
    return unpadded(hashlib.sha256(text.encode()).digest())
