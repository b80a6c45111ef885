"""Tokens of the run's own issuer: each says what it is for, under a MAC, so that an upstream can judge it without asking. Every one begins
with the canary, so that it is found wherever it does not belong."""

import base64
import hashlib
import hmac
import json
import secrets

from history import CANARY

KEY = b"key of the tokens of one run"
LIFE = 5.0


def sealed(kind, facts):
    payload = base64.urlsafe_b64encode(json.dumps(facts, separators=(",", ":")).encode()).rstrip(b"=").decode()
    code = hmac.new(KEY, f"{kind}.{payload}".encode(), hashlib.sha256).hexdigest()[:20]
    return f"{CANARY}.{kind}.{payload}.{code}"


def opened(text, kind):
    """The facts of a token of this kind; none for anything else."""
    words = (text or "").split(".")
    if len(words) != 4 or words[:2] != [CANARY, kind]:
        return None
    code = hmac.new(KEY, f"{kind}.{words[2]}".encode(), hashlib.sha256).hexdigest()[:20]
    if not hmac.compare_digest(code, words[3]):
        return None
    return json.loads(base64.urlsafe_b64decode(words[2] + "=" * (-len(words[2]) % 4)))


def access(client, audience, subject, now, life=LIFE):
    return sealed(
        "at", {"c": client, "a": audience, "u": subject, "i": round(now, 4), "x": round(now + life, 4), "n": secrets.token_hex(6)}
    )


def refresh(family, number):
    return sealed("rt", {"f": family, "m": number, "n": secrets.token_hex(6)})
