"""Real servers of Debian that a test puts behind the gateway, and certificates for both ends of TLS."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from harness import eventually, executable, free_port


class Authority:
    """A certificate authority in a folder of its own. Names are file names: `issue("server")` makes server.pem and server.key."""

    def __init__(self, folder, name="ca"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.openssl = executable("CARDEA_OPENSSL", "openssl", "apt-get install openssl")
        self.run(
            *("req", "-x509", *self.key(), "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "90"),
            *("-subj", f"/CN=Authority {name}", "-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )
        self.file = self.folder / f"{name}.pem"

    @staticmethod
    def key():
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def run(self, *arguments):
        done = subprocess.run([self.openssl, *arguments], capture_output=True, cwd=self.folder, text=True)
        assert done.returncode == 0, done.stderr

    def issue(self, name, common=None, alternative="DNS:localhost,IP:127.0.0.1", days=60):
        """A leaf and its key: (certificate, key) as paths."""
        self.run("req", *self.key(), "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={common or name}")
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\nbasicConstraints=CA:FALSE\n")
        self.run(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key"),
            *("-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem"),
        )
        for file in (f"{name}.pem", f"{name}.key"):
            os.chmod(self.folder / file, 0o600)
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def encrypt(self, name, password):
        """The key of a leaf, encrypted: a path."""
        target = self.folder / f"{name}.encrypted.key"
        self.run("pkcs8", "-topk8", "-in", f"{name}.key", "-passout", f"pass:{password}", "-out", str(target))
        os.chmod(target, 0o600)
        return target

    def archive(self, name, password):
        """A leaf with its key as PKCS#12: a path."""
        target = self.folder / f"{name}.p12"
        self.run(
            *("pkcs12", "-export", "-in", f"{name}.pem", "-inkey", f"{name}.key", "-out", str(target)),
            *("-passout", f"pass:{password}"),
        )
        os.chmod(target, 0o600)
        return target


