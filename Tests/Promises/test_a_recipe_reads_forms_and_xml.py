"""Promise: a recipe's step takes values out of an answer in form encoding or in XML, which loads nothing and stands for nothing but itself."""

import hmac
import json
import re
import time

import pytest

from recipes import recipe
from scripted import Scripted, answer, echo, identified

SECRET = "token-in-an-answer-4"
SOAP = f"""<?xml version="1.0" encoding="utf-8"?>
<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:t="urn:trust">
  <!-- as a service of the trade writes it -->
  <s:Header/>
  <s:Body><t:Response id="7" t:for="600"><t:Token>
    {SECRET}&#43;&amp;x
  </t:Token><t:Empty/></t:Response></s:Body>
</s:Envelope>"""


class Issuer(Scripted):
    """Answers every step with `body`."""

    def __init__(self, body, kind=b"text/xml"):
        self.body, self.kind = body if isinstance(body, bytes) else body.encode(), kind
        super().__init__(self.serve)

    def serve(self, peer):
        for _ in peer.requests():
            peer.send(answer(self.body, b"Content-Type: " + self.kind))


def taking(gateway, issuer, upstream, take):
    take = {"token": take} if "token" not in take else take
    step = {"name": "access", "get": f"http://{issuer.address}/token", "take": take}
    gateway.secrets.append(SECRET)
    return identified(gateway, upstream, {"recipe": {"steps": [step], "token": "{access.token}"}})


FORMS = [
    (f"token={SECRET}&expires_in=600", SECRET),
    (f"a=b&&to%6Ben={SECRET}%2Bb%26&x", SECRET + "+b&"),
    (f"token={SECRET}+b%zz", SECRET + " b%zz"),
    (f"token={SECRET}=b", SECRET + "=b"),
]


@pytest.mark.parametrize("body, wanted", FORMS)
def test_a_value_out_of_a_form(gateway, body, wanted):
    with Scripted(echo) as upstream, Issuer(body, b"application/x-www-form-urlencoded") as issuer:
        taking(gateway, issuer, upstream, {"form": "token"}).start()
        assert gateway.get("/").status == 200
        assert upstream.requests[-1].field("Authorization") == f"Bearer {wanted}"
        assert issuer.requests[-1].field("Accept") == "application/x-www-form-urlencoded"


XML = [
    (SOAP, "/Envelope/Body/Response/Token", SECRET + "+&x"),
    (f"<a><![CDATA[{SECRET}<&]]></a>", "/a", SECRET + "<&"),
    (f"<a><b x='1'/><b y='{SECRET}'/></a>", "/a/b/@y", SECRET),
    (f"\ufeff<a>{SECRET}<b>no</b></a>\n", "/a", SECRET),
    (f"<a><b>no</b><c><b>{SECRET}</b></c></a>", "/a/c/b", SECRET),
]


@pytest.mark.parametrize("body, path, wanted", XML)
def test_a_value_out_of_xml(gateway, body, path, wanted):
    with Scripted(echo) as upstream, Issuer(body) as issuer:
        taking(gateway, issuer, upstream, {"xml": path}).start()
        assert gateway.get("/").status == 200, gateway.text()
        assert upstream.requests[-1].field("Authorization") == f"Bearer {wanted}"
        assert issuer.requests[-1].field("Accept") == "application/xml, text/xml"


def test_an_attribute_says_how_long(gateway):
    take = {"token": {"xml": "/Envelope/Body/Response/Token"}, "lifetime": {"xml": "/Envelope/Body/Response/@for"}}
    with Scripted(echo) as upstream, Issuer(SOAP) as issuer:
        taking(gateway, issuer, upstream, take).start()
        assert gateway.get("/").status == 200
        acquired = gateway.told(lambda event: event["message"] == "token acquired")
        assert 590 <= acquired[0]["expires_in_seconds"] <= 600


