"""Promise: the settings that a mobile app was given become a configuration that `cardea check` accepts, or a clear refusal."""

import json
import random
import subprocess
import urllib.parse

import pytest

from harness import executable


def cardea(*words):
    binary = executable("CARDEA_BIN", ".build/debug/cardea", "swift build --product cardea")
    return subprocess.run([binary, *words], capture_output=True, text=True, timeout=30)


WHITE_PAGES = {
    "AuthServerType": "OAMMSAuthentication",
    "OAMMSURL": "http://host123.us.example.com:14100",
    "OAMMSServiceDomain": "MobileServiceDomain",
    "ApplicationName": "WhitePages",
}
OAUTH = {"OM_PROP_AUTHSERVER_TYPE": "OM_PROP_OAUTH_OAUTH20_SERVER", "OM_PROP_OAUTH_CLIENT_ID": "app-1"}
TOKEN = OAUTH | {"OM_PROP_OAUTH_TOKEN_ENDPOINT": "https://idp.example.com/token"}
MOBILE = OAUTH | {"OAMOAuthServiceEndpoint": "https://oam.example.com/ms_oauth/oauth2/endpoints/oauthservice"}
TENANT = TOKEN | {"OM_PROP_IDENTITY_DOMAIN_NAME": "tenant1", "OAuthClientSecret": "a-secret-of-the-app"}


def url(properties, scheme="wp://settings"):
    pairs = [f"{name}::={urllib.parse.quote(value, safe='/:')}" for name, value in properties.items()]
    return f"{scheme}?{'&'.join(pairs)}"


def lines(properties):
    return "".join(f"{name} = {value}\n" for name, value in properties.items())


def imported(source, *options):
    return cardea("import", *options, "--", str(source))


def accepted(folder, source, *options):
    """The YAML, which `check` takes without an error, and the same as the JSON tells it."""
    done = imported(source, *options)
    assert done.returncode == 0, done.stderr
    file = folder / "imported.yaml"
    file.write_text(done.stdout)
    check = cardea("check", "--json", str(file))
    assert check.returncode == 0 and json.loads(check.stdout)["errors"] == 0, check.stdout + done.stdout
    told = json.loads(imported(source, "--json", *options).stdout)
    assert told["yaml"] == done.stdout
    return done.stdout, told


def test_the_url_of_the_guide(tmp_path):
    # As the guide prints it: without any percent sign.
    text = (
        "wp://settings?AuthServerType::=OAMMSAuthentication&OAMMSURL::=http://host123.us.example.com:14100"
        "&OAMMSServiceDomain::=MobileServiceDomain&ApplicationName::=WhitePages"
    )
    yaml, told = accepted(tmp_path, text)
    assert told["handshake"] == "oam_webgate" and told["left"] == []
    assert 'service: "http://host123.us.example.com:14100/oic_rest/rest/mobileoamauthentication"' in yaml
    assert 'client_id: "WhitePages"' in yaml and '"whitepages":' in yaml and "allow_cleartext: true" in yaml
    (tmp_path / "url.txt").write_text(text.replace("&OAMMSS", "\n&OAMMSS") + "\n")
    assert accepted(tmp_path, tmp_path / "url.txt")[0] == yaml


@pytest.mark.parametrize(
    "properties, handshake, words",
    [
        (WHITE_PAGES | {"MaxLoginAttempts": "3", "OfflineAuthAllowed": "false"}, "oam_webgate", ["login_attempts: 3", "connectivity: online"]),
        (
            {"AuthServerType": "OAMMSAuthentication", "OM_PROP_OAMMS_HOST": "oam.example.com", "OM_PROP_OAMMS_PORT": "14101",
             "OM_PROP_OAMMS_PORT_IS_SSL": "true", "OAMMSServiceDomain": "D", "OM_PROP_APPNAME": "App"},
            "oam_webgate", ["https://oam.example.com:14101/oic_rest"],
        ),
        (TOKEN | {"OAuthAuthZGrantType": "OM_OAUTH_CLIENT_CREDENTIALS", "OAuthClientSecret": "a-secret-of-the-app",
                  "OAuthScope(s)": "read write"}, "oauth2", ["grant: client_credentials", 'scopes: ["read", "write"]', "client_secret: file:"]),
        (TOKEN | {"OAuthAuthZGrantType": "OAuthResourceOwner"}, "oauth2", ["grant: password", "client_auth: none"]),
        (TOKEN | {"OAuthAuthZGrantType": "OM_OAUTH_AUTHORIZATION_CODE", "OAuthRedirectEndpoint": "myapp://back",
                  "OAuthAuthZEndpoint": "https://idp.example.com/authorize", "BrowserMode": "External"}, "oauth2",
         ["grant: authorization_code", "# OAuthRedirectEndpoint: no counterpart", "# BrowserMode: no counterpart"]),
        (TOKEN | {"OAuthAuthZGrantType": "OM_OAUTH_ASSERTION", "OM_PROP_OAUTH_ASSERTION_SAML2": "<a-secret-of-the-app/>"}, "oauth2",
         ["grant: saml2_bearer", "assertion: file:"]),
        (TENANT | {"OAuthAuthZGrantType": "OM_OAUTH_RESOURCE_OWNER", "OM_PROP_IDENTITY_DOMAIN_NAME_IN_HEADER": "true"}, "oam_oauth",
         ["dialect: sim", "domain_mode: header"]),
        (TENANT | {"OAuthAuthZGrantType": "OM_OAUTH_ASSERTION", "OM_PROP_OAUTH_ASSERTION_JWT": "a-secret-of-the-app"}, "oam_oauth",
         ["domain_mode: user_prefix", "user_assertion: file:"]),
        (MOBILE | {"OAuthAuthZGrantType": "OM_OAUTH_RESOURCE_OWNER"}, "oam_oauth", ["dialect: 11g", "client_type: mobile", "grant: password"]),
        (MOBILE | {"OAuthAuthZGrantType": "OM_OAUTH_CLIENT_CREDENTIALS"}, "oam_oauth", ["grant: client_credentials"]),
        (MOBILE | {"OAuthAuthZGrantType": "OM_OAUTH_ASSERTION"}, "oam_oauth", ["grant: jwt_bearer"]),
        (MOBILE | {"OAuthAuthZGrantType": "OM_OAUTH_OAM_CREDENTIAL"}, "oam_oauth", ["experimental: true"]),
        ({"AuthServerType": "OM_PROP_AUTHSERVER_CLIENT_CERT", "OM_PROP_LOGIN_URL": "https://app.example.com/in", "ApplicationName": "C"},
         "client_certificate", ['to: "https://app.example.com"']),
    ],
)
def test_every_kind_of_server_has_its_form(tmp_path, properties, handshake, words):
    file = tmp_path / "properties"
    file.write_text("# from the app\n" + lines(properties))
    yaml, told = accepted(tmp_path, file)
    assert told["handshake"] == handshake
    for word in words:
        assert word in yaml, yaml
    assert "a-secret-of-the-app" not in yaml + json.dumps(told)
    names = {item["property"] for item in told["taken"] + told["left"]}
    assert names == set(properties), "every property is spoken of"
    assert accepted(tmp_path, url(properties), "--to", "https://api.example.com", "--name", "other")[1]["handshake"] == handshake


