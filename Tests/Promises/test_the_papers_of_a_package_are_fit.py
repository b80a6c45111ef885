"""Manual pages have no fault that a formatter finds and name every command and block; shells complete commands, options and files; the
schema says which one it is; below whatever folder all of it is installed, the paths and links in it lead to what is installed, too; a debugger
finds the symbols, and the folder of the build goes into nothing that is packaged."""

import json
import os
import re
import subprocess
import sys

import pytest

from harness import ROOT, executable

sys.path.insert(0, str(ROOT / ".ci" / "docs"))

import links  # noqa: E402

CARDEA = executable("CARDEA_BIN", ".build/debug/cardea", "make build")


def told(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def commands():
    """Every command with its subcommands, as the program tells them."""
    return json.loads(told(CARDEA, "--experimental-dump-help"))["command"]


@pytest.fixture(scope="module")
def manuals(tmp_path_factory):
    reference = executable("CARDEA_REFERENCE_BIN", ".build/debug/cardea-reference", "make build")
    folder = tmp_path_factory.mktemp("man")
    (folder / "commands.json").write_text(told(CARDEA, "--experimental-dump-help"))
    options = ["--commands", folder / "commands.json", "--examples", ROOT / "config", "--date", "2026-11-23"]
    told(reference, "manuals", *options, folder)
    return {name: folder / name for name in ("cardea.1", "cardea.yaml.5")}


@pytest.mark.parametrize("name", ["cardea.1", "cardea.yaml.5"])
def test_a_manual_has_no_fault(manuals, name):
    environment = os.environ | {"MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", manuals[name]], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", manuals[name]], capture_output=True, text=True)
    assert done.stdout == "", done.stdout


def words(manual):
    """The page as a terminal shows it, without its line breaks."""
    text = told("mandoc", "-T", "utf8", manual)
    return re.sub(r"\s+", " ", re.sub(r".\x08", "", text))


def test_the_manual_has_every_command(manuals, commands):
    page = words(manuals["cardea.1"])
    names = [one["commandName"] for one in commands["subcommands"] if one.get("shouldDisplay", True) and one["commandName"] != "help"]
    assert len(names) > 10
    for name in names:
        assert f"cardea {name}" in page, name
    assert "EXIT STATUS" in page and "78" in page


def test_the_manual_of_the_file_has_every_key(manuals):
    page = words(manuals["cardea.yaml.5"])
    for key, value in json.loads(told(CARDEA, "schema"))["properties"].items():
        assert key in page and re.sub(r"\s+", " ", value["description"])[:40] in page, key


def completed_by_bash(script, *line, folder):
    """What bash offers behind this line."""
    run = (
        'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; '
        '_cardea cardea "${!#}" "${COMP_WORDS[$# - 2]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return told("bash", "-c", run, script, *line, cwd=folder).split()


def test_shells_complete_commands_options_and_files(tmp_path):
    for shell in ("bash", "zsh", "fish"):
        (tmp_path / shell).write_text(told(CARDEA, "--generate-completion-script", shell))
    (tmp_path / "cardea.yaml").write_text("routes: []\n")
    told("zsh", "-n", tmp_path / "zsh")
    assert (tmp_path / "zsh").read_text().startswith("#compdef cardea")
    bash = tmp_path / "bash"
    assert completed_by_bash(bash, "cardea", "tok", folder=tmp_path) == ["tokens"]
    assert "--live" in completed_by_bash(bash, "cardea", "check", "--l", folder=tmp_path)
    assert "cardea.yaml" in completed_by_bash(bash, "cardea", "check", "--config", "car", folder=tmp_path)
    for line, offered in (("cardea tok", "tokens"), ("cardea check --l", "--live"), ("cardea check --config car", "cardea.yaml")):
        text = told("fish", "--no-config", "-c", f"source {tmp_path / 'fish'}; complete -C '{line}'", cwd=tmp_path)
        assert offered in [one.split("\t")[0] for one in text.splitlines()], (line, text)


def test_the_schema_says_which_one_it_is():
    schema = json.loads(told(CARDEA, "schema"))
    assert schema["$id"] == "urn:cardea:configuration"
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


# Paths that carry our name below a folder in which programs are installed.
OURS = re.compile(r"(?<![\w.-])/(?:usr|opt)/[\w./-]*\bcardea\b[\w./-]*")


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local", "/opt/gateway"])
def test_what_is_installed_names_what_is_installed(prefix, tmp_path):
    share, target = tmp_path / "share", tmp_path / "target"
    for name in ("man/cardea.1", "man/cardea.yaml.5", "completions/cardea.bash", "completions/_cardea", "completions/cardea.fish", "schema/schema.json"):
        (share / name).parent.mkdir(parents=True, exist_ok=True)
        (share / name).write_text("made up\n")
    told(ROOT / "deploy/install", CARDEA, share, env=os.environ | {"DESTDIR": str(target), "PREFIX": prefix, "SYSCONFDIR": "/etc"})
    files = [file for file in target.rglob("*") if file.is_file() and file.name != "cardea"]
    named = {(path.rstrip("."), file) for file in files for path in OURS.findall(file.read_text())}
    assert {file.name for _, file in named} >= {"cardea.yaml", "cardea.service", "alerts.yaml", "systemd.md", "monitoring.md", "webgate.yaml"}
    strays = [f"{file.relative_to(target)}: {path}" for path, file in sorted(named) if not (target / path.lstrip("/")).exists()]
    assert not strays, "\n".join(strays)
    first = (target / "etc/cardea/cardea.yaml").read_text()
    assert f"{prefix}/share/doc/cardea/examples/" in first and f"{prefix}/share/doc/cardea/docs/README.md" in first
    documents = target / prefix.lstrip("/") / "share/doc/cardea"
    assert not (faults := links.faults(documents)), "\n".join(faults)
    assert len(links.pages(documents)) > 60 and "](../../examples/recipes/" in (documents / "docs/how-to/a-system-nobody-has-heard-of.md").read_text()


def test_the_folder_of_a_build_does_not_show(tmp_path):
    """Two builds of the same source: their debug symbols differ, the programs and the ids by which a debugger finds the symbols do not."""
    cc = executable("CARDEA_CC", "cc", "apt-get install gcc")
    linked, programs, symbols = [], [], []
    for name in ("one", "a-second-one"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "p.c").write_text("int main(void) { return 0; }\n")
        told(cc, "-g", "-Wl,--build-id=sha1", "-o", "p", "p.c", cwd=folder)
        linked.append(identity(folder / "p"))
        told(ROOT / "deploy/apart", folder / "p")
        told(folder / "p")
        assert identity(folder / "p") == identity(folder / "p.debug")
        assert ".debug_info" in told("readelf", "-SW", folder / "p.debug") and ".debug_info" not in told("readelf", "-SW", folder / "p")
        symbols.append((folder / "p.debug").read_bytes())
        # As override_dh_strip of deploy/debian/rules.
        told("strip", "--remove-section=.comment", "--remove-section=.note", folder / "p")
        told("objcopy", "--remove-section=.gnu_debuglink", folder / "p")
        programs.append((folder / "p").read_bytes())
    assert linked[0] != linked[1] and symbols[0] != symbols[1], "the folder has to matter to the linker, or nothing is tried"
    assert programs[0] == programs[1] and identity(tmp_path / "one/p")


def identity(program):
    return re.search(r"Build ID: ([0-9a-f]{40})", told("readelf", "-n", program))[1]
