"""A resource server that verifies JWTs of an OpenID provider with PyJWT, by the provider's own keys.

    resource_server.py JWKS-URL [dpop]     prints {"api": URL} and serves until its standard input ends

With `dpop` a token is taken only with a proof of the key that it is bound to (RFC 9449).
"""

import json
import sys
import threading

import jwt
from flask import Flask, Response, jsonify, request
from werkzeug.serving import WSGIRequestHandler, make_server

from dpop import Refused, Verifier

api = Flask("api")
keys = jwt.PyJWKClient(sys.argv[1])
proofs = Verifier() if sys.argv[2:] == ["dpop"] else None


@api.route("/", defaults={"path": ""})
@api.route("/<path:path>")
def resource(path):
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    try:
        if scheme != ("DPoP" if proofs else "Bearer"):
            raise jwt.InvalidTokenError("no token of the right scheme")
        key = keys.get_signing_key_from_jwt(token)
        claims = jwt.decode(token, key.key, algorithms=["RS256"], options={"verify_aud": False, "require": ["exp"]})
        if proofs and claims["cnf"]["jkt"] != proofs.verify(request, token):
            raise Refused("another key")
    except (jwt.PyJWTError, Refused) as error:
        return Response(str(error), 401, {"WWW-Authenticate": 'Bearer realm="api", error="invalid_token"'})
    return jsonify(claims)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


if __name__ == "__main__":
    running = make_server("127.0.0.1", 0, api, threaded=True, request_handler=Quiet)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    print(json.dumps({"api": f"http://127.0.0.1:{running.server_port}"}), flush=True)
    sys.stdin.read()