def test_what_has_no_counterpart_says_why(tmp_path):
    more = {"CryptoScheme": "SaltedSHA-512", "LocationUpdateEnabled": "true", "KeychainDataProtection": "x", "Whatever": "1"}
    yaml, told = accepted(tmp_path, url(WHITE_PAGES | more))
    for name in more:
        assert f"# {name}: no counterpart: " in yaml
    assert len(told["left"]) == len(more) and all(item["reason"] for item in told["left"])


@pytest.mark.parametrize(
    "source, why",
    [
        ("wp://settings?nothing", "not of the form name::=value"),
        (url(WHITE_PAGES) + "&A::=%zz", "percent sign"),
        (url(WHITE_PAGES) + "&A::=%0aroutes:", "control character"),
        (url(WHITE_PAGES) + "&A::=%ff", "not UTF-8"),
        (url(WHITE_PAGES) + "&A%0aB::=1", "name"),
        (url(WHITE_PAGES) + "&OAMMSURL::=http://other", "twice"),
        (url(WHITE_PAGES) + "&OM_PROP_APPNAME::=Other", "under two names"),
        (url(WHITE_PAGES) + "".join(f"&P{i}::=1" for i in range(300)), "more than 256"),
        (url(WHITE_PAGES | {"ApplicationName": "x" * 5000}), "longer than 4096"),
        (url(WHITE_PAGES | {"OAMMSURL": "file:///etc/passwd"}), "no http or https URL"),
        (url(WHITE_PAGES | {"AuthServerType": "SocialSignIn"}), "no counterpart"),
        (url(TOKEN | {"OAuthAuthZGrantType": "OM_OAUTH_IMPLICIT"}), "implicit"),
        (url({"ApplicationName": "x"}), "AuthServerType is missing"),
        (url(WHITE_PAGES | {"MaxLoginAttempts": "many"}), "1 to 10"),
    ],
)
def test_what_is_none_is_refused(source, why):
    done = imported(source)
    assert (done.returncode, done.stdout) == (78, ""), done
    assert why in done.stderr and len(done.stderr) < 400, done.stderr


def test_a_file_that_is_none_is_refused(tmp_path):
    big = tmp_path / "big"
    big.write_bytes(b"A = " + b"x" * 70_000)
    for path, why in [(big, "larger than 64 KiB"), (tmp_path / "not-there", "No such file"), ("/dev/zero", "not a regular file")]:
        done = imported(path)
        assert done.returncode == 78 and why in done.stderr, done


def test_values_cannot_become_keys_or_variables(tmp_path):
    name = 'x"\nroutes: []'.replace("\n", " ") + " ${HOME} $HOME #&*!|>'%@`\\ é"
    yaml = imported(url(WHITE_PAGES | {"ApplicationName": name})).stdout
    assert yaml.count("\nroutes:") == 1 and "$${HOME}" in yaml
    (tmp_path / "imported.yaml").write_text(yaml)
    found = json.loads(cardea("check", "--json", str(tmp_path / "imported.yaml")).stdout)["diagnostics"]
    # Such a name is no client id, which is all that is wrong with it.
    [error] = [one["message"] for one in found if one["severity"] == "error"]
    assert "client_id: missing, or with a colon" in error
    yaml, _ = accepted(tmp_path, url(WHITE_PAGES | {"ApplicationName": name.replace(":", "")}))
    assert yaml.count("\nroutes:") == 1 and "$${HOME}" in yaml


def test_noise_does_no_harm():
    chance = random.Random(7)
    for _ in range(60):
        text = bytearray(url(WHITE_PAGES | TENANT).encode())
        for _ in range(chance.randrange(1, 6)):
            text[chance.randrange(len(text))] = chance.randrange(1, 127)
        done = imported(text.decode("ascii"))
        assert done.returncode in (0, 64, 78), done
