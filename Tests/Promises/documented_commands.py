"""Judges commands of the documentation without running them: does the program, its subcommand, its option, its target, its file exist?"""

import functools
import json
import re
import subprocess

from documentation import ROOT, Shell

# Programs of others that the documentation may name, each with what it is there for.
KNOWN = {
    "apt": "installs packages of Debian",
    "apt-get": "installs packages of Debian",
    "awk": "picks a column",
    "bash": "runs a script of the repository",
    "cat": "shows or writes a file",
    "cd": "shell",
    "chmod": "rights of a file",
    "chown": "owner of a file",
    "cp": "copies a file",
    "crun": "runs a container without a registry",
    "curl": "the caller",
    "dig": "asks a name server",
    "docker": "builds and runs the image",
    "dpkg": "installs a package",
    "echo": "shell",
    "env": "sets a variable for one command",
    "exit": "shell",
    "export": "shell",
    "false": "shell",
    "getent": "looks a user up",
    "git": "fetches the sources",
    "grep": "picks lines",
    "gzip": "packs a file",
    "haproxy": "the peer that its how-to comes from",
    "head": "cuts an output",
    "id": "says who one is",
    "install": "puts a file to its place with its rights",
    "ip": "addresses and namespaces",
    "iptables": "redirects connections",
    "jobs": "shell",
    "journalctl": "shows the log",
    "jq": "picks a member of JSON",
    "kill": "sends a signal",
    "kubectl": "applies and looks at manifests",
    "kustomize": "renders manifests",
    "ls": "shows a folder",
    "man": "shows a manual page",
    "mkdir": "makes a folder",
    "mktemp": "makes a folder",
    "mmdebstrap": "makes a root file system",
    "mv": "renames a file",
    "nft": "redirects connections",
    "nginx": "the peer that its how-to comes from",
    "openssl": "makes keys and certificates",
    "podman": "runs the image",
    "printf": "writes a secret without an end of line",
    "promtool": "checks alert rules",
    "redis-cli": "looks at the shared server",
    "redis-server": "the shared server",
    "rm": "removes a file",
    "runuser": "runs a command as the gateway's user",
    "sed": "changes a line",
    "set": "shell",
    "sleep": "waits",
    "sort": "puts lines in order",
    "ss": "shows who listens",
    "stat": "shows rights of a file",
    "sudo": "as root",
    "systemctl": "starts, reloads and signals the unit",
    "systemd-analyze": "judges the unit",
    "systemd-creds": "seals a secret for the unit",
    "systemd-sysusers": "makes the gateway's user",
    "systemd-tmpfiles": "makes the gateway's folders",
    "tail": "shows the end of a file",
    "tar": "unpacks",
    "tee": "writes as root",
    "test": "shell",
    "touch": "makes a file",
    "trap": "shell",
    "true": "shell",
    "umask": "shell: rights of new files",
    "unset": "shell",
    "update-ca-certificates": "trusts an authority",
    "wait": "shell",
    "watch": "repeats a command",
    "wc": "counts lines",
    "xdg-open": "opens a page",
    "zcat": "reads a packed file",
}
# Their first plain word, or what stands behind `--`, is a command again.
BEFORE = {"sudo", "env", "exec", "nohup", "time", "watch", "command", "xargs"}
DASHES = {"kubectl", "docker", "podman", "runuser", "systemd-run", "crun", "cardea"}
# Options of those in BEFORE that take the next word.
TAKING = {"-u", "-g", "-n", "--interval"}
TREE = re.compile(r"^(?:\./)?((?:Sources|Tests|config|deploy|docs|\.ci)/[\w./*-]*)")
# Words that stand for a value of the reader's.
STANDS_FOR = re.compile(r"…|^[A-Z][A-Z_-]*$|^<.*>$|^\[.*\]$|\$")


