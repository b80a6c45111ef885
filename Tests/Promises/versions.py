"""Names and versions of the servers and clients that the promises are kept against, as each tells its own."""

import importlib.metadata
import platform
import re
import shutil
import subprocess

# The words that make each program tell its version.
PROGRAMS = {
    "openssl": "version", "curl": "--version", "nginx": "-v", "haproxy": "-v", "apache2": "-v", "lighttpd": "-v", "redis-server": "--version", "tinyproxy": "-v",
    "glewlwyd": "--version", "docker-registry": "--version", "nghttpd": "--version", "prometheus": "--version", "node": "--version", "java": "-version",
    "sqlite3": "--version", "valgrind": "--version", "strace": "--version", "nft": "--version", "ip": "-V",
}
# The Python packages that serve or call; what they stand on is pinned with them in requirements.txt.
PACKAGES = ["authlib", "boto3", "botocore", "cryptography", "flask", "grpcio", "h11", "h2", "httpbin", "httptools", "httpx", "hypercorn", "moto", "pycurl", "pytest",
            "requests", "uvicorn", "websockets", "wsproto"]


def told(program, word):
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if not found:
        return "missing"
    done = subprocess.run([found, word], capture_output=True, text=True, timeout=30)
    number = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return number[0] if number else "of an unknown version"


def lines():
    programs = ", ".join(f"{program} {told(program, word)}" for program, word in PROGRAMS.items())
    packages = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES)
    return [f"programs: {programs}", f"python {platform.python_version()}: {packages}"]