class Program:
    """A server process that ends with the test."""

    def __init__(self, arguments, folder, listening, environment=None):
        self.log = open(pathlib.Path(folder) / "program.log", "ab")
        self.arguments, self.folder, self.environment = arguments, folder, environment
        self.listening = listening
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.arguments, stdout=self.log, stderr=self.log, cwd=self.folder, env=self.environment
        )
        eventually(self.is_listening, what=f"{self.arguments[0]} listening")

    def is_listening(self):
        assert self.process.poll() is None, (pathlib.Path(self.folder) / "program.log").read_text()
        try:
            for address in self.listening:
                socket.create_connection(address, timeout=2).close()
            return True
        except OSError:
            return False

    def die(self):
        """At once; established connections are reset or ended by the kernel."""
        self.process.kill()
        self.process.wait()

    def freeze(self):
        """Accepts connections by the kernel's backlog and says nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            self.thaw()
            self.process.kill()
            self.process.wait()
        self.log.close()


def nginx(folder, servers, listening):
    """nginx with these `server` blocks."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"  {kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log info;\n"
        f"events {{ worker_connections 512; }}\nhttp {{\n{temporary}\n  access_log {folder}/access.log;\n{servers}\n}}\n"
    )
    binary = executable("CARDEA_NGINX", "nginx", "apt-get install nginx")
    return Program(
        [binary, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")],
        folder,
        listening,
    )


def haproxy(folder, sections, listening):
    """HAProxy with these sections behind a `defaults` of short timeouts."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "haproxy.cfg").write_text(
        "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n"
        f"  timeout server 30s\n{sections}\n"
    )
    binary = executable("CARDEA_HAPROXY", "haproxy", "apt-get install haproxy")
    return Program([binary, "-db", "-f", str(folder / "haproxy.cfg")], folder, listening)


def free_ports(count):
    return [free_port() for _ in range(count)]


def tinyproxy(folder, port, user=None, password=None):
    """An HTTP proxy that writes down where it connects: `folder`/proxy.log."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"Port {port}", "Listen 127.0.0.1", "Allow 127.0.0.1", "Timeout 60", "LogLevel Connect"]
    lines += [f"LogFile \"{folder / 'proxy.log'}\"", "MaxClients 50"]
    if user:
        lines.append(f"BasicAuth {user} {password}")
    (folder / "tinyproxy.conf").write_text("\n".join(lines) + "\n")
    binary = executable("CARDEA_TINYPROXY", "tinyproxy", "apt-get install tinyproxy-bin")
    return Program([binary, "-d", "-c", str(folder / "tinyproxy.conf")], folder, [("127.0.0.1", port)])


class Squid(Program):
    """Debian's squid, which asks for HTTP Digest (MD5 is all it knows). Its own user has to reach the folder, which the tests' own are not
    for. `settings`: more lines of its configuration. `asks`: lines that ask for something else. `environment`: of its helpers."""

    REALM = "the proxy"

    def __init__(self, port, user="", password="", settings=(), asks=None, environment=None):
        folder = self.place = pathlib.Path(tempfile.mkdtemp(prefix="squid"))
        folder.chmod(0o777)
        secret = hashlib.md5(f"{user}:{self.REALM}:{password}".encode()).hexdigest()
        (folder / "users").write_text(f"{user}:{self.REALM}:{secret}\n")
        digest = [
            f"auth_param digest program /usr/lib/squid/digest_file_auth -c {folder}/users",
            "auth_param digest children 2",
            f"auth_param digest realm {self.REALM}",
        ]
        (folder / "squid.conf").write_text(f"""
http_port 127.0.0.1:{port}
pid_filename {folder}/squid.pid
access_log stdio:{folder}/access.log squid
cache_log {folder}/cache.log
cache deny all
cache_mem 8 MB
pinger_enable off
netdb_filename none
coredump_dir {folder}
shutdown_lifetime 0 seconds
{chr(10).join([*(asks or digest), *settings])}
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
""")
        for name in ("users", "squid.conf"):
            (folder / name).chmod(0o644)
        binary = executable("CARDEA_SQUID", "squid", "apt-get install squid")
        super().__init__(
            [binary, "-N", "-f", str(folder / "squid.conf")], folder, [("127.0.0.1", port)], environment=environment)
        self.address = f"127.0.0.1:{port}"

    def requests(self):
        """Of each request so far: the result, with its status, the method and the target."""
        log = self.place / "access.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [(line.split()[3], line.split()[5], line.split()[6]) for line in lines if "NONE_NONE" not in line and "error:" not in line]

    def close(self):
        super().close()
        shutil.rmtree(self.place, ignore_errors=True)


class Redis(Program):
    """Debian's redis-server, in memory only unless `keeps` is set; on a TCP port, with TLS if it is given (certificate, key, authority), and on
    a unix socket. `place`: host and port, where other machines call too."""

    def __init__(self, folder, tls=None, password=None, acl=(), keeps=False, place=None):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        host, self.port = place or ("127.0.0.1", free_port())
        self.socket = folder / "redis.sock"
        lines = [f"dir {folder}", "daemonize no", f"bind {host}", f"unixsocket {self.socket}", 'save ""']
        # Redis serves beyond loopback with a password alone, unless it is told.
        lines += ["protected-mode no"] if place else []
        lines += [f"appendonly {'yes' if keeps else 'no'}", "appendfsync always"]
        if tls:
            certificate, key, authority = tls
            lines += ["port 0", f"tls-port {self.port}", f"tls-cert-file {certificate}", f"tls-key-file {key}"]
            lines += [f"tls-ca-cert-file {authority}", "tls-auth-clients no"]
        else:
            lines.append(f"port {self.port}")
        if password:
            lines.append(f"requirepass {password}")
        lines += [f"user {rule}" for rule in acl]
        (folder / "redis.conf").write_text("\n".join(lines) + "\n")
        binary = executable("CARDEA_REDIS", "redis-server", "apt-get install redis-server")
        self.cli = executable("CARDEA_REDIS_CLI", "redis-cli", "apt-get install redis-tools")
        self.url = f"{'rediss' if tls else 'redis'}://{'localhost' if tls else host}:{self.port}"
        super().__init__([binary, str(folder / "redis.conf")], folder, [(host, self.port)])

    def do(self, *words):
        """A command by the unix socket."""
        done = subprocess.run([self.cli, "-s", str(self.socket), *words], capture_output=True, timeout=20)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def everything(self):
        """What somebody sees who has the server: every key and every value, as octets."""
        seen = b""
        for key in self.do("--scan").split():
            for command in ("GET", "HGETALL"):
                seen += key + b"\n" + self.do("--raw", command, key.decode())
        return seen


@contextlib.contextmanager
def resource_server(issuer, *mode):
    """Takes the JWTs of an OpenID provider; with the mode `dpop`, only with a proof. Brings its origin."""
    program = pathlib.Path(__file__).resolve().parent / "servers" / "resource_server.py"
    words = [sys.executable, program, issuer + "/jwks", *mode]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield json.loads(process.stdout.readline())["api"]
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
