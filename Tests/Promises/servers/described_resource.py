"""A resource server that verifies JWTs with PyJWT and describes itself (RFC 9728): what it refuses with and how it describes itself is the
test's to say.

    described_resource.py JWKS-URL [CERTIFICATE KEY]     prints {"api": URL} and serves until its standard input ends

POST /control/set takes `challenges` (values of WWW-Authenticate), `status` (of a refused token), `refused` (values of `jti`), `needs`
(scopes; without them 403) and `documents`: path → {status, headers, body} or JSON. In all texts {api} stands for its origin. POST /control/log tells every request since the last set.
"""

import json
import ssl
import sys
import threading

import jwt
from flask import Flask, Response, jsonify, request
from werkzeug.serving import WSGIRequestHandler, make_server

api = Flask("api")
keys = jwt.PyJWKClient(sys.argv[1])
lock = threading.Lock()
state = {}
log = []
origin = ""


@api.post("/control/<what>")
def control(what):
    with lock:
        if what == "set":
            text = json.dumps(request.get_json(force=True)).replace("{api}", origin)
            state.clear()
            state.update(json.loads(text))
            log.clear()
        return jsonify(log)


def refuse(status, why):
    refusal = Response(why, status)
    for value in state.get("challenges", ["Bearer"]):
        refusal.headers.add("WWW-Authenticate", value)
    return refusal


@api.route("/", defaults={"path": ""}, methods=["GET", "POST"])
@api.route("/<path:path>", methods=["GET", "POST"])
def resource(path):
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    with lock:
        log.append({"path": request.full_path.rstrip("?"), "scheme": scheme})
        document = state.get("documents", {}).get("/" + path)
    if document is not None:
        if "body" in document or "status" in document:
            return Response(document.get("body", ""), document.get("status", 200), document.get("headers", {}))
        return jsonify(document)
    try:
        if scheme != "Bearer":
            raise jwt.InvalidTokenError("no token of the right scheme")
        key = keys.get_signing_key_from_jwt(token)
        claims = jwt.decode(token, key.key, algorithms=["RS256"], options={"verify_aud": False, "require": ["exp"]})
        if claims["jti"] in state.get("refused", []):
            raise jwt.InvalidTokenError("revoked")
    except jwt.PyJWTError as error:
        return refuse(state.get("status", 401), str(error))
    if not set(state.get("needs", [])) <= set(claims["scope"].split()):
        return refuse(403, "more is needed")
    return jsonify(claims)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


if __name__ == "__main__":
    context = None
    if sys.argv[2:]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*sys.argv[2:])
    running = make_server("127.0.0.1", 0, api, threaded=True, request_handler=Quiet, ssl_context=context)
    origin = f"https://localhost:{running.server_port}" if context else f"http://127.0.0.1:{running.server_port}"
    threading.Thread(target=running.serve_forever, daemon=True).start()
    print(json.dumps({"api": origin}), flush=True)
    sys.stdin.read()
