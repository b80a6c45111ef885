"""Who is measured, each set up for the same work: five ways in and out, one injected header, one worker.

A contender is told the ports, writes its configuration into a folder of its own, and is a process on core 0. Every one has the header as a
constant, except nginx-lua, which looks it up in a shared dictionary for every request: what people write who need it to change.
"""
import json
import pathlib
import subprocess
import time
import socket

TOKEN = "Bearer " + "".join(chr(ord("a") + i % 26) for i in range(113))
WAYS = ("plain_plain", "plain_tls1", "plain_tls2", "tls_plain", "tls_tls2")
ORIGIN = {"plain": 19080, "tls1": 19443, "tls2": 19444}
#: Of the origin's process.
ISSUER = 19090
MODULES = "/usr/lib/nginx/modules"


class Contender:
    name = ""
    #: Ways that it cannot go at all.
    lacks = frozenset()
    #: Loops, workers or threads.
    loops = 1

    def __init__(self, folder, base, pki, programs):
        self.folder = pathlib.Path(folder) / self.name
        self.folder.mkdir(parents=True)
        self.ports = {way: base + number for number, way in enumerate(WAYS)}
        self.pki = pki
        self.programs = programs
        self.process = None
        #: When the process was started last, by the monotonic clock.
        self.began = 0.0

    def command(self):
        raise NotImplementedError

    def paced_port(self, way):
        """Where h2load asks, if not where wrk does."""
        return self.ports[way]

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, core="0", before=(), patience=20):
        """Returns when a connection is accepted. `before`: what the command line begins with, a profiler for instance."""
        words = ["taskset", "-c", str(core), *before, *map(str, self.command())]
        self.began = time.monotonic()
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.folder)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.ports["plain_plain"]), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() - self.began > patience:
                    raise SystemExit(f"{self.name} did not start:\n{(self.folder / 'log').read_text()[-2000:]}")
                time.sleep(0.001)

    def stop(self, patience=10):
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def version(self):
        return ""


