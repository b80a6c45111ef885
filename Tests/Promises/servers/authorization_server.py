"""An OAuth 2.0 authorization server on Authlib, and a resource server that verifies its JWTs with PyJWT.

    authorization_server.py      prints {"issuer": URL, "api": URL} and serves until its standard input ends

Everything about a client is registered by a test through POST /control/clients; POST /control/reset forgets all. Refresh tokens
rotate: a second use of one revokes everything that came of the same grant, as RFC 9700 §4.14 has it.
"""

import base64
import hashlib
import json
import os
import secrets
import ssl
import sys
import threading
import time
import xml.etree.ElementTree as xml

import authlib
import jwt
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.errors import InvalidClientError, InvalidGrantError, InvalidRequestError, OAuth2Error
from authlib.oauth2.rfc6749.grants import BaseGrant, TokenEndpointMixin
from authlib.oauth2.rfc7009 import RevocationEndpoint
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from flask import Flask, Response, jsonify, request
from werkzeug.serving import WSGIRequestHandler, make_server

import authentication
import people

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # loopback
URN = "urn:ietf:params:oauth:"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
USERS = {"anna": "pa ss+wörd&1"}


class State:
    def __init__(self):
        self.lock = threading.RLock()
        self.reset()

    def reset(self):
        self.clients, self.tokens, self.used = {}, {}, set()
        self.families_revoked, self.log, self.faults = set(), [], {}
        self.access_revoked, self.lifetime = set(), 3600
        people.reset(self)


state = State()
issuer = api_origin = ""


class Client(ClientMixin):
    def __init__(self, data):
        self.__dict__.update({"secret": None, "auth": "client_secret_basic", "grants": [], "scope": "", "keys": []})
        self.__dict__.update(data)

    def get_client_id(self):
        return self.id

    def get_default_redirect_uri(self):
        return (self.__dict__.get("redirect_uris") or [None])[0]

    def get_allowed_scope(self, scope):
        allowed = set(self.scope.split())
        return " ".join(word for word in (scope or "").split() if word in allowed)

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri in self.__dict__.get("redirect_uris", [])

    def check_client_secret(self, client_secret):
        return self.secret is not None and secrets.compare_digest(self.secret.encode(), client_secret.encode())

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.auth or (method == "assertion" and self.auth.endswith("_jwt"))

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in self.grants


class User:
    def __init__(self, name, authenticated=None):
        self.name, self.authenticated = name, authenticated or {}

    def get_user_id(self):
        return self.name


class Token(TokenMixin):
    def __init__(self, client, user, data, family):
        self.client, self.user, self.data, self.family, self.spent = client, user, data, family, False

    def check_client(self, client):
        return client.get_client_id() == self.client.get_client_id()

    def get_client(self):
        return self.client

    def get_user(self):
        return self.user

    def get_scope(self):
        return self.data.get("scope", "")

    def get_expires_in(self):
        return self.data["expires_in"]

    def is_expired(self):
        return False

    def is_revoked(self):
        return self.family in state.families_revoked


# --- Client authentication ------------------------------------------------------------------------------------------


def note(step, **members):
    with state.lock:
        state.log.append({"step": step, **members})


def by_assertion(query_client, oauth_request):
    """private_key_jwt and client_secret_jwt (RFC 7523 §3), verified with PyJWT, each `jti` once."""
    form = oauth_request.form
    if form.get("client_assertion_type") != URN + "client-assertion-type:jwt-bearer":
        return None
    assertion = form["client_assertion"]
    header = jwt.get_unverified_header(assertion)
    client = query_client(jwt.decode(assertion, options={"verify_signature": False}).get("sub"))
    if client is None:
        raise InvalidClientError()
    secret = client.auth == "client_secret_jwt"
    keys = [{"alg": "HS256", "key": client.secret}] if secret else client.keys
    claims = verified(assertion, header, keys, [issuer + "/token", issuer])
    if claims is None or claims["iss"] != client.id or claims["sub"] != client.id:
        raise InvalidClientError()
    note("client_assertion", header=header, claims=claims)
    if header["alg"].startswith("HS") != secret:
        raise InvalidClientError()
    return client


