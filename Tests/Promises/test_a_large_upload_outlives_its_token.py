"""Promise: with `large_body` set, an upload that cannot be kept for a replay reaches the API although its token was just revoked."""

import subprocess

import pytest

from harness import executable


@pytest.mark.parametrize("way", ["expect_continue", "probe_head"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_revoked_token_costs_no_upload(gateway, tmp_path, way, framing):
    gateway.webgate(route={"on_rejected": {"max_body": "64KiB", "large_body": way}}).start().warm()
    body = tmp_path / "body"
    body.write_bytes(b"0123456789abcdef" * 200_000)
    curl = executable("CARDEA_CURL", "curl", "apt-get install curl")
    fields = ["-H", "Transfer-Encoding: chunked"] if framing == "chunked" else []

    def upload():
        arguments = ["-s", "--max-time", "30", "-H", "Expect:", *fields, "--data-binary", f"@{body}"]
        url = f"http://{gateway.listen}/hr/rest/echo"
        done = subprocess.run([curl, *arguments, "-w", "\\n%{http_code}", url], capture_output=True, check=True)
        return done.stdout.decode().rsplit("\n", 1)

    before = gateway.lab.counts()["access"]
    gateway.lab.post("/revoke")
    text, status = upload()
    assert status == "200" and '"length":3200000' in text.replace(" ", "")
    assert gateway.lab.counts()["access"] == before + 1
    # And again, with a token that is good.
    assert upload()[1] == "200"


@pytest.mark.parametrize("way", ["expect_continue", "probe_head"])
def test_a_cold_gateway_takes_a_large_upload(gateway, way):
    gateway.webgate(route={"on_rejected": {"max_body": "64KiB", "large_body": way}}).start()
    answer = gateway.call("POST", "/hr/rest/echo", b"x" * 2_000_000)
    assert (answer.status, answer.json["length"]) == (200, 2_000_000)
