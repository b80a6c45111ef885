"""The lab itself: its WebGate and token service hold a caller to the letter of the protocol."""

import base64
import json
import re

import pytest

from harness import call

AGENT = {"User-Agent": "OIC-Agent/1.0"}
DEVICE = {
    "oracle:idm:claims:client:sdkversion": "",
    "oracle:idm:claims:client:ostype": "",
    "oracle:idm:claims:client:osversion": "",
    "hardwareIds": {},
}
PATH = "/hr/rest/employees/42"


def challenge(lab, path=PATH):
    answer = call(lab.listen, path=path, headers=AGENT)
    assert (answer.status, answer.reason) == (401, "Authorization Required")
    match = re.fullmatch(
        r'OAM-Auth realm="(\w+):(\d+) ([^"]+)", request-ctx="([^"]+)"', answer.field("WWW-Authenticate")
    )
    return match.groups()


def service(lab, operation, members, handle=None, headers=None):
    fields = {"Content-Type": "application/json", "X-IDAAS-SERVICEDOMAIN": "MobileServiceDomain"}
    if handle:
        cred = base64.b64encode(f"EdgeProxy:{handle}".encode()).decode()
        fields["X-Idaas-Rest-Authorization"] = f'UIDPASSWORD cred="{cred}"'
    fields.update(headers or {})
    path = f"/oic_rest/rest/mobileoamauthentication/{operation}"
    return call(lab.issuer, "POST", path, json.dumps(members).encode(), {k: v for k, v in fields.items() if v})


def login(lab, new, password=None):
    return {
        "X-Idaas-Rest-Subject-Type": "USERCREDENTIAL",
        "X-Idaas-Rest-Subject-Username": "svc-hr",
        "X-Idaas-Rest-Subject-Password": password or lab.password,
        "X-Idaas-Rest-New-Token-Type-To-Create": new,
        "deviceProfile": DEVICE,
        "clientId": "EdgeProxy",
    }


def value(answer):
    assert answer.status == 200, answer
    return answer.json["X-Idaas-Rest-Token-Value"]


def session(lab):
    handle = value(service(lab, "register", login(lab, "CLIENTREGHANDLE")))
    return handle, value(service(lab, "authenticate", login(lab, "USERTOKEN"), handle))


def exchange(lab, handle, user, context, resource):
    return service(
        lab,
        "access",
        {
            "X-Idaas-Rest-Subject-Type": "TOKEN",
            "X-Idaas-Rest-Subject-Value": user,
            "X-Idaas-Rest-Application-Context": context,
            "X-Idaas-Rest-Application-Resource": resource,
            "X-Idaas-Rest-New-Token-Type-To-Create": "ACCESSTOKEN",
        },
        handle,
    )


def grant(lab, path=PATH):
    *_, context = challenge(lab, path)
    return value(exchange(lab, *session(lab), context, f"http://{lab.listen}{path}"))


def test_the_whole_handshake_opens_the_gate(lab):
    name, level, url, _ = challenge(lab)
    assert (name, level, url) == ("HR_WG", "2", PATH)
    token = grant(lab)
    answer = call(lab.listen, path=PATH, headers={**AGENT, "Authorization": f"OAM-Auth {token}"})
    assert answer.status == 200 and answer.json["id"] == 42
    assert answer.field("Set-Cookie").startswith("OAMAuthnCookie_")
    counts = lab.counts()
    assert (counts["register"], counts["authenticate"], counts["access"], counts["api_ok"]) == (1, 1, 1, 1)
    assert token in lab.get("/secrets")


def test_a_browser_is_redirected(lab):
    answer = call(lab.listen, path=PATH, headers={"User-Agent": "curl/8"})
    assert answer.status == 302 and "/oam/server/obrareq.cgi?encquery%3D" in answer.field("Location")


def test_a_context_works_once_and_for_its_url_only(lab):
    handle, user = session(lab)
    *_, context = challenge(lab)
    assert exchange(lab, handle, user, context, f"http://{lab.listen}{PATH}").status == 200
    assert exchange(lab, handle, user, context, f"http://{lab.listen}{PATH}").json["oicErrorCode"] == "IDAAS-62014"
    *_, context = challenge(lab)
    assert exchange(lab, handle, user, context, f"http://{lab.listen}/hr/rest/employees/7").status == 400
    assert exchange(lab, handle, user, "encquery%3Dmade-up", f"http://{lab.listen}{PATH}").status == 400


