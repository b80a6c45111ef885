"""The authorization server with a registration endpoint (RFC 7591) and introspection (RFC 7662), both by Authlib.

    registration.py      prints {"issuer": URL, "api": URL, "endpoints": …} and serves until its standard input ends

POST /control/registration changes what it asks for: `token` (the initial access token, good once), `statement_key` (whose statements
it believes), `expires` (seconds until a secret ends), `forget` (all clients, as after a database that was set up anew), `refuse` (a
status for every registration).
"""

import json
import sys
import time

from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from flask import Response, jsonify, request

import authorization_server as base

wanted = {}


class Registration(ClientRegistrationEndpoint):
    software_statement_alg_values_supported = ["ES256"]

    def authenticate_token(self, _request):
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return "token" not in wanted or (wanted["token"] and given == wanted["token"])

    def get_server_metadata(self):
        return {}

    def resolve_public_key(self, _request):
        return wanted["statement_key"]

    def save_client(self, client_info, client_metadata, _request):
        base.note("registered", metadata=dict(client_metadata), id=client_info["client_id"])
        client = {
            "id": client_info["client_id"],
            "secret": client_info["client_secret"],
            "auth": client_metadata.get("token_endpoint_auth_method", "client_secret_basic"),
            "grants": client_metadata["grant_types"],
            "scope": "read write admin",
        }
        with base.state.lock:
            kept = base.state.clients[client["id"]] = base.Client(client)
        kept.client_info, kept.client_metadata = client_info, dict(client_metadata)
        return kept

    def generate_client_registration_info(self, client, _request):
        # Somewhere else: whoever follows it shows there what it got here.
        return {"registration_client_uri": f"{base.api_origin}/stolen", "registration_access_token": "rat"}


class Introspection(IntrospectionEndpoint):
    CLIENT_AUTH_METHODS = base.METHODS

    def authenticate_token(self, request, client):
        base.note("introspected", client=client.id)
        return base.access_claims(request.form["token"])

    def create_introspection_payload(self, token):
        return {"active": True, **token} if token else {"active": False}


base.server.register_endpoint(Registration)
base.server.register_endpoint(Introspection)


@base.app.post("/register")
def register():
    if wanted.get("refuse"):
        return Response(json.dumps({"error": "invalid_client_metadata"}), wanted["refuse"])
    answer = base.server.create_endpoint_response("client_registration")
    if answer.status_code == 201 and wanted.get("token"):
        wanted["token"] = None
    if answer.status_code == 201 and wanted.get("expires"):
        # Authlib's own are for ever.
        answer.set_data(json.dumps({**answer.get_json(), "client_secret_expires_at": int(time.time() + wanted["expires"])}))
    return answer


@base.app.post("/introspect")
def introspect():
    return base.server.create_endpoint_response("introspection")


@base.app.post("/control/registration")
def control_registration():
    body = request.get_json(force=True)
    if body.pop("forget", False):
        base.state.clients.clear()
    else:
        wanted.clear()
    wanted.update(body)
    return jsonify({})


@base.api.before_request
def watch():
    if request.path == "/stolen":
        base.note("stolen")


if __name__ == "__main__":
    base.issuer = f"http://127.0.0.1:{base.serve(base.app)}"
    base.api_origin = f"http://127.0.0.1:{base.serve(base.api)}"
    endpoints = {"registration_endpoint": base.issuer + "/register", "introspection_endpoint": base.issuer + "/introspect"}
    encoding = "form" if tuple(map(int, base.authlib.__version__.split(".")[:2])) >= (1, 6) else "raw"
    told = {"issuer": base.issuer, "api": base.api_origin, "endpoints": endpoints, "basic_encoding": encoding}
    print(json.dumps(told), flush=True)
    sys.stdin.read()
