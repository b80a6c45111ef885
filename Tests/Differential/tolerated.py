"""The differences between a sent request and a server's reading that are no finding, each with its reason."""

import dataclasses
import re
import urllib.parse

# RFC 9110 section 7.6.1: fields of a proxy's own hop.
HOP = {b"connection", b"keep-alive", b"upgrade", b"expect"}
# Fields that are not compared behind a server.
APART = {
    # mod_proxy counts the hops of every method down, not only those of section 7.6.2.
    "apache": {b"max-forwards"},
    # mod_proxy tells of the caller, which cannot be switched off; received ones of these names go. Proxy goes too, which CGI programs
    # would take for a setting of theirs (CVE-2016-5387).
    "lighttpd": {b"proxy", b"x-forwarded-for", b"x-host", b"x-forwarded-proto", b"x-forwarded-host", b"forwarded"},
}
# An empty value says nothing, and this server leaves such a field out.
LEAVES_EMPTY_FIELDS_OUT = {"lighttpd"}
# The server takes the first of several lines of a field that is no list in its eyes.
TAKES_THE_FIRST = {"lighttpd": {b"if-none-match", b"if-modified-since", b"content-type", b"http2-settings"}}
# RFC 3986 section 6.2: a host has no case, its port is that of the scheme where none is written, and a dot at its end is none of its name.
NORMALISES_HOST = {"lighttpd"}
# A path that begins with two slashes has one behind this server, and octets that RFC 3986 has not are encoded then: no reader is to take it
# for the name of a host. Only a route with `paths: raw` passes such a path (docs/security/guarantees.md#invariant-10).
JOINS_SLASHES_IN_FRONT = {"apache"}
LEGAL = "!$%&'()*+,/:;=?@~"
# ASGI has the query apart from the path: an empty one and none are the same in it.
KNOWS_NO_EMPTY_QUERY = {"httptools", "h11"}
# The parser gives values with the blanks behind them (RFC 9112 section 5.1 leaves them out).
KEEPS_BLANKS = {"httptools"}
# uvicorn takes trailers among the fields behind httptools. RFC 9110 section 6.5.1 forbids that, so that what the gateway lets pass as a
# trailer has to do no harm as a field.
MERGES_TRAILERS = {"httptools"}
EMPTY_MEMBERS = re.compile(rb",(?:[ \t]*,)+[ \t]*")


def answers_itself(name, sent):
    """OPTIONS * asks the server and no resource (RFC 9110 section 9.3.7). A request without hops left is Apache's own to answer
    (section 7.6.2), and a number of hops that is none is 0 there."""
    hops = [value for key, value in sent.fields if key == b"Max-Forwards"]
    spent = hops and not re.match(rb"0*[1-9]", hops[0])
    return sent.target == b"*" or name == "apache" and sent.method in (b"OPTIONS", b"TRACE") and spent


def normalised(name, sent):
    """Names have no case (RFC 9110 section 5.1), the order of different ones means nothing, and lines of one name are one list
    (section 5.3), of which empty members say nothing (section 5.6.1). Cookies are parted by semicolons (RFC 6265 section 4.2.1)."""
    lists = {}
    for key, value in sent.fields + (sent.trailers if name in MERGES_TRAILERS else []):
        key = key.lower()
        if key not in HOP and key not in APART.get(name, ()):
            lists.setdefault(key, []).append(value.strip(b" \t") if name in KEEPS_BLANKS else value)
    fields = []
    for key, values in sorted(lists.items()):
        if key in TAKES_THE_FIRST.get(name, ()):
            values = [value for value in values if value][:1]
        text = b", ".join(values)
        text = EMPTY_MEMBERS.sub(b", ", text.replace(b"; ", b", ") if key == b"cookie" else text).strip(b", \t")
        if text or name not in LEAVES_EMPTY_FIELDS_OUT:
            fields.append((key, text))
    target, host = sent.target, sent.host
    if name in KNOWS_NO_EMPTY_QUERY and target.find(b"?") == len(target) - 1:
        target = target[:-1]
    if name in JOINS_SLASHES_IN_FRONT:
        target = urllib.parse.quote(re.sub(rb"^/+", b"/", target), safe=LEGAL).encode()
    if name in NORMALISES_HOST:
        host = re.sub(rb"\.?(:80)?:?$", b"", host.lower())
    return dataclasses.replace(sent, target=target, host=host, fields=fields, optional=[], trailers=[])


# --- Answers ---------------------------------------------------------------------------------------------------------

# The parser trims a reason, which nobody acts on (RFC 9112 section 4).
TRIMS_REASON = {"http.client", "h11", "curl", "node"}


def cannot_read(name, octets):
    """http.client takes an interim answer other than 100 for the final one, against RFC 9110 section 15.2."""
    return name == "http.client" and re.match(rb"HTTP/1\.1 1(?!00 )", octets)


def read(name, status, reason, fields, body):
    """Names have no case; lines of a name stay apart, as clients give them."""
    # Python's own blanks, those of Latin-1 among them.
    reason = reason.decode("latin-1").strip().encode("latin-1") if name in TRIMS_REASON else reason
    return status, reason, sorted((key.lower(), value.strip(b" \t")) for key, value in fields), body
