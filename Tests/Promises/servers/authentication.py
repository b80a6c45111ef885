"""How a person was authenticated (RFC 9470, OpenID Connect Core): what a login asked for, and the tokens that tell of it."""

import time

import jwt
from flask import request


def of(people, asked):
    """For a request with these parameters (OpenID Connect Core §3.1.2.1)."""
    age = people.get("auth_age", 0)
    if asked.get("max_age") and not people.get("stubborn"):
        age = min(age, int(asked["max_age"]))
    acr = people.get("acr") or (asked.get("acr_values") or "pwd").split()[0]
    return {"acr": acr, "auth_time": int(time.time()) - age}


def identify(token, oauth_request, people, issuer, key):
    """Puts an ID token (OpenID Connect Core §2) into the answer to a login for `openid`."""
    user, code = oauth_request.user, getattr(oauth_request, "authorization_code", None)
    if "openid" not in token.get("scope", "").split() or request.form["grant_type"] == "refresh_token":
        return
    if not user or not user.authenticated or people.get("silent"):
        return
    now, asked = int(time.time()), code.asked if code else {}
    claims = {"iss": issuer, "sub": user.name, "aud": oauth_request.client.id, "iat": now, "exp": now + 600}
    nonce = {"nonce": asked["nonce"]} if "nonce" in asked else {}
    token["id_token"] = jwt.encode({**claims, **nonce, **user.authenticated}, key, algorithm="RS256", headers={"kid": "1"})


def refusal(claims, asked):
    """Status and challenge for a token that is good, and not good enough for what the query says that the resource needs; or None."""
    stronger = []
    if asked.get("acr") and claims.get("acr") not in asked["acr"].split():
        stronger.append(f'acr_values="{asked["acr"]}"')
    if asked.get("max_age") and time.time() - claims.get("auth_time", 0) > int(asked["max_age"]):
        stronger.append(f"max_age={asked['max_age']}")
    if stronger:
        return 401, 'error="insufficient_user_authentication", ' + ", ".join(stronger)
    wanted = asked.get("needs", "")
    if wanted and not set(wanted.split()) <= set(claims["scope"].split()):
        return 403, f'error="insufficient_scope", scope="{wanted}"'
    return None
