"""Confined programs: `cardea run --confine -- COMMAND` in front of APIs that check what they are sent."""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import threading

from harness import free_port
from pki import Authority
from served import Quiet

API, GIT, MAPS, OPEN = (f"{name}.example.test" for name in ("api", "git", "maps", "open"))
SECRETS = {
    "API_TOKEN": "canary-of-the-api-2f6b1c",
    "GIT_PASSWORD": "canary-of-git-90ab3d",
    "MAPS_KEY": "canary-of-maps-77e0f1",
}
USER = "robot"


class Apis:
    """All hosts on one port, with TLS. What is under `folder` is served to whoever shows the host's credential."""

    def __init__(self, folder, authority):
        self.folder, self.seen = pathlib.Path(folder), []
        outer = self

        class Handler(Quiet):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                host = self.headers["Host"].split(":")[0]
                outer.seen.append((host, self.path, self.headers.items()))
                if not outer.admits(host, self):
                    return self.respond(401, b"no credential")
                file = outer.folder / self.path.split("?")[0].lstrip("/")
                file = file / "index.html" if file.is_dir() else file
                if not file.is_file():
                    return self.respond(404, b"nothing here")
                self.respond(200, file.read_bytes(), "text/html" if file.suffix == ".html" else "application/octet-stream")

            do_POST = do_PUT = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        certificate, key = authority.leaf("apis", ",".join(f"DNS:{name}" for name in (API, GIT, MAPS, OPEN)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.address = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @staticmethod
    def admits(host, request):
        basic = base64.b64encode(f"{USER}:{SECRETS['GIT_PASSWORD']}".encode()).decode()
        shown = request.headers.get_all("Authorization") or []
        match host:
            case _ if host == API:
                return shown == ["Bearer " + SECRETS["API_TOKEN"]]
            case _ if host == GIT:
                return shown == ["Basic " + basic]
            case _ if host == MAPS:
                return request.path.endswith("key=" + SECRETS["MAPS_KEY"]) and request.path.count("key=") == 1
        return not shown

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Confined:
    """A gateway with one program, whose folder is `program`."""

    def __init__(self, gateway, folder, monkeypatch):
        self.gateway, self.folder = gateway, pathlib.Path(folder)
        self.program, self.site = self.folder / "program", self.folder / "site"
        self.program.mkdir()
        self.site.mkdir()
        (self.site / "greeting").write_text("hello from afar\n")
        for name, value in SECRETS.items():
            monkeypatch.setenv(name, value)
        gateway.secrets += SECRETS.values()
        self.authority = Authority(self.folder / "pki")
        self.apis = Apis(self.site, self.authority)
        self.port = free_port()
        self.stack = contextlib.ExitStack()
        self.stack.callback(self.apis.close)
        hosts = [API, GIT, MAPS, OPEN]
        opened = gateway.folder / "interception"
        done = gateway.command("ca", "init", "--hosts", *hosts, "--out", str(opened), config=False)
        assert done[0] == 0, done
        gateway.config = gateway.frame(
            {
                "identities": {
                    "api": {"static": {"value": "env:API_TOKEN"}},
                    "git": {"basic": {"username": USER, "password": "env:GIT_PASSWORD"}},
                    "maps": {"static": {"value": "env:MAPS_KEY"}},
                },
                "listeners": {
                    "proxy": {
                        "address": f"127.0.0.1:{self.port}",
                        "mode": "forward_proxy",
                        "intercept": {"ca": f"{opened}.pem", "hosts": hosts},
                    }
                },
                "routes": [
                    self.route(API, "api", inject={"header": "Authorization", "value": "Bearer {token}"}),
                    self.route(GIT, "git"),
                    self.route(MAPS, "maps", inject={"query": "key"}),
                    self.route(OPEN, "none"),
                    # The same API for a program that can be told of an address.
                    self.route(API, "api", listen=gateway.listen, inject={"header": "Authorization", "value": "Bearer {token}"})
                    | {"name": "named", "match": {"path": "/"}},
                ],
            }
        )

    def route(self, host, use, listen="proxy", **more):
        return {
            "name": host.split(".")[0],
            "listen": listen,
            "match": {"host": host},
            "to": f"https://{host}",
            "use": use,
            "addresses": [self.apis.address],
            "tls": {"ca": str(self.authority.pem)},
            **more,
        }

    def begin(self, *command, how="--confine", wrap=(), environment=None, named=True, stdin=subprocess.DEVNULL, **rest):
        """The running gateway with its program. What it says on standard error is the gateway's events."""
        self.gateway.file.write_text(json.dumps(self.gateway.config))
        self.gateway.runs += 1
        where = ["--config", str(self.gateway.file)] if named else []
        with open(self.gateway.folder / f"stderr.{self.gateway.runs}", "wb") as events:
            process = subprocess.Popen(
                [*wrap, self.gateway.binary, "run", how, *where, "--", *command],
                cwd=self.program, env={**os.environ, **(environment or {})}, stdin=stdin,
                stdout=subprocess.PIPE, stderr=events, text=True, **rest,
            )  # fmt: skip
        self.stack.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()

    def run(self, *command, status=0, **rest):
        """What the program says, without the access log beside it."""
        process = self.begin(*command, **rest)
        said = process.stdout.read()
        assert process.wait(60) == status, said + self.gateway.text()
        return "".join(line for line in said.splitlines(keepends=True) if not line.startswith('{"time":'))

    def python(self, text, *arguments, **rest):
        file = self.program / "program.py"
        file.write_text(text)
        return self.run(sys.executable, str(file), *arguments, **rest)

    def close(self):
        self.stack.close()