@pytest.mark.parametrize(
    "change",
    [
        {"X-IDAAS-SERVICEDOMAIN": "Default"},
        {"X-IDAAS-SERVICEDOMAIN": None},
        {"Content-Type": "text/plain"},
    ],
)
def test_a_wrong_header_is_refused(lab, change):
    assert service(lab, "register", login(lab, "CLIENTREGHANDLE"), headers=change).status == 400


@pytest.mark.parametrize(
    "member", ["deviceProfile", "clientId", "X-Idaas-Rest-Subject-Type", "X-Idaas-Rest-Subject-Password"]
)
def test_a_missing_member_is_refused(lab, member):
    members = login(lab, "CLIENTREGHANDLE")
    del members[member]
    assert service(lab, "register", members).status == 400


def test_an_unknown_handle_is_refused(lab):
    assert service(lab, "authenticate", login(lab, "USERTOKEN"), "made-up").status == 401
    assert service(lab, "authenticate", login(lab, "USERTOKEN")).status == 401
    assert lab.counts()["password_attempts"] == 0


def test_three_wrong_passwords_lock_the_account(lab):
    for _ in range(3):
        answer = service(lab, "register", login(lab, "CLIENTREGHANDLE", "wrong"))
        assert answer.status == 401 and answer.json["oicErrorCode"].startswith("IDAAS-")
    assert lab.get("/state")["locked"]
    assert service(lab, "register", login(lab, "CLIENTREGHANDLE")).status == 401
    lab.reset()
    assert service(lab, "register", login(lab, "CLIENTREGHANDLE")).status == 200


def test_a_level_needs_a_token_of_that_level(lab):
    token = {**AGENT, "Authorization": f"OAM-Auth {grant(lab)}"}
    path = "/hr/rest/level/3/x"
    answer = call(lab.listen, path=path, headers=token)
    assert answer.status == 401 and 'realm="HR_WG:3 ' in answer.field("WWW-Authenticate")
    token["Authorization"] = f"OAM-Auth {grant(lab, path)}"
    assert call(lab.listen, path=path, headers=token).status == 200
    assert call(lab.listen, path=PATH, headers=token).status == 200


def test_a_token_of_one_gate_does_not_open_another(lab):
    token = {**AGENT, "Authorization": f"OAM-Auth {grant(lab)}"}
    answer = call(lab.listen, path="/payroll/rest/employees/1", headers=token)
    assert answer.status == 401 and "Payroll_WG:2" in answer.field("WWW-Authenticate")


def test_revoked_tokens_are_challenged(lab):
    token = {**AGENT, "Authorization": f"OAM-Auth {grant(lab)}"}
    assert call(lab.listen, path=PATH, headers=token).status == 200
    assert call(lab.listen, path="/hr/rest/forbidden/x", headers=token).status == 403
    lab.post("/revoke")
    assert call(lab.listen, path=PATH, headers=token).status == 401


def test_the_challenge_takes_every_shape_asked_for(lab):
    def fields(**fault):
        lab.faults(**fault)
        answer = call(lab.listen, path=PATH, headers=AGENT)
        lab.faults(**{name: None for name in fault})
        return answer.status, answer.values("WWW-Authenticate")

    assert fields(redirect=True) == (302, [])
    assert fields(bare_401=True) == (401, [])
    assert fields(only_basic=True) == (401, ['Basic realm="x, y"'])
    status, values = fields(two_header_lines=True)
    assert status == 401 and [value.split()[0] for value in values] == ["Basic", "OAM-Auth"]
    assert len(fields(two_challenges_one_line=True)[1]) == 1
    assert "request-ctx" not in fields(no_context=True)[1][0]


def test_the_check_for_a_web_server_agrees_with_the_gate(lab):
    headers = {
        **AGENT,
        "X-Original-URI": "/hr/rest/employees/1?x=1",
        "X-Original-Host": "hr.example",
        "X-Original-Proto": "https",
    }
    answer = call(lab.plain, path="/authorize_check", headers=headers)
    assert answer.status == 401
    context = re.search(r'request-ctx="([^"]+)"', answer.field("WWW-Authenticate"))[1]
    token = value(exchange(lab, *session(lab), context, "https://hr.example/hr/rest/employees/1"))
    headers["Authorization"] = f"OAM-Auth {token}"
    assert call(lab.plain, path="/authorize_check", headers=headers).status == 200
    assert call(lab.plain, path="/authorize_check", headers={**headers, "User-Agent": "x"}).status == 403