def shown_certificate():
    """SHA-256 of the certificate that the connection showed, as `x5t#S256` names it; None without one."""
    connection = request.environ.get("werkzeug.socket")
    der = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
    return der and base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")


def by_certificate(query_client, oauth_request):
    """tls_client_auth (RFC 8705 §2): the name in the form, the proof on the connection."""
    client = query_client(oauth_request.form.get("client_id"))
    shown = shown_certificate()
    if client is None or client.auth != "tls" or "client_secret" in oauth_request.form:
        return None
    note("certificate", thumbprint=shown, client=client.id)
    if shown is None or shown != client.thumbprint:
        raise InvalidClientError()
    return client


def verified(assertion, header, keys, audiences):
    for key in keys:
        if key["alg"] != header["alg"] or header.get("kid", key.get("kid")) != key.get("kid"):
            continue
        try:
            claims = jwt.decode(
                assertion,
                key["key"],
                algorithms=[key["alg"]],
                audience=audiences,
                options={"require": ["exp", "iat", "jti", "iss", "sub", "aud"]},
            )
        except jwt.InvalidTokenError as error:
            note("assertion_refused", why=repr(error))
            continue
        with state.lock:
            if claims["jti"] in state.used or claims["exp"] - claims["iat"] > 300:
                note("assertion_refused", why="jti used before, or too long a life")
                continue
            state.used.add(claims["jti"])
        return claims
    return None


# --- Grants ---------------------------------------------------------------------------------------------------------

METHODS = ["client_secret_basic", "client_secret_post", "none", "assertion", "tls"]