LAUGHS = "".join(f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, 10))
MALFORMED = {
    "nothing": "",
    "blanks": " \n",
    "text": SECRET,
    "json": json.dumps({"token": SECRET}),
    "half": f"<a><b>{SECRET}</b>",
    "two documents": f"<a><b>{SECRET}</b></a><a/>",
    "crossed": f"<a><b>{SECRET}</a></b>",
    "not UTF-8": f"<a><b>{SECRET}".encode() + b"\xff</b></a>",
    "UTF-16": f"<a><b>{SECRET}</b></a>".encode("utf-16"),
    "a zero": f"<a><b>{SECRET}\0</b></a>",
    "a control character": f"<a><b>{SECRET}&#1;</b></a>",
    "deep": "<a>" * 3000 + SECRET + "</a>" * 3000,
    "wide": "<a>" + "<b/>" * 5000 + f"<b>{SECRET}</b></a>",
    "two values": f"<a><b>{SECRET}</b><b>{SECRET}-b</b></a>",
    "no value": f"<a><c>{SECRET}</c></a>",
    "an empty value": "<a><b> </b></a>",
    "an unknown entity": f"<a><b>{SECRET}&unknown;</b></a>",
    "an entity": f'<!DOCTYPE a [<!ENTITY x "{SECRET}">]><a><b>&x;</b></a>',
    "a file": '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><a><b>&x;</b></a>',
    "a server": '<!DOCTYPE a [<!ENTITY x SYSTEM "http://{elsewhere}/">]><a><b>&x;</b></a>',
    "a document type elsewhere": f'<!DOCTYPE a SYSTEM "http://{{elsewhere}}/a.dtd"><a><b>{SECRET}</b></a>',
    "a bomb": f'<!DOCTYPE a [<!ENTITY l0 "{SECRET}">{LAUGHS}]><a><b>&l9;</b></a>',
    "too large": f"<a><b>{SECRET}</b>" + "<c/>" * 20_000 + "</a>",
}


@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_xml_is_told_without_what_is_in_it(gateway, what):
    body = MALFORMED[what]
    with Scripted(echo) as elsewhere, Scripted(echo) as upstream:
        if isinstance(body, str):
            body = body.replace("{elsewhere}", elsewhere.address)
        with Issuer(body) as issuer:
            taking(gateway, issuer, upstream, {"xml": "/a/b"}).start()
            found = gateway.get("/")
            assert found.status in (502, 503) and SECRET.encode() not in found.body, found
            assert not upstream.requests and not elsewhere.requests


@pytest.mark.parametrize(
    "body", ["", "token", "token=", f"other={SECRET}", f"token={SECRET}&token={SECRET}-b", f"token={SECRET}%0d%0aX-Forged:%20a", b"token=a\xff"]
)
def test_a_malformed_form_is_told_without_what_is_in_it(gateway, body):
    with Scripted(echo) as upstream, Issuer(body, b"application/x-www-form-urlencoded") as issuer:
        taking(gateway, issuer, upstream, {"form": "token"}).start()
        found = gateway.get("/")
        assert found.status in (502, 503) and SECRET.encode() not in found.body, found
        assert not upstream.requests


@pytest.mark.parametrize(
    "take, reason",
    [
        ({"xml": "a/b"}, "'xml' of 'token' in 'take' of step 'access' of identity 'only' (recipe) must be a path such as /Answer/Token"),
        ({"xml": "/"}, "must be a path such as"),
        ({"xml": "/a/@b/c"}, "must be a path such as"),
        ({"xml": "/a[1]"}, "must be a path such as"),
        ({"xml": "/s:a"}, "must be a path such as"),
        ({"xml": "/a", "form": "b"}, "needs exactly one of json, form, xml, header, cookie"),
    ],
)
def test_check_says_what_is_wrong(gateway, take, reason):
    with Scripted(echo) as upstream:
        taking(gateway, upstream, upstream, take)
        gateway.file.write_text(json.dumps(gateway.config, indent=2))
        status, out, _ = gateway.command("check")
        assert status == 78 and reason in out, out


def test_a_session_out_of_xml_signs_each_request(gateway):
    password, key = "password-<of>-orders", "key-of-a-session-8"
    gateway.secrets += [password, key]
    wrong = []

    def script(peer):
        for request in peer.requests():
            if request.target == "/session":
                if b"<Password>password-&lt;of&gt;-orders</Password>" not in request.body:
                    wrong.append(request.body)
                until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600))
                body = f'<E:Envelope xmlns:E="urn:e"><E:Body><Session id="s-1"><Key>{key}</Key><Until>{until}</Until></Session></E:Body></E:Envelope>'
                peer.send(answer(body.encode(), b"Content-Type: application/soap+xml"))
                continue
            found = re.fullmatch(r"Session id=s-1, at=(\d+), mac=([0-9a-f]{64})", request.field("Authorization") or "")
            text = f"{request.method}\n{request.target}\n{found and found[1]}".encode()
            if not found or hmac.new(key.encode(), text, "sha256").hexdigest() != found[2]:
                wrong.append(request.head)
            peer.send(answer(b"ok"))

    with Scripted(script) as server:
        texts = {
            "https://orders.example.com": f"http://{server.address}",
            "file:/run/secrets/orders-password": gateway.secret("orders-password", password),
        }
        identified(gateway, server, {"recipe": recipe("soap-session", texts)}).start()
        assert {gateway.get(f"/orders/{number}").status for number in range(5)} == {200}
        assert not wrong and [request.target for request in server.requests].count("/session") == 1
        # What is signed with a value of a step alone may be kept; here is no secret of the file in it.
        assert key.encode() not in gateway.store.read_bytes()
