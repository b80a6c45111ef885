"""What upstreams make of a credential that they show, and what somebody who knows that can read."""

import base64
import contextlib
import html
import html.entities
import json
import re
import urllib.parse

# With octets that every encoding has its own way with.
SECRET = "half-secret/of+an==API~4711&\"x"


def chunks(data, size):
    """A body in chunks of one size."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


NAMES = {character: f"&{name}" for name, character in html.entities.html5.items() if name.endswith(";") and character.isascii()}


def escaped(text, write):
    return "".join(one if one.isalnum() or one in " :\r\n" else write(one) for one in text)


FORMS = {
    "as-it-is": lambda text: text,
    "percent": urllib.parse.quote,
    "percent-all": lambda text: "".join(f"%{one:02x}" for one in text.encode()),
    "form": urllib.parse.quote_plus,
    "json": lambda text: json.dumps({"head": text}),
    "json-slashes": lambda text: json.dumps({"head": text}).replace("/", "\\/"),
    "json-u": lambda text: escaped(text, lambda one: f"\\u{ord(one):04X}"),
    "percent-twice": lambda text: urllib.parse.quote(urllib.parse.quote(text, safe=""), safe=""),
    "html": html.escape,
    "html-numbers": lambda text: escaped(text, lambda one: f"&#{ord(one)};"),
    "html-numbers-open": lambda text: escaped(text, lambda one: f"&#{ord(one)}" if one in "/+" else f"&#x{ord(one):08x};"),
    "html-names": lambda text: escaped(text, lambda one: NAMES.get(one, one)),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64-lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "base64-url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64-percent": lambda text: urllib.parse.quote(base64.b64encode(text.encode()).decode(), safe=""),
    "base64-of-the-value": lambda text: base64.b64encode(re.search("Bearer (.*)\r", text)[1].encode()).decode(),
}


def readings(text):
    """What somebody who knows the forms can read in a text."""
    yield text
    for once in (urllib.parse.unquote, urllib.parse.unquote_plus, html.unescape, unescape):
        yield once(text)
    yield urllib.parse.unquote(urllib.parse.unquote(text))
    plain = unescape(html.unescape(urllib.parse.unquote(text)))
    yield plain
    for found in re.findall(r"[A-Za-z0-9+/_-]{8,}", re.sub(r"[\r\n]", "", plain)):
        symbols = found.replace("-", "+").replace("_", "/")
        for first in range(4):
            whole = symbols[first:]
            whole = whole[: len(whole) // 4 * 4]
            with contextlib.suppress(ValueError):
                yield base64.b64decode(whole).decode("latin-1")


def unescape(text):
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\([\\/\"'])", r"\1", text)


def shows(data, secret=SECRET):
    text = data.decode("latin-1") if isinstance(data, bytes) else data
    return any(secret in reading for reading in readings(text))
