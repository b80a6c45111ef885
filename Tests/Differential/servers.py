"""The servers that read what the gateway emitted. nginx, HAProxy, Apache and lighttpd hand on what they understood to a reporter of ours,
as proxies; Node and uvicorn say it themselves.

They stand as Debian and PyPI have them, with room for long heads. Switched off is what makes them leave out, join or rewrite what they have
read: it would hide how they read it."""

import asyncio
import base64
import json
import pathlib
import sys

import forwarding
import reader
from gateway import executable, free_port
from peers import Program

HERE = pathlib.Path(__file__).resolve().parent


class Reporter:
    """Reads what a server in front of it sends. Reports since the last `take`: key → list of what was understood."""

    def __init__(self):
        self.reports, self.broken = {}, []

    async def start(self):
        self.server = await asyncio.get_running_loop().create_server(
            lambda: Reported(self), "127.0.0.1", 0, backlog=4096
        )
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    def close(self):
        self.server.close()


class Reported(asyncio.Protocol):
    def __init__(self, reporter):
        self.reporter, self.buffer = reporter, bytearray()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        try:
            while self.buffer:
                message, end = reader.request(self.buffer)
                del self.buffer[:end]
                found = forwarding.understood(message)
                self.reporter.reports.setdefault(found.key, []).append(found)
                self.transport.write(
                    b"HTTP/1.1 200 OK\r\nX-Key: " + found.key.hex().encode() + b"\r\nContent-Length: 0\r\n\r\n"
                )
        except reader.More:
            pass
        except reader.Refused as reason:
            self.reporter.broken.append((bytes(self.buffer), str(reason)))
            self.transport.close()


def told(encoded):
    """The request as a server itself said that it understood it."""
    method, target, fields, body = json.loads(base64.b64decode(encoded))
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
    message = reader.Message(
        (method.encode("latin-1"), target.encode("latin-1"), 1), pairs, body=body.encode("latin-1")
    )
    return forwarding.understood(message)


class Server:
    """A running one. `reporter` is None where it reports by itself."""

    def __init__(self, name, folder, reporter):
        self.name, self.reporter = name, reporter
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(parents=True)
        self.port = free_port()
        self.program = Program(getattr(self, name)(), self.folder, [("127.0.0.1", self.port)])

    def close(self):
        self.program.close()
        if self.reporter:
            self.reporter.close()

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def nginx(self):
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in kinds)
        file = self.write(
            "nginx.conf",
            f"""daemon off; master_process off; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  {paths} access_log off; keepalive_timeout 60s; keepalive_requests 10000000; large_client_header_buffers 8 64k; client_max_body_size 0;
  underscores_in_headers on; ignore_invalid_headers off; merge_slashes off;
  upstream reporter {{ server 127.0.0.1:{self.reporter.port}; keepalive 16; keepalive_requests 10000000; }}
  server {{
    listen 127.0.0.1:{self.port};
    location / {{
      proxy_pass http://reporter; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection "";
    }}
  }}
}}
""",
        )
        return [
            executable("CARDEA_NGINX", "nginx", "apt-get install nginx"),
            "-p",
            str(self.folder),
            "-e",
            "stderr",
            "-c",
            file,
        ]

    def haproxy(self):
        file = self.write(
            "haproxy.cfg",
            f"""global
  nbthread 1
  tune.bufsize 65536
  tune.http.maxhdr 256
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive 60s
  http-reuse always
frontend f
  bind 127.0.0.1:{self.port}
  default_backend b
backend b
  server s 127.0.0.1:{self.reporter.port}
""",
        )
        return [executable("CARDEA_HAPROXY", "haproxy", "apt-get install haproxy"), "-db", "-q", "-f", file]

    def apache(self):
        modules = "\n".join(
            f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"
            for name in ("mpm_event", "proxy", "proxy_http", "authz_core")
        )
        file = self.write(
            "apache.conf",
            f"""{modules}
ServerRoot {self.folder}
ServerName localhost
DefaultRuntimeDir {self.folder}
PidFile {self.folder}/apache.pid
ErrorLog {self.folder}/error.log
LogLevel crit
Listen 127.0.0.1:{self.port}
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
KeepAlive On
KeepAliveTimeout 60
MaxKeepAliveRequests 0
LimitRequestFields 300
LimitRequestFieldSize 65536
LimitRequestLine 65536
AllowEncodedSlashes NoDecode
MergeSlashes Off
ProxyRequests Off
ProxyPreserveHost On
ProxyAddHeaders Off
ProxyVia Off
Proxy100Continue Off
ProxyPass / http://127.0.0.1:{self.reporter.port}/ nocanon retry=0
""",
        )
        return [executable("CARDEA_APACHE", "apache2", "apt-get install apache2-bin"), "-X", "-f", file]

    def lighttpd(self):
        file = self.write(
            "lighttpd.conf",
            f"""server.modules = ("mod_proxy")
server.document-root = "{self.folder}"
server.bind = "127.0.0.1"
server.port = {self.port}
server.errorlog = "{self.folder}/error.log"
server.max-keep-alive-requests = 10000000
server.max-keep-alive-idle = 60
server.max-request-field-size = 65536
server.upload-dirs = ("{self.folder}")
server.http-parseopts = ("url-normalize" => "disable", "host-normalize" => "disable")
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {self.reporter.port})))
""",
        )
        return [executable("CARDEA_LIGHTTPD", "lighttpd", "apt-get install lighttpd"), "-D", "-f", file]

    def node(self):
        return [
            executable("CARDEA_NODE", "node", "apt-get install nodejs"),
            str(HERE / "node_server.js"),
            str(self.port),
        ]

    def httptools(self):
        return [sys.executable, str(HERE / "uvicorn_server.py"), "httptools", str(self.port)]

    def h11(self):
        return [sys.executable, str(HERE / "uvicorn_server.py"), "h11", str(self.port)]


PROXIES = ("nginx", "haproxy", "apache", "lighttpd")
NAMES = (*PROXIES, "node", "httptools", "h11")


async def started(folder, names=NAMES):
    """All of them."""
    made = []
    for name in names:
        reporter = await Reporter().start() if name in PROXIES else None
        made.append(await asyncio.to_thread(Server, name, folder, reporter))
    return made