class Command:
    """A command of `cardea` and its subcommands, as the binary describes itself."""

    def __init__(self, described):
        self.arguments = described.get("arguments", [])
        self.subcommands = {one["commandName"]: Command(one) for one in described.get("subcommands", [])}

    def faults(self, words, whole, path="cardea"):
        """Faults of the words behind the command's name. `whole`: positional arguments may not be missing."""
        if self.subcommands:
            if words and words[0] in self.subcommands:
                return self.subcommands[words[0]].faults(words[1:], whole, f"{path} {words[0]}")
            if path == "cardea tokens":
                return self.subcommands["list"].faults(words, whole, f"{path} list")
            plain = [word for word in words if not word.startswith("-")]
            if plain and not STANDS_FOR.search(plain[0]):
                return [f"'{path}' has no subcommand '{plain[0]}'"]
        found, positional, words = [], 0, list(words)
        named = {name["name"]: one for one in self.arguments for name in one.get("names", [])}
        while words:
            word = words.pop(0)
            if word == "--":
                positional += len(words)
                break
            option = re.match(r"^--?([a-zA-Z][\w-]*)(=.*)?$", word)
            if not option:
                positional += 1
            elif option[1] not in named:
                found.append(f"'{path}' has no option '{word}'")
            elif named[option[1]]["kind"] == "option" and not option[2]:
                if words:
                    words.pop(0)
                elif whole:
                    found.append(f"'{path}': '{word}' wants a value")
        places = [one for one in self.arguments if one["kind"] == "positional"]
        if positional > len(places) and not any(one["isRepeating"] for one in places):
            found.append(f"'{path}' takes {len(places)} arguments, not {positional}")
        if whole and positional < sum(not one["isOptional"] for one in places):
            found.append(f"'{path}' wants {' '.join(one['valueName'] for one in places)}")
        return found


@functools.cache
def cardea(binary):
    told = subprocess.run([binary, "--experimental-dump-help"], capture_output=True, text=True, check=True).stdout
    return Command(json.loads(told)["command"])


@functools.cache
def makefile():
    """The Makefile's targets, and the variables that it reads."""
    text = (ROOT / "Makefile").read_text()
    targets = {name for line in re.findall(r"^([a-z][\w -]*):(?!=)", text, re.M) for name in line.split()}
    return targets, set(re.findall(r"\$\(([A-Z_]+)\)", text) + re.findall(r"^([A-Z_]+) [?:]?=", text, re.M))


def of_make(words):
    targets, variables = makefile()
    found = []
    for word in words:
        name, equals, _ = word.partition("=")
        if word.startswith("-") or STANDS_FOR.search(word) and not equals:
            continue
        if equals and name not in variables:
            found.append(f"the Makefile reads no variable '{name}'")
        elif not equals and name not in targets:
            found.append(f"make has no target '{name}'")
    return found


def of_tree(word):
    """Whether a path from the top of the repository leads to something."""
    match = TREE.match(word)
    if not match or "…" in word:
        return []
    path = match[1].rstrip(".")
    there = list(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()
    return [] if there else [f"'{path}' is not in the repository"]


def faults(words, binary, whole=True):
    """Faults of one command."""
    program, rest = words[0], words[1:]
    # kubectl names a Deployment like a folder of ours; files stand behind -f and -k.
    paths = [word for at, word in enumerate(words) if program != "kubectl" or words[at - 1] in ("-f", "-k")]
    found = [fault for word in paths for fault in of_tree(word)]
    if program in DASHES and "--" in rest:
        inner = rest[rest.index("--") + 1 :]
        if inner and not STANDS_FOR.search(inner[0]):
            found += faults(inner, binary, whole)
    if program == "cardea":
        return found + cardea(binary).faults(rest, whole)
    if program == "make":
        return found + of_make(rest)
    if program in BEFORE:
        while rest and (rest[0].startswith("-") or "=" in rest[0]):
            rest = rest[2:] if rest[0] in TAKING else rest[1:]
        return found + (faults(rest, binary, whole) if rest else [])
    if program == "swift":
        if rest[:1] not in (["build"], ["test"], ["package"], ["format"]):
            found.append(f"'swift {' '.join(rest[:1])}' is not known")
        return found
    ours = TREE.match(program) or program.startswith((".build/", "./", "bin/", "$", "…"))
    if not ours and program not in KNOWN and program not in ("cardea-lab", "swift"):
        found.append(f"'{program}' is not known; if it is what readers should run, it goes to KNOWN with its reason")
    return found


def of_shell(text, binary):
    return [fault for command in Shell(text).commands for fault in faults(command, binary)]


def of_span(text, binary):
    """A command or a path between backquotes in prose, which may leave arguments out."""
    words = text.split()
    if words and words[0] in ("cardea", "make") and not re.search(r"[={}:]$", words[0]):
        return [fault for command in Shell(text).commands for fault in faults(command, binary, whole=False)]
    return of_tree(text)
