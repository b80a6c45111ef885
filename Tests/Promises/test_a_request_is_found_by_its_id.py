"""Promise: a request has one id: in the access record, in the log, in the problem that its caller gets and, if the route says so, at the
upstream and in the answer."""

import json
import re
import subprocess

import pytest

from harness import eventually, executable, free_port
from wire import call

# nginx answers with what it received, and names an id of its own.
NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; access_log off;
  server {{
    listen {address};
    add_header X-Request-Id nginx-own always;
    location /secret {{ return 401 "no\\n"; }}
    location / {{ return 200 "$http_x_request_id"; }}
  }}
}}
"""

MADE = re.compile("[0-9a-f]{32}")


@pytest.fixture
def server(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    folder = tmp_path / "nginx"
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, address=address))
    binary = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
    process = subprocess.Popen([binary, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"])
    eventually(lambda: answers(address), what="nginx answering")
    yield address
    process.terminate()
    process.wait(10)


def answers(address):
    try:
        return call(address).status == 200
    except OSError:
        return False


def start(gateway, server, route):
    gateway.with_identity({"static": {"value": gateway.secret("token", "abcdefghijklmnop")}}, {"log": {"access": "all"}})
    gateway.config["routes"][0].update({"to": f"http://{server}", **route})
    gateway.start()


def record(gateway, id):
    return eventually(lambda: next((line for line in gateway.access() if line.get("request_id") == id), None), what=f"the record of {id}")


def test_a_callers_own_id_goes_through_everything(gateway, server):
    start(gateway, server, {"request_id": "echo"})
    answer = gateway.get("/a", headers={"X-Request-ID": "order-7.B_1"})
    assert (answer.body, answer.values("X-Request-Id")) == (b"order-7.B_1", ["order-7.B_1"])
    line = record(gateway, "order-7.B_1")
    assert (line["path"], line["status"], line["identity"]) == ("/a", 200, gateway.config["routes"][0]["use"])


@pytest.mark.parametrize("unfit", [None, "two words", "x" * 65, 'a"b', "a;b"])
def test_an_id_is_made_where_the_caller_has_none_that_is_fit(gateway, server, unfit):
    start(gateway, server, {"request_id": "echo"})
    answers = [gateway.get("/a", headers={"X-Request-ID": unfit} if unfit else {}) for _ in range(3)]
    ids = [answer.body.decode() for answer in answers]
    assert len(set(ids)) == 3 and all(MADE.fullmatch(id) for id in ids), ids
    assert [answer.values("X-Request-Id") for answer in answers] == [[id] for id in ids]
    for id in ids:
        assert record(gateway, id)["status"] == 200


def test_without_a_word_of_the_route_nothing_is_added(gateway, server):
    start(gateway, server, {})
    answer = gateway.get("/a")
    assert (answer.body, answer.values("X-Request-Id")) == (b"", ["nginx-own"])
    assert gateway.get("/a", headers={"X-Request-ID": "mine"}).body == b"mine"
    assert record(gateway, "mine")


def test_a_problem_names_the_record(gateway, server):
    start(gateway, server, {})
    answer = gateway.get("/secret")
    assert answer.status == 502 and MADE.fullmatch(answer.problem["request_id"]), answer
    line = record(gateway, answer.problem["request_id"])
    assert line["fault"] == answer.problem["type"].removeprefix("urn:cardea:problems/") and answer.values("X-Request-Id") == []
    told = gateway.call("TRACE", "/a", headers={"X-Request-ID": "seen"})
    assert (told.status, told.problem["request_id"]) == (405, "seen")


def test_a_header_is_not_edited_twice(gateway, server):
    gateway.with_identity({"static": {"value": gateway.secret("token", "abcdefghijklmnop")}})
    gateway.config["routes"][0].update({"to": f"http://{server}", "request_id": "send", "headers": {"set": {"x-request-id": "a"}}})
    gateway.file.write_text(json.dumps(gateway.config))
    status, *output = gateway.command("check")
    assert status != 0 and "which 'request_id' writes" in "".join(output)