def first_line(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().splitlines()[0]


class Cardea(Contender):
    """With its defaults, admin address and sandbox included; bounds are raised to what the rows ask for."""
    name = "cardea"
    #: What some rows change.
    access = "off"
    routes = 1
    identities = 1

    @property
    def admin(self):
        return self.ports["plain_plain"] + 50

    def command(self):
        # JSON is YAML.
        return [self.programs["cardea"], "run", "--config", self.write("cardea.yaml", json.dumps(self.document(), indent=1))]

    def document(self):
        self.write("token", TOKEN.removeprefix("Bearer "))
        (self.folder / "token").chmod(0o600)
        target = {"plain": "http://127.0.0.1:%d" % ORIGIN["plain"], "tls1": "https://localhost:%d" % ORIGIN["tls1"],
                  "tls2": "https://localhost:%d" % ORIGIN["tls2"]}
        identities = {"api": {"static": {"value": f"file:{self.folder}/token", "prefix": "Bearer "}}}
        for number in range(1, self.identities):
            identities[f"other{number}"] = identities["api"]
        listeners, routes = {}, []
        for way in WAYS:
            caller, upstream = way.split("_")
            listener = {"address": f"127.0.0.1:{self.ports[way]}"}
            if caller == "tls":
                listener["tls"] = [{"certificate": str(self.pki / "leaf.pem"), "key": f"file:{self.pki}/leaf.key"}]
            listeners[way.replace("_", "-")] = listener
            if way == "plain_plain":
                names = list(identities)
                for number in range(1, self.routes):
                    routes.append({"listen": "plain-plain", "match": {"path": f"/service{number:05}/"}, "to": target["plain"],
                                   "use": names[number % len(names)]})
            route = {"listen": way.replace("_", "-"), "to": target[upstream], "use": "api"}
            if upstream != "plain":
                route["tls"] = {"ca": str(self.pki / "ca.pem")}
                route["http"] = "2" if upstream == "tls2" else "1.1"
            routes.append(route)
        return {
            "threads": self.loops, "identities": identities, "listeners": listeners, "routes": routes,
            "admin": {"listen": f"127.0.0.1:{self.admin}", "socket": str(self.folder / "cardea.sock")},
            "limits": {"connections": 15000, "connections_per_address": 15000}, "log": {"access": self.access},
            # It is stopped often, and nobody waits for what it still does.
            "shutdown": {"linger": "0s", "timeout": "1s"}}

    def version(self):
        return first_line(self.programs["cardea"], "version").removeprefix("cardea ")


class CardeaBefore(Cardea):
    """Another build, of an older state for instance."""
    name = "cardea-before"

    def __init__(self, folder, port, pki, programs):
        super().__init__(folder, port, pki, programs | {"cardea": programs["before"]})


class Nginx(Contender):
    name = "nginx"
    lacks = frozenset({"plain_tls2", "tls_tls2"})  # no HTTP/2 towards upstreams
    preamble = ""
    main = ""
    inject = f'proxy_set_header Authorization "{TOKEN}";'

    def command(self):
        servers = []
        for way in WAYS:
            if way in self.lacks:
                continue
            caller, upstream = way.split("_")
            tls = f"ssl_certificate {self.pki}/leaf.pem; ssl_certificate_key {self.pki}/leaf.key;" if caller == "tls" else ""
            scheme = "http" if upstream == "plain" else "https"
            verify = ("" if upstream == "plain" else
                      f"proxy_ssl_trusted_certificate {self.pki}/ca.pem; proxy_ssl_verify on; proxy_ssl_name localhost;"
                      " proxy_ssl_server_name on;")
            servers.append(f"""
    server {{
        listen 127.0.0.1:{self.ports[way]}{' ssl http2' if caller == 'tls' else ''} backlog=16384;
        {tls}
        location / {{
            proxy_pass {scheme}://{upstream};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            {self.inject}
            {verify}
        }}
    }}""")
        upstreams = "\n".join(
            f"    upstream {name} {{ server 127.0.0.1:{port}; keepalive 128; keepalive_requests 1000000000; }}"
            for name, port in ORIGIN.items())
        path = self.write("nginx.conf", f"""
{self.preamble}
daemon off; worker_processes {self.loops}; pid {self.folder}/pid; error_log {self.folder}/error.log error;
worker_rlimit_nofile {self.programs['descriptors']};
events {{ worker_connections {self.programs['descriptors'] - 100}; multi_accept on; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; http2_max_requests 1000000000;
    client_body_temp_path {self.folder}; proxy_temp_path {self.folder}; fastcgi_temp_path {self.folder};
    uwsgi_temp_path {self.folder}; scgi_temp_path {self.folder};
    {self.main}
{upstreams}
{''.join(servers)}
}}
""")
        return ["nginx", "-p", self.folder, "-c", path]

    def version(self):
        return first_line("nginx", "-v").removeprefix("nginx version: nginx/")


class NginxLua(Nginx):
    name = "nginx-lua"
    preamble = f"load_module {MODULES}/ndk_http_module.so; load_module {MODULES}/ngx_http_lua_module.so;"
    main = f"""lua_shared_dict tokens 1m;
    init_by_lua_block {{ ngx.shared.tokens:set("api", "{TOKEN}", 3600) }}"""
    inject = """access_by_lua_block {
                local token = ngx.shared.tokens:get("api")
                if not token then return ngx.exit(503) end
                ngx.req.set_header("Authorization", token)
            }"""

    def version(self):
        return "(lua-nginx-module of the distribution)"


class HAProxy(Contender):
    name = "haproxy"

    def paced_port(self, way):
        return self.ports[way] + (20 if way == "plain_tls2" else 0)

    def command(self):
        (self.folder / "leaf.pem").write_text((self.pki / "leaf.pem").read_text() + (self.pki / "leaf.key").read_text())
        blocks = []
        for way, port in [*self.ports.items(), ("plain_tls2", self.paced_port("plain_tls2"))]:
            caller, upstream = way.split("_")
            # Answers of an HTTP/2 origin have no reason phrase, which h2load does not understand on HTTP/1.1.
            phrase = "http-response set-status 200 reason OK" if port != self.ports[way] else ""
            bind = f" ssl crt {self.folder}/leaf.pem alpn h2,http/1.1" if caller == "tls" else ""
            server = {
                "plain": "", "tls1": f" ssl verify required ca-file {self.pki}/ca.pem sni str(localhost) alpn http/1.1",
                "tls2": f" ssl verify required ca-file {self.pki}/ca.pem sni str(localhost) alpn h2"}[upstream]
            blocks.append(f"""
listen {way}_{port}
    bind 127.0.0.1:{port}{bind}
    {phrase}
    http-request set-header Authorization "{TOKEN}"
    http-reuse always
    option splice-response
    server origin 127.0.0.1:{ORIGIN[upstream]}{server} pool-max-conn -1
""")
        path = self.write("haproxy.cfg", f"""
global
    nbthread {self.loops}
    maxconn {self.programs['connections'] + 100}
    # It wants two descriptors for each connection that it may have, and begins with fewer where it cannot have them.
    no strict-limits
    log /dev/null local0
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    timeout http-keep-alive 600s
{''.join(blocks)}
""")
        return ["haproxy", "-db", "-f", path]

    def version(self):
        return first_line("haproxy", "-v").split("version ")[1].split(" ")[0]


class Envoy(Contender):
    name = "envoy"

    def command(self):
        tls_in = {
            "name": "tls", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
                "common_tls_context": {
                    "alpn_protocols": ["h2", "http/1.1"],
                    "tls_certificates": [{
                        "certificate_chain": {"filename": str(self.pki / "leaf.pem")},
                        "private_key": {"filename": str(self.pki / "leaf.key")}}]}}}
        listeners = []
        for way in WAYS:
            caller, upstream = way.split("_")
            chain = {"filters": [{"name": "http", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
                         "HttpConnectionManager",
                "stat_prefix": way, "codec_type": "AUTO",
                "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
                    {"match": {"prefix": "/"}, "route": {"cluster": upstream, "timeout": "60s"}}]}]},
                "http_filters": [
                    {"name": "envoy.filters.http.credential_injector", "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.filters.http.credential_injector.v3."
                                 "CredentialInjector",
                        "overwrite": True,
                        "credential": {"name": "envoy.http.injected_credentials.generic", "typed_config": {
                            "@type": "type.googleapis.com/envoy.extensions.http.injected_credentials.generic.v3."
                                     "Generic",
                            "credential": {"name": "token"}, "header": "Authorization"}}}},
                    {"name": "envoy.filters.http.router", "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}
            if caller == "tls":
                chain["transport_socket"] = tls_in
            listeners.append({
                "name": way, "address": {"socket_address": {"address": "127.0.0.1", "port_value": self.ports[way]}},
                "filter_chains": [chain]})
        options = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
        clusters = []
        for upstream, port in ORIGIN.items():
            cluster = {
                "name": upstream, "type": "STATIC", "connect_timeout": "5s",
                "circuit_breakers": {"thresholds": [
                    {"max_connections": 40000, "max_pending_requests": 40000, "max_requests": 40000}]},
                "load_assignment": {"cluster_name": upstream, "endpoints": [{"lb_endpoints": [{"endpoint": {
                    "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}]}]},
                "typed_extension_protocol_options": {
                    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {"@type": options, "explicit_http_config": {
                        "http2_protocol_options" if upstream == "tls2" else "http_protocol_options": {}}}}}
            if upstream != "plain":
                cluster["transport_socket"] = {"name": "tls", "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                    "sni": "localhost",
                    "common_tls_context": {
                        "alpn_protocols": ["h2" if upstream == "tls2" else "http/1.1"],
                        "validation_context": {"trusted_ca": {"filename": str(self.pki / "ca.pem")}}}}}
            clusters.append(cluster)
        document = {"static_resources": {
            "listeners": listeners, "clusters": clusters,
            "secrets": [{"name": "token", "generic_secret": {"secret": {"inline_string": TOKEN}}}]}}
        path = self.write("envoy.json", json.dumps(document))
        return [self.programs["envoy"], "-c", path, "--concurrency", str(self.loops), "--log-level", "error", "--disable-hot-restart"]

    def version(self):
        return first_line(self.programs["envoy"], "--version").split("version: ")[-1].split("/")[1]


class Relay(Contender):
    """The floor: see Relay/main.swift."""
    name = "bare-relay"
    lacks = frozenset(WAYS) - {"plain_plain"}

    def command(self):
        return [self.programs["relay"], self.ports["plain_plain"], ORIGIN["plain"], f"Authorization: {TOKEN}"]


class Origin(Contender):
    """nginx with fixed answers, on the load's core."""
    name = "origin"

    def command(self):
        self.ports["plain_plain"] = ORIGIN["plain"]
        files = self.folder / "files"
        files.mkdir(exist_ok=True)
        (files / "64k").write_bytes(b"x" * 65536)
        (files / "1m").write_bytes(b"x" * 1048576)
        tls = f"ssl_certificate {self.pki}/leaf.pem; ssl_certificate_key {self.pki}/leaf.key;"
        path = self.write("nginx.conf", f"""
daemon off; worker_processes 1; pid {self.folder}/pid; error_log {self.folder}/error.log error;
worker_rlimit_nofile {self.programs['descriptors']};
events {{ worker_connections {self.programs['descriptors'] - 100}; }}
http {{
    access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; http2_max_requests 1000000000;
    http2_max_concurrent_streams 1024; sendfile on; tcp_nopush on; default_type text/plain;
    client_body_temp_path {self.folder}; proxy_temp_path {self.folder}; fastcgi_temp_path {self.folder};
    uwsgi_temp_path {self.folder}; scgi_temp_path {self.folder};
    server {{
        listen 127.0.0.1:{ORIGIN['plain']} backlog=16384;
        listen 127.0.0.1:{ORIGIN['tls1']} ssl;
        listen 127.0.0.1:{ORIGIN['tls2']} ssl http2;
        {tls}
        root {files};
        # A wrong or missing token is no success: whoever does not inject is not measured.
        if ($http_authorization != "{TOKEN}") {{ return 403; }}
        location = /small {{ return 200 "{'y' * 200}"; }}
        # What the rows with many routes ask for.
        location /service {{ return 200 "{'y' * 200}"; }}
    }}
    # An issuer whose grants cost next to nothing: one token for everybody.
    server {{
        listen 127.0.0.1:{ISSUER} backlog=16384;
        location = /token {{
            default_type application/json;
            return 200 '{{"access_token":"{TOKEN.removeprefix("Bearer ")}","token_type":"Bearer","expires_in":86400}}';
        }}
    }}
}}
""")
        return ["nginx", "-p", self.folder, "-c", path]
