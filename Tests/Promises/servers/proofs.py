"""The authorization server and its resource server as both are with DPoP (RFC 9449), the proofs verified with PyJWT.

    proofs.py      prints {"issuer": URL, "api": URL, "api2": URL} and serves until its standard input ends

`api2` is the resource server once more, over HTTP/2 in clear text (hypercorn).

POST /control/proofs changes what they ask for: `issuer_nonce` and `api_nonce` (none, "once": one nonce for all proofs, "each": a new
one with every answer; "asked": one that is only told where a proof lacks it), `type` (what the token answer calls the token), `binds` (false: a server that knows no DPoP), `ahead` (how far
the clocks of both are ahead, in seconds).
"""

import asyncio
import email.utils
import json
import secrets
import socket
import sys
import threading
import time

import hypercorn.asyncio
import hypercorn.config
import jwt
from flask import Response, g, jsonify, request

import authorization_server as base
from dpop import Refused, Verifier

DEFAULTS = {"issuer_nonce": None, "api_nonce": None, "type": "DPoP", "binds": True, "ahead": 0}
wanted, nonces, bound_refresh, verifier = dict(DEFAULTS), {}, {}, Verifier()


def nonce(side):
    return nonces.setdefault(side, secrets.token_urlsafe(8))


def verified(side, token=None):
    def note(header, claims):
        base.note("proof", side=side, header=header, claims=claims)

    verifier.ahead = wanted["ahead"]
    try:
        return verifier.verify(request, token, wanted[f"{side}_nonce"] and nonce(side), note)
    except Refused as why:
        if str(why) == "nonce":
            g.asked_for_nonce = True
        raise


def with_nonce(answer, side):
    if wanted[f"{side}_nonce"] == "each":
        nonces.pop(side, None)
    if wanted[f"{side}_nonce"] and (wanted[f"{side}_nonce"] != "asked" or "asked_for_nonce" in g):
        answer.headers["DPoP-Nonce"] = nonce(side)
    return answer


def date(handler, timestamp=None):
    """Of `Date`, which the server writes itself."""
    return email.utils.formatdate(time.time() + wanted["ahead"], usegmt=True)


base.Quiet.date_time_string = date


@base.app.post("/control/proofs")
def control_proofs():
    wanted.update(DEFAULTS)
    wanted.update(request.get_json(force=True))
    nonces.clear()
    return jsonify({})


@base.app.before_request
def token_request():
    if request.path != "/token" or not wanted["binds"]:
        return None
    try:
        g.thumbprint = verified("issuer")
    except Refused as why:
        error = "use_dpop_nonce" if str(why) == "nonce" else "invalid_dpop_proof"
        base.note("proof_refused", side="issuer", why=str(why))
        return Response(json.dumps({"error": error}), 400, {"Content-Type": "application/json"})
    # A public client's refresh token is bound as well (RFC 9449 §5).
    if bound_refresh.get(request.form.get("refresh_token"), g.thumbprint) != g.thumbprint:
        base.note("proof_refused", side="issuer", why="refresh token of another key")
        return Response(json.dumps({"error": "invalid_grant"}), 400, {"Content-Type": "application/json"})
    return None


@base.app.after_request
def token_answer(answer):
    if request.path != "/token":
        return answer
    if answer.status_code == 200 and wanted["binds"]:
        body = answer.get_json()
        claims = jwt.decode(body["access_token"], options={"verify_signature": False})
        claims["cnf"] = {"jkt": g.thumbprint}
        kind = {"kid": "1", "typ": "at+jwt"}
        body["access_token"] = jwt.encode(claims, base.KEY, algorithm="RS256", headers=kind)
        body["token_type"] = wanted["type"]
        if "refresh_token" in body:
            bound_refresh[body["refresh_token"]] = g.thumbprint
        answer.set_data(json.dumps(body))
    return with_nonce(answer, "issuer")


@base.api.before_request
def resource():
    base.note("call", method=request.method, size=len(request.get_data()), headers=dict(request.headers))
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    error = "invalid_token"
    claims = base.access_claims(token) if scheme == "DPoP" else None
    if claims:
        try:
            if claims["cnf"]["jkt"] == verified("api", token):
                return jsonify(claims)
            raise Refused("another key")
        except Refused as why:
            base.note("proof_refused", side="api", why=str(why))
            error = "use_dpop_nonce" if str(why) == "nonce" else "invalid_dpop_proof"
    challenge = f'Bearer realm="api", DPoP algs="ES256 PS256", error="{error}"'
    return Response("", 401, {"WWW-Authenticate": challenge})


@base.api.after_request
def resource_answer(answer):
    return with_nonce(answer, "api")


def serve_http2(site):
    """By prior knowledge."""
    listening = socket.create_server(("127.0.0.1", 0))
    settings = hypercorn.config.Config()
    port = listening.getsockname()[1]
    settings.bind = [f"fd://{listening.detach()}"]
    settings.errorlog = None

    async def serve():
        # Until the process ends: the default asks for signals, which only the main thread gets.
        await hypercorn.asyncio.serve(site, settings, shutdown_trigger=asyncio.Event().wait, mode="wsgi")

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    return port


if __name__ == "__main__":
    base.issuer = f"http://127.0.0.1:{base.serve(base.app)}"
    addresses = {"api": base.serve(base.api), "api2": serve_http2(base.api)}
    places = {name: f"http://127.0.0.1:{port}" for name, port in addresses.items()}
    print(json.dumps({"issuer": base.issuer, **places}), flush=True)
    sys.stdin.read()
