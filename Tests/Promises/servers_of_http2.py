"""Servers of HTTP/2 as Debian has them: nghttpd, and nginx with TLS that takes uploads."""

import pathlib
import subprocess

from harness import eventually, executable, free_port
from peers import Authority
from wire import call


class Nghttpd:
    """Cleartext by prior knowledge; files of `root`."""

    def __init__(self, folder, *arguments):
        self.root = pathlib.Path(folder) / "nghttpd"
        self.root.mkdir()
        binary = executable("CARDEA_NGHTTPD", "nghttpd", "apt-get install nghttp2-server")
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.log = self.root.parent / "nghttpd.log"
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                ["stdbuf", "-oL", binary, "-v", "--no-tls", "-a", "127.0.0.1", "-d", str(self.root), *arguments, str(port)],
                stdout=output,
                stderr=output,
            )
        eventually(lambda: "listen" in self.text(), what="nghttpd listening")

    def text(self):
        return self.log.read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)


class Files:
    """nginx with TLS over both versions, on two ports: files of `root` down, and by PUT up."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "files"
        self.root = self.folder / "root"
        self.root.mkdir(parents=True)
        self.folder.chmod(0o777)
        self.root.chmod(0o777)
        self.authority = Authority(self.folder / "pki")
        certificate, key = self.authority.issue("server", "localhost")
        self.ports = {1: free_port(), 2: free_port()}
        self.plain = {1: free_port(), 2: free_port()}
        servers = ""
        for version, port in self.ports.items():
            suffix = " http2" if version == 2 else ""
            servers += f"""
  server {{
    listen 127.0.0.1:{port} ssl{suffix};
    listen 127.0.0.1:{self.plain[version]}{suffix};
    ssl_certificate {certificate}; ssl_certificate_key {key};
    root {self.root}; client_max_body_size 2g; sendfile on;
    dav_methods PUT;
    add_header X-Protocol $server_protocol;
  }}"""
        temporary = "\n".join(
            f"  {kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (self.folder / "nginx.conf").write_text(
            f"""daemon off; master_process off; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log warn;
user root; events {{ worker_connections 512; }}
http {{
{temporary}
  access_log off; keepalive_requests 100000;{servers}
}}
"""
        )
        binary = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
        common = ["-p", str(self.folder), "-e", str(self.folder / "error.log"), "-c", str(self.folder / "nginx.conf")]
        self.process = subprocess.Popen([binary, *common], stderr=subprocess.DEVNULL)
        eventually(self.is_listening, what="nginx listening")

    def is_listening(self):
        assert self.process.poll() is None, (self.folder / "error.log").read_text()
        try:
            return call(f"127.0.0.1:{self.plain[1]}").status > 0
        except OSError:
            return False

    def origin(self, version):
        return f"https://localhost:{self.ports[version]}"

    def route(self, version):
        return {"to": self.origin(version), "tls": {"ca": str(self.authority.file)}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
