"""How people log in at the authorization server: its page, which always says yes (or no), and codes for devices."""

import time
from urllib.parse import quote

from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant, DeviceCredentialDict
from flask import jsonify, redirect, request

import authentication


def reset(state):
    state.codes, state.devices, state.verdicts = {}, {}, {}
    # Seconds between polls and for a code, members of every token answer, whether refresh tokens are given, how many polls are told
    # to slow down, whether answers name their issuer.
    state.people = {"interval": 1, "expires_in": 600, "answer": {}, "refresh": True, "slow_down": 0, "iss": True}
    # `acr`: the class of every login, whatever was asked for; `auth_age`: seconds since the person was there, unless max_age has it
    # come again; `stubborn`: not even then; `unmet`: what was asked for cannot be had; `silent`: no ID token tells of it.


class Code:
    """An authorization code with what it was asked for."""

    def __init__(self, client, user, asked):
        self.client, self.user, self.asked = client, user, asked
        self.code_challenge = asked.get("code_challenge")
        self.code_challenge_method = asked.get("code_challenge_method")

    def get_redirect_uri(self):
        return self.asked.get("redirect_uri")

    def get_scope(self):
        return self.asked.get("scope", "")


def register(app, server, state, note, methods, user, issuer):
    class AuthorizationCode(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = methods

        def save_authorization_code(self, code, oauth_request):
            with state.lock:
                state.codes[code] = Code(oauth_request.client, oauth_request.user, request.args.to_dict())
            return code

        def query_authorization_code(self, code, client):
            found = state.codes.get(code)
            return found if found and found.client.id == client.id else None

        def delete_authorization_code(self, authorization_code):
            with state.lock:
                state.codes = {name: code for name, code in state.codes.items() if code is not authorization_code}

        def authenticate_user(self, authorization_code):
            return authorization_code.user

    class DeviceCode(DeviceCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = methods

        def query_device_credential(self, device_code):
            return state.devices.get(device_code)

        def query_user_grant(self, user_code):
            verdict = state.verdicts.get(user_code)
            if not verdict:
                return None
            found = next(one for one in state.devices.values() if one["user_code"] == user_code)
            return user("anna", authentication.of(state.people, found["asked"])), verdict == "allow"

        def should_slow_down(self, credential):
            note("poll")
            with state.lock:
                state.people["slow_down"] -= 1
                return state.people["slow_down"] >= 0

    class DeviceAuthorization(DeviceAuthorizationEndpoint):
        CLIENT_AUTH_METHODS = methods

        def get_verification_uri(self):
            return issuer() + "/device"

        def save_device_credential(self, client_id, scope, data):
            with state.lock:
                data["interval"], data["expires_in"] = state.people["interval"], state.people["expires_in"]
                expires = time.time() + data["expires_in"]
                asked = request.form.to_dict()
                note("device", asked=asked)
                kept = {"client_id": client_id, "scope": scope, "expires_at": expires, "asked": asked, **data}
                state.devices[data["device_code"]] = DeviceCredentialDict(kept)

    server.register_grant(AuthorizationCode, [CodeChallenge(required=True)])
    server.register_grant(DeviceCode)
    server.register_endpoint(DeviceAuthorization)

    @app.get("/authorize")
    def authorization_endpoint():
        """Whoever comes here is anna, and says yes; or no, with `deny`."""
        asked = request.args.to_dict()
        note("authorize", asked=asked)
        if state.people.get("unmet") and asked.get("acr_values"):
            error = "error=unmet_authentication_requirements&state=" + quote(asked["state"], safe="")
            return redirect(f"{asked['redirect_uri']}?{error}&iss={quote(issuer(), safe='')}")
        person = None if state.people.get("deny") else user("anna", authentication.of(state.people, asked))
        answer = server.create_authorization_response(grant_user=person)
        place = answer.headers.get("Location")
        if place and state.people["iss"]:
            answer.headers["Location"] = place + "&iss=" + quote(state.people.get("named", issuer()), safe="")
        return answer

    @app.post("/device_authorization")
    def device_authorization_endpoint():
        return server.create_endpoint_response(DeviceAuthorization.ENDPOINT_NAME)

    @app.post("/control/people")
    def change():
        with state.lock:
            state.people.update(request.get_json(force=True))
        return jsonify({})

    @app.post("/control/refresh_tokens")
    def held():
        with state.lock:
            return jsonify(sorted(state.tokens))

    @app.post("/control/device")
    def decide():
        """What the person says to a code."""
        body = request.get_json(force=True)
        with state.lock:
            state.verdicts[body["user_code"]] = body["verdict"]
        return jsonify({})
