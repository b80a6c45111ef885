"""Promise: what an operator writes about one of Oracle's servers arrives there as it is written: claims, device, names of members."""

import base64
import json
import urllib.parse

import jwt
import pytest

from oracle import KEY, pem
from scripted import Scripted, answer, echo, identified

JSON = b"Content-Type: application/json"
SECRET = "client-secret-of-this-test"
PASSWORD = "password-of-this-test"
SERVICE = "/ms_oauth/oauth2/endpoints/oauthservice"
# By what a request wants; anything else gets a token.
ANSWERS = {
    "pre": {"access_token": "code-1", "oracle_tk_context": "pre_azc", "expires_in": 300},
    "client": {"access_token": "assertion-1", "oracle_tk_context": "client_assertion", "expires_in": 3600},
    "user": {"access_token": "user-1", "oracle_tk_context": "user_assertion", "expires_in": 3600},
}
TOKEN = {"access_token": "token-1", "token_type": "Bearer", "expires_in": "3600", "refresh_token": "refresh-1"}


class Server:
    """Keeps what it is sent."""

    def __init__(self):
        self.forms, self.requests = [], []

    def __call__(self, peer):
        request = peer.request()
        form = dict(urllib.parse.parse_qsl(request.body.decode(), strict_parsing=bool(request.body)))
        self.forms.append(form)
        self.requests.append(request)
        said = ANSWERS.get(form.get("oracle_requested_assertions"), TOKEN)
        if form.get("oracle_token_action"):
            said = {"successful": True}
        peer.send(answer(json.dumps(said).encode(), JSON, b"Connection: close"))


@pytest.fixture
def served(gateway):
    server = Server()
    with Scripted(echo) as upstream, Scripted(server) as issuer:

        def start(dialect, route=None, **more):
            base = f"http://{issuer.address}"
            places = {
                "11g": {"service_endpoint": base + SERVICE},
                "12c": {"base_url": base, "identity_domain": "PayrollDomain"},
                "sim": {"token_url": base + "/oauth/tokens", "identity_domain": "tenant1"},
                "idcs": {"token_url": base + "/oauth2/v1/token"},
            }
            block = {"dialect": dialect, "client_id": "a", **places[dialect], **more}
            identified(gateway, upstream, {"oam_oauth": block}, route).start()
            found = gateway.get("/a")
            assert found.status == 200, (found, gateway.text())
            return server

        yield start


def secret(gateway):
    return {"client_secret": gateway.secret("client", SECRET)}


def mobile(gateway, **more):
    words = {"pre": "pre", "client": "client", "user": "user"}
    block = {"client_type": "mobile", "username": "svc", "password": gateway.secret("password", PASSWORD)}
    return {**block, "fetch_app_profile": False, "requested_assertions": words, **more}


def test_the_device_and_what_is_wanted_of_the_server(gateway, served):
    """With or without their prefix; what belongs to the hardware goes there."""
    profile = {"ostype": "linux", "oracle:idm:claims:client:osversion": "6.1", "imei": "35", "fingerprint": 'a "b"'}
    server = served("11g", **mobile(gateway, device_profile=profile))
    assert [form.get("oracle_requested_assertions") for form in server.forms] == ["pre", "client", None]
    device = json.loads(base64.b64decode(server.forms[1]["oracle_device_profile"], validate=True))
    prefix = "oracle:idm:claims:client:"
    assert device.pop("hardwareIds") == {prefix + "imei": "35"}
    assert device == {
        prefix + name: value
        for name, value in {"sdkversion": "", "ostype": "linux", "osversion": "6.1", "fingerprint": 'a "b"'}.items()
    }
    assert server.forms[1]["oracle_pre_authz_code"] == "code-1"
    assert server.forms[2]["client_assertion"] == "assertion-1"
    assert all(form["client_id"] == "a" for form in server.forms)


def test_the_members_name_for_the_servers_store(gateway, served):
    more = {"server_device_store": "on", "server_device_store_param": "use_server_side_device_store"}
    server = served("11g", **mobile(gateway, grant="jwt_bearer", **more))
    assert server.forms[2]["use_server_side_device_store"] == "true" and "assertion" not in server.forms[2]


@pytest.mark.parametrize("dialect", ["12c", "sim", "idcs", "11g"])
def test_claims_of_both_assertions(gateway, served, dialect):
    more = {
        "grant": "jwt_bearer",
        "client_auth": "private_key_jwt",
        "key": gateway.secret("key", pem()),
        "username": "svc",
        "user_claims": {"oracle.oauth.sub.id_type": "LDAP_UID", "sub.extra": "é"},
        "assertion": {"aud": "urn:somebody", "kid": "alias-7", "lifetime": "90s", "extra_claims": {"x": "y"}},
    }
    if dialect == "sim":
        # One of the dialect's own claims is replaced.
        more["assertion"]["extra_claims"]["user.tenant.name"] = "another"
    form = served(dialect, **more).forms[0]
    client, user = (
        jwt.decode(form[name], KEY.public_key(), algorithms=["RS256"], audience="urn:somebody")
        for name in ("client_assertion", "assertion")
    )
    assert jwt.get_unverified_header(form["client_assertion"])["kid"] == "alias-7"
    assert (client["iss"], client["sub"], client["x"]) == ("a", "a", "y") and "x" not in user
    assert (user["iss"], user["sub"], user["oracle.oauth.sub.id_type"]) == ("a", "svc", "LDAP_UID")
    assert user["sub.extra"] == "é" and user["jti"] != client["jti"]
    assert client["exp"] - client["iat"] == user["exp"] - user["iat"] == 90
    assert client.get("user.tenant.name") == ("another" if dialect == "sim" else None)


def test_members_and_headers_of_the_operators_own(gateway, served):
    more = {"extra": {"device": "x&y=z"}, "headers": {"X-Trace": "1"}, "domain_header": "X-Domain"}
    server = served("12c", **secret(gateway), **more)
    assert server.forms[0]["device"] == "x&y=z"
    request = server.requests[0]
    assert (request.field("X-Trace"), request.field("X-Domain")) == ("1", "PayrollDomain")
    assert request.field("X-OAUTH-IDENTITY-DOMAIN-NAME") is None
    # Id and secret as they are, as Oracle's clients send them.
    assert base64.b64decode(request.field("Authorization").removeprefix("Basic ")).decode() == f"a:{SECRET}"


@pytest.mark.parametrize("mode", ["header", "user_prefix", "none"])
def test_the_tenant_stands_where_it_is_wanted(gateway, served, mode):
    password = gateway.secret("password", PASSWORD)
    more = {"grant": "password", "username": "svc", "password": password, "domain_mode": mode}
    server = served("sim", **secret(gateway), **more)
    assert server.requests[0].field("X-USER-IDENTITY-DOMAIN-NAME") == ("tenant1" if mode == "header" else None)
    assert server.forms[0]["username"] == ("tenant1.svc" if mode == "user_prefix" else "svc")


@pytest.mark.parametrize("deletes", [True, False])
def test_tokens_are_deleted_at_logout_unless_they_are_to_stay(gateway, served, deletes):
    password = gateway.secret("password", PASSWORD)
    more = {"grant": "password", "username": "svc", "password": password, "delete_tokens": deletes}
    server = served("11g", {"scopes": ["read"]}, **secret(gateway), **more)
    status, _, error = gateway.command("logout", "only")
    assert status == 0, error
    actions = [form for form in server.forms if "oracle_token_action" in form]
    assert [(form["oracle_token_action"], form["assertion"]) for form in actions] == (
        [("delete", "token-1"), ("delete", "refresh-1")] if deletes else []
    )
