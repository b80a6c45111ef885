"""Runs a page of the documentation from top to bottom, as a reader would: one shell, an empty folder, a network of its own.

Run as a program: documented_runs.py PID…    waits until what a page started in the background serves."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

SELF = pathlib.Path(__file__).resolve()
# For a page that hangs; one takes a few seconds, more on a machine that is busy.
SECONDS = 300


def faults(page, folder, binaries):
    """Everything that did not go as the page says: [(block, words)]. `binaries`: the programs of this project, by the names that readers know."""
    programs, work = folder / "bin", folder / "work"
    programs.mkdir()
    work.mkdir()
    for name, path in binaries.items():
        (programs / name).symlink_to(path)
    script, outputs = ["ip link set lo up", "set -eu -o pipefail"], {}
    for index, block in enumerate(page.blocks):
        if block.language == "sh":
            (folder / f"{index}.sh").write_text(block.text)
            outputs[index] = folder / f"{index}.out"
            run = f". {folder}/{index}.sh >{outputs[index]} 2>&1 </dev/null"
            # A shell that is told to fail does not stop at its first failure; the last one counts.
            script += [f"if {run}; then exit 99; fi"] if block.kind == "fails" else [run]
            script += [f"{sys.executable} {SELF} $(jobs -p) >>{outputs[index]} 2>&1", f"touch {folder}/{index}.done"]
        elif block.names and block.kind != "fragment":
            (folder / f"{index}.file").write_text(block.text)
            script.append(f"cp {folder}/{index}.file {block.names}")
    (folder / "page.sh").write_text("\n".join(script) + "\n")
    # Whatever the page started ends with the first process of its namespace.
    apart = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        apart += ["--user", "--map-root-user"]
    environment = {name: os.environ[name] for name in ("LANG", "TERM") if name in os.environ}
    environment |= {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(work), "TMPDIR": str(work)}
    try:
        done = subprocess.run(
            [*apart, shutil.which("bash"), str(folder / "page.sh")],
            cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        ended = f"ended with {done.returncode}: {done.stdout}{done.stderr}"
    except subprocess.TimeoutExpired:
        ended = f"took more than {SECONDS} s"
    found = []
    for index, output in outputs.items():
        if not (folder / f"{index}.done").exists():
            said = output.read_text(errors="replace") if output.exists() else ""
            return found + [(page.blocks[index], f"{ended}\n{said}")]
    for block in page.blocks:
        if block.language == "text" and block.follows in outputs:
            said = outputs[block.follows].read_text(errors="replace")
            if not matches(block.text, said):
                found.append((block, f"the page shows\n{block.text}\nand this was said:\n{said}"))
    return found


def matches(shown, said):
    """`…` stands for anything in a line, and for any lines where it stands alone. Blanks at the ends do not count."""
    pattern = ""
    for line in shown.strip().split("\n"):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, said.strip() + "\n") is not None


# --- In the page's own namespace ----------------------------------------------------------------------------------------


def family(process):
    """The process and those that it started."""
    try:
        children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return [process]
    return [process] + [one for child in children for one in family(child)]


def serves(process):
    """Whether it does, or never will: a gateway answers `cardea health`, a lab has printed its addresses once it listens."""
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_text().split("\0")
        folder = os.readlink(f"/proc/{process}/cwd")
        text = pathlib.Path(f"/proc/{process}/environ").read_bytes().decode(errors="replace")
        files = [os.readlink(one) for one in pathlib.Path(f"/proc/{process}/fd").iterdir()]
    except OSError:
        return True
    name = os.path.basename(words[0])
    if name == "cardea" and words[1:2] == ["run"]:
        more = [word for at, word in enumerate(words) if word == "--config" or words[at - 1] == "--config"]
        environment = dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
        return subprocess.run([words[0], "health", *more], cwd=folder, env=environment, capture_output=True).returncode == 0
    if name in ("cardea-lab", "redis-server"):
        listening = {line.split()[9] for line in pathlib.Path("/proc/net/tcp").read_text().split("\n")[1:] if line.split()[3:4] == ["0A"]}
        return any(file.removeprefix("socket:[").rstrip("]") in listening for file in files)
    return True


def main(processes):
    end = time.monotonic() + 60
    while not all(serves(one) for process in processes for one in family(process)):
        if time.monotonic() > end:
            print("what was started in the background does not serve")
            return 1
        time.sleep(0.02)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
