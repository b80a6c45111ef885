"""A gateway for callers that mean somebody else: in a namespace of its own, with names of its own, beside one with nginx."""

import contextlib
import socket
import ssl
import subprocess

import h2.config
import h2.connection
import h2.events

from harness import eventually, executable
from namespaces import Space, join
from pki import Authority
from wire import Raw

TOKEN = "token-for-the-forward-proxy"
OURS, THEIRS = "10.91.0.1", "10.91.0.2"
NAMES = {
    "api.test": [THEIRS],
    "second.api.test": [THEIRS],
    "other.test": [THEIRS],
    "bad.test": [THEIRS],
    "plain.test": [THEIRS],
    "mixed.test": ["127.0.0.1", OURS, THEIRS],
    "rebound.test": ["127.0.0.1"],
    "own.test": [OURS],
    "metadata.test": ["169.254.169.254"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
}


class Web:
    """nginx in a namespace of its own: says what reached it."""

    def __init__(self, space, folder):
        folder.mkdir()
        self.authority, self.stranger = Authority(folder / "pki"), Authority(folder / "stranger", "stranger")
        good = self.authority.leaf("api.test", "DNS:api.test,DNS:second.api.test,DNS:other.test")
        bad = self.stranger.leaf("bad.test", "DNS:bad.test")
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        says = (
            'return 200 "$scheme $http_host $request_uri auth=[$http_authorization] '
            'proxy=[$http_proxy_authorization] via=[$http_via]\\n";'
        )
        numbered = "add_header X-Connection $connection;"
        servers = "".join(
            f"server {{ listen {THEIRS}:443 ssl http2; server_name {names}; ssl_certificate {pair[0]};"
            f" ssl_certificate_key {pair[1]}; {numbered} location / {{ {says} }} }}"
            for names, pair in (("api.test second.api.test other.test", good), ("bad.test", bad))
        )
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log info; user root;"
            f"events {{}} http {{ {temporary} access_log {folder}/access.log; {servers}"
            f"server {{ listen {THEIRS}:80; {numbered} location / {{ {says} }} }} }}"
        )
        self.folder = folder
        self.process = subprocess.Popen(
            [
                *space.wrapper,
                executable("CARDEA_NGINX", "nginx", "apt-get install nginx"),
                *("-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")),
            ]
        )

    def close(self):
        self.process.terminate()
        self.process.wait(10)


class Place:
    """The gateway's namespace beside the servers'. The test's own thread lives in the first one."""

    def __init__(self, gateway, space, far, web, folder):
        self.gateway, self.space, self.far, self.web, self.folder = gateway, space, far, web, folder
        gateway.wrapper = space.wrapper
        self.ca = folder / "opened"

    def authority(self, *hosts, out=None):
        return subprocess.run(
            [self.gateway.binary, "ca", "init", "--hosts", *hosts, "--out", str(out or self.ca)],
            capture_output=True,
            text=True,
        )

    def start(self, mode="forward_proxy", unmatched="refuse", intercept=None, route=None, listener=None, limits=None, **changes):
        entry = {"address": self.gateway.listen, "mode": mode, "unmatched": unmatched, **(listener or {})}
        if intercept:
            done = self.authority(*intercept)
            assert done.returncode == 0, done.stderr
            entry["intercept"] = {"ca": f"{self.ca}.pem", "hosts": intercept}
        routes = [
            {
                "name": host,
                "listen": "edge",
                "match": {"host": host},
                "to": f"https://{host}",
                "tls": {"ca": str(self.web.authority.pem)},
                "use": "api",
                **(route or {}),
            }
            for host in ("api.test", "second.api.test", "bad.test")
        ]
        value = self.gateway.secret("token", f"Bearer {TOKEN}")
        self.gateway.config = self.gateway.frame(
            {
                "identities": {"api": {"static": {"value": value}}},
                "listeners": {"edge": entry},
                "routes": routes,
                "limits": limits or {},
                **changes,
            }
        )
        self.gateway.start()
        return self

    def raw(self):
        return Raw(self.gateway.listen)

    def ask(self, target, method="GET", host=None, fields="", body=""):
        with self.raw() as raw:
            name = host or target.split("//")[-1].split("/")[0]
            raw.send(f"{method} {target} HTTP/1.1\r\nHost: {name}\r\n{fields}\r\n{body}")
            return raw.answer()

    def connect(self, authority, fields=""):
        """A socket behind an answered CONNECT, or the refusal."""
        raw = self.raw()
        raw.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{fields}\r\n")
        status, _, _ = raw.head()
        if status != 200:
            raw.socket.close()
            return status
        return raw.socket

    def opened(self, authority, name=None, protocols=None):
        """TLS with the gateway's own authority inside of a CONNECT."""
        made = ssl.create_default_context(cafile=f"{self.ca}.crt")
        if protocols:
            made.set_alpn_protocols(protocols)
        connection = self.connect(authority)
        assert not isinstance(connection, int), connection
        return made.wrap_socket(connection, server_hostname=name or authority.split(":")[0])

    def curl(self, *words):
        done = subprocess.run(
            [executable("CARDEA_CURL", "curl", "apt-get install curl"), "-sS", "--max-time", "10", *words],
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr


class Kept(Raw):
    """A caller on a connection that stands already."""

    def __init__(self, connection):
        connection.settimeout(15)
        self.socket, self.buffer = connection, b""


def through(connection, text, close=True):
    connection.sendall(text.encode())
    data = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            data += piece
    if close:
        connection.close()
    return data.decode(errors="replace")


def request(host, path="/", more="Connection: close\r\n"):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


@contextlib.contextmanager
def laid_out(gateway, folder):
    with contextlib.ExitStack() as stack:
        space, far = Space(NAMES), Space({})
        stack.callback(far.close)
        stack.callback(space.close)
        join(space, far, "inner", "outer")
        space.address("inner", f"{OURS}/24", "169.254.7.1/16")
        far.address("outer", f"{THEIRS}/24", "169.254.169.254/16")
        web = Web(far, folder / "web")
        stack.callback(web.close)
        stack.enter_context(space.inside())
        eventually(lambda: answers((THEIRS, 443)) and answers((THEIRS, 80)), what="nginx listening")
        yield Place(gateway, space, far, web, folder)


def answers(place):
    try:
        socket.create_connection(place, timeout=2).close()
        return True
    except OSError:
        return False


class H2:
    """A caller over HTTP/2 that writes what pseudo-fields it likes."""

    def __init__(self, connection):
        self.socket = connection
        config = h2.config.H2Configuration(
            header_encoding="utf-8", validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.state = h2.connection.H2Connection(config)
        self.state.initiate_connection()
        self.socket.sendall(self.state.data_to_send())
        self.socket.settimeout(10)

    def ask(self, *fields):
        """Status and body, or None for a stream that was reset."""
        stream = self.state.get_next_available_stream_id()
        self.state.send_headers(stream, list(fields), end_stream=True)
        self.socket.sendall(self.state.data_to_send())
        status, body = None, b""
        while True:
            data = self.socket.recv(65536)
            if not data:
                return None, b""
            for event in self.state.receive_data(data):
                if getattr(event, "stream_id", None) != stream:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    status = int(dict(event.headers)[":status"])
                if isinstance(event, h2.events.DataReceived):
                    body += event.data
                if isinstance(event, h2.events.StreamReset):
                    return None, b""
                if isinstance(event, h2.events.StreamEnded):
                    return status, body
            self.socket.sendall(self.state.data_to_send())