class Answering(BaseGrant, TokenEndpointMixin):
    """A token endpoint's grant in one method: `subject` says whose token it is."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def validate_token_request(self):
        client = self.authenticate_token_endpoint_client()
        if not client.check_grant_type(self.GRANT_TYPE):
            raise OAuth2Error(description="not for this client")
        self.request.client = client
        self.request.user = self.subject(self.request.form, client)

    def create_token_response(self):
        token = self.generate_token(
            user=self.request.user, scope=self.request.form.get("scope"), include_refresh_token=False
        )
        token.update(self.more)
        self.save_token(token)
        return 200, token, self.TOKEN_RESPONSE_HEADER

    more = {}


class ClientCredentials(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS


class Password(grants.ResourceOwnerPasswordCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def authenticate_user(self, username, password):
        note("password", user=username)
        return User(username) if USERS.get(username) == password else None


class Refresh(grants.RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token):
        with state.lock:
            token = state.tokens.get(refresh_token)
            if token is None or token.is_revoked():
                return None
            if token.spent:
                note("refresh_reused")
                state.families_revoked.add(token.family)
                return None
            return token

    def authenticate_user(self, credential):
        return credential.user

    def revoke_old_credential(self, credential):
        credential.spent = True


class JWTBearer(Answering):
    GRANT_TYPE = URN + "grant-type:jwt-bearer"

    def subject(self, form, client):
        assertion = form.get("assertion", "")
        try:
            header = jwt.get_unverified_header(assertion)
        except jwt.InvalidTokenError:
            raise InvalidGrantError()
        claims = verified(assertion, header, client.keys, [issuer + "/token", issuer])
        if claims is None or claims["sub"] not in USERS:
            raise InvalidGrantError()
        note("assertion", header=header, claims=claims)
        return User(claims["sub"])


class SAMLBearer(Answering):
    """What RFC 7522 §3 asks for, but for the signature: what is tried here is how a client carries an assertion."""

    GRANT_TYPE = URN + "grant-type:saml2-bearer"

    def subject(self, form, client):
        text = form.get("assertion", "")
        if "=" in text or "+" in text or "/" in text or "\n" in text:
            raise InvalidGrantError()
        space = "{urn:oasis:names:tc:SAML:2.0:assertion}"
        try:
            root = xml.fromstring(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            audience = root.find(f".//{space}AudienceRestriction/{space}Audience").text
            name = root.find(f".//{space}Subject/{space}NameID").text
        except (ValueError, xml.ParseError, AttributeError):
            raise InvalidGrantError()
        if audience != issuer or name not in USERS:
            raise InvalidGrantError()
        return User(name)


class Exchange(Answering):
    """RFC 8693, of tokens that this server gave."""

    GRANT_TYPE = URN + "grant-type:token-exchange"
    more = {"issued_token_type": URN + "token-type:access_token"}

    def subject(self, form, client):
        if form.get("subject_token_type") != URN + "token-type:access_token":
            raise InvalidRequestError("subject_token_type")
        if bool(form.get("actor_token")) != bool(form.get("actor_token_type")):
            raise InvalidRequestError("actor_token")
        claims = access_claims(form.get("subject_token", ""))
        if claims is None:
            raise InvalidRequestError("subject_token")
        note("exchange", subject=claims["sub"], client=client.id, form=sorted(form))
        return User(claims["sub"])


def access_token(client=None, grant_type=None, user=None, scope=None, **_):
    with state.lock:
        claims = {
            "iss": issuer,
            "sub": user.name if user else client.id,
            "aud": request.form.get("audience") or request.form.get("resource") or "api",
            "client_id": client.id,
            "scope": scope or "",
            "iat": int(time.time()),
            "exp": int(time.time() + state.lifetime),
            "jti": secrets.token_hex(8),
            **(user.authenticated if user else {}),
        }
        if shown_certificate():
            claims["cnf"] = {"x5t#S256": shown_certificate()}
    return jwt.encode(claims, KEY, algorithm="RS256", headers={"kid": "1", "typ": "at+jwt"})


def access_claims(token):
    try:
        claims = jwt.decode(token, KEY.public_key(), algorithms=["RS256"], issuer=issuer, options={"verify_aud": False})
    except jwt.InvalidTokenError:
        return None
    with state.lock:
        return None if claims["jti"] in state.access_revoked else claims


def save_token(token, oauth_request):
    with state.lock:
        token["expires_in"] = state.lifetime
        token.update(state.people["answer"])
        if not state.people["refresh"]:
            token.pop("refresh_token", None)
        authentication.identify(token, oauth_request, state.people, issuer, KEY)
        before = getattr(oauth_request, "refresh_token", None)
        before = before if isinstance(before, Token) else getattr(oauth_request, "credential", None)
        family = before.family if isinstance(before, Token) else secrets.token_hex(8)
        note("token", client=oauth_request.client.id, grant=request.form.get("grant_type"), family=family)
        if "refresh_token" in token:
            kept = Token(oauth_request.client, oauth_request.user, dict(token), family)
            if isinstance(before, Token):
                # What a refresh token is good for does not shrink with what one use asked for (RFC 6749 §6).
                kept.data["scope"] = before.get_scope()
            state.tokens[token["refresh_token"]] = kept


# --- The two sites --------------------------------------------------------------------------------------------------

app, api = Flask("issuer"), Flask("api")
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = lambda **_: secrets.token_urlsafe(24)
app.config["OAUTH2_ACCESS_TOKEN_GENERATOR"] = access_token
server = AuthorizationServer(app, query_client=lambda name: state.clients.get(name), save_token=save_token)
server.register_client_auth_method("assertion", by_assertion)
server.register_client_auth_method("tls", by_certificate)
for grant in (ClientCredentials, Password, Refresh, JWTBearer, SAMLBearer, Exchange):
    server.register_grant(grant)
people.register(app, server, state, note, METHODS, User, lambda: issuer)


class Revocation(RevocationEndpoint):
    CLIENT_AUTH_METHODS = METHODS

    def query_token(self, token_string, token_type_hint):
        return state.tokens.get(token_string)

    def revoke_token(self, token, request=None):
        note("revoked")
        state.families_revoked.add(token.family)


server.register_endpoint(Revocation)


@app.post("/token")
def token_endpoint():
    with state.lock:
        fault = state.faults.get("token")
    if fault:
        note("fault")
        return Response(fault.get("body", ""), fault.get("status", 200), fault.get("headers", {}))
    answer = server.create_token_response()
    if answer.status_code >= 400:
        note("refused", grant=request.form.get("grant_type"), error=answer.get_json()["error"])
    answer.headers["Cache-Control"] = "no-store"
    return answer


@app.post("/revoke")
def revocation_endpoint():
    return server.create_endpoint_response(Revocation.ENDPOINT_NAME)


def metadata():
    with state.lock:
        changes = state.faults.get("metadata", {})
    document = {
        "issuer": issuer,
        "token_endpoint": issuer + "/token",
        "revocation_endpoint": issuer + "/revoke",
        "authorization_endpoint": issuer + "/authorize",
        "device_authorization_endpoint": issuer + "/device_authorization",
        "authorization_response_iss_parameter_supported": True,
        "jwks_uri": issuer + "/jwks",
        "response_types_supported": ["code"],
        "grant_types_supported": sorted({"client_credentials", "password", "refresh_token"}),
        **changes,
    }
    return jsonify({name: value for name, value in document.items() if value is not None})


@app.get("/.well-known/<name>")
def well_known(name):
    with state.lock:
        served = state.faults.get("well_known", ["oauth-authorization-server", "openid-configuration"])
    note("metadata", name=name)
    return metadata() if name in served else Response("<html>no</html>", 404)


@app.get("/jwks")
def jwks():
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
    return jsonify(keys=[{**key, "kid": "1", "alg": "RS256", "use": "sig"}])


@app.post("/control/<what>")
def control(what):
    body = request.get_json(force=True)
    with state.lock:
        if what == "reset":
            state.reset()
        elif what == "clients":
            state.clients[body["id"]] = Client(body)
        elif what == "faults":
            state.faults.update(body)
        elif what == "lifetime":
            state.lifetime = body["seconds"]
        elif what == "revoke_access":
            # Every token given so far.
            state.access_revoked.update(body["jti"])
        elif what == "forget_refresh":
            state.families_revoked.update(token.family for token in state.tokens.values())
        elif what == "tls":
            return jsonify({"issuer": f"https://localhost:{serve(app, body)}", "api": f"https://localhost:{serve(api, body)}"})
        elif what == "log":
            return jsonify(state.log)
    return jsonify({})


@api.route("/", defaults={"path": ""}, methods=["GET", "POST"])
@api.route("/<path:path>", methods=["GET", "POST"])
def resource(path):
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    claims = access_claims(token) if scheme == "Bearer" else None
    if claims and claims.get("cnf", {}).get("x5t#S256") != shown_certificate() and "cnf" in claims:
        note("bound_elsewhere")
        claims = None
    if claims is None:
        given = ', error="invalid_token"' if token else ""
        return Response("", 401, {"WWW-Authenticate": f'Bearer realm="api"{given}'})
    if refusal := authentication.refusal(claims, request.args):
        return Response("", refusal[0], {"WWW-Authenticate": 'Bearer realm="api", ' + refusal[1]})
    return jsonify(claims)


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


def serve(site, files=None):
    context = None
    if files:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files["ca"])
        context.load_cert_chain(files["certificate"], files["key"])
        context.verify_mode = ssl.CERT_OPTIONAL
    running = make_server("127.0.0.1", 0, site, threaded=True, request_handler=Quiet, ssl_context=context)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    return running.server_port


if __name__ == "__main__":
    issuer = f"http://127.0.0.1:{serve(app)}"
    api_origin = f"http://127.0.0.1:{serve(api)}"
    # Older ones take the halves of Basic as they are, against RFC 6749 §2.3.1.
    encoding = "form" if tuple(map(int, authlib.__version__.split(".")[:2])) >= (1, 6) else "raw"
    print(json.dumps({"issuer": issuer, "api": api_origin, "basic_encoding": encoding}), flush=True)
    sys.stdin.read()
