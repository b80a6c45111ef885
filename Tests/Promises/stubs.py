"""A gateway that answers its callers' own token requests (`token_stub`), before an API that keeps what reached it."""

MARK = "cardea-placeholder"
SECRET = "half-legacy-client-secret-77"
PASSWORD = "half-legacy user's päss&word"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
REAL = "Bearer of-the-api"


def start(gateway, upstream, stub=None, use="api", changes=None, stub_route=None, **route):
    """`/oauth/token` is answered here, everything else goes to `upstream`."""
    gateway.secrets += [SECRET, PASSWORD]
    identities = {"api": {"static": {"value": gateway.secret("api-key", REAL)}}}
    routes = [
        {
            "name": "stub",
            "listen": gateway.listen,
            "match": {"path": "/oauth/token"},
            "token_stub": stub or {},
            **(stub_route or {}),
        },
        {**gateway.route("api", upstream), "use": use, **route},
    ]
    gateway.config = gateway.frame({"identities": identities, "routes": routes, **(changes or {})})
    return gateway.start()


def ask(gateway, body=b"grant_type=client_credentials", headers=FORM, method="POST"):
    return gateway.call(method, "/oauth/token", body, headers)


def placeholder(gateway):
    return ask(gateway).json["access_token"]


def assert_real(echo):
    """Nothing of a placeholder reached the API."""
    for path, fields in echo.seen:
        text = path + "\n".join(f"{name}: {value}" for name, value in fields)
        assert MARK not in text and "cardea%2" not in text, text
