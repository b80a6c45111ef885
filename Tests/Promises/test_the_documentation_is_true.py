"""Promise: what the documentation shows works. Each command of it is run or checked, each file is accepted by what reads it.

How a page says what is to be done with it stands in CONTRIBUTING.md#documentation."""

import concurrent.futures
import json
import os
import pathlib
import re
import tempfile

import pytest
import yaml

import documentation
import documented_commands
import documented_files
import documented_runs
from documentation import ROOT, Page
from harness import executable

PAGES = documentation.pages()
# Pages whose blocks promises of commands compare.
TOLD = {
    path
    for file in (ROOT / "Tests/Promises").glob("test_*.py")
    for path in re.findall(r'documentation\.told\("([\w/.-]+)"', file.read_text())
}
METRIC = re.compile(r"^cardea_[a-z0-9_]+$")


@pytest.fixture(scope="session")
def binary():
    return os.path.realpath(executable("CARDEA_BIN", ".build/debug/cardea", "swift build --product cardea"))


@pytest.fixture(scope="session")
def lab_binary():
    return os.path.realpath(executable("CARDEA_LAB_BIN", ".build/debug/cardea-lab", "swift build --product cardea-lab"))


@pytest.fixture
def folder():
    """An empty folder with a short path: that of a unix socket below it may have 97 bytes."""
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)


# --- What is wrong with a page: pairs of a place and words --------------------------------------------------------------


def category(page, block):
    """The name of the check that a block gets; None where it gets none."""
    if block.language == "sh" and block.kind in ("", "fails"):
        return page.kind
    if block.language == "yaml" and block.kind == "fragment":
        return "part"
    if block.language == "yaml" and block.kind == "" and block.names:
        return "configuration"
    if block.language == "text" and block.kind == "":
        behind = page.blocks[block.follows] if block.follows is not None else None
        return "shown" if page.kind == "run" and behind and behind.language == "sh" else None
    if (block.language, block.kind) == ("text", "told"):
        return "told" if page.path in TOLD else None
    if (block.language, block.kind) == ("text", "drawing"):
        return "drawn" if re.search(r"[─│═<>]|--|\(\d+\)", block.text) else None
    return "other" if (block.language, block.kind) in documented_files.OTHERS else None


def blocks(page, kind):
    return [block for block in page.blocks if category(page, block) == kind]


def strays(page):
    return [(block, f"'{block.language} {block.kind}' is run by nothing and checked by nothing") for block in blocks(page, None)]


def false_commands(page, binary):
    shells = [block for block in page.blocks if block.language == "sh"]
    return [(block, fault) for block in shells for fault in documented_commands.of_shell(block.text, binary)] + [
        (span, fault) for span in page.spans for fault in documented_commands.of_span(span.text, binary)
    ]


def false_names(page, binary):
    golden = (ROOT / "Tests/Golden/metrics.txt").read_text()
    metrics = {line.split(" ", 1)[0] for line in golden.split("\n")}
    # A histogram has three series.
    metrics |= {name + part for name in metrics for part in ("_bucket", "_sum", "_count")}
    unknown = [span for span in page.spans if METRIC.match(span.text) and span.text not in metrics]
    keys = [span for span in page.spans if re.match(r"^[a-z_0-9]+(\.[a-z_0-9]+)+$", span.text)]
    return [(span, f"there is no metric '{span.text}'") for span in unknown] + [
        (span, fault) for span in keys for fault in documented_files.of_key(span.text, binary)
    ]


def false_file(page, block, binary, folder):
    reads = {"configuration": documented_files.accepted, "part": documented_files.of_part}
    judge = reads.get(category(page, block)) or documented_files.OTHERS[block.language, block.kind]
    try:
        faults = judge(block.text, folder, binary)
    except (yaml.YAMLError, json.JSONDecodeError) as error:
        faults = [f"cannot be read: {error}"]
    return [(block, fault) for fault in faults]


def told(faults):
    return "\n".join(f"{place}: {fault}" for place, fault in faults)


def found(what):
    """The faults of all pages, as one text."""
    return told(fault for page in PAGES.values() for fault in what(page))


# --- The promise -------------------------------------------------------------------------------------------------------------


def test_every_block_is_run_or_checked():
    """A block in no category is one that nobody would miss when it becomes false."""
    assert not (faults := found(strays)), faults


def test_every_command_and_path_exists(binary):
    assert not (faults := found(lambda page: false_commands(page, binary))), faults


def test_every_key_and_metric_exists(binary):
    assert not (faults := found(lambda page: false_names(page, binary))), faults


FILES = ("configuration", "part", "other")


@pytest.mark.parametrize("path", [path for path, page in PAGES.items() if any(blocks(page, kind) for kind in FILES)])
def test_every_file_is_accepted(path, binary, folder):
    """A whole configuration without a warning, since readers copy it; a part where it belongs; a file of others by its own program."""
    page, faults = PAGES[path], []
    for index, block in enumerate(page.blocks):
        if category(page, block) in FILES:
            own = folder / str(index)
            own.mkdir()
            faults += false_file(page, block, binary, own)
    assert not faults, told(faults)


def test_every_promise_is_in_the_list():
    """Pages of promises, apart from those that try the lab, are what docs/explanation/what-is-promised.md lists."""
    text = (ROOT / "docs/explanation/what-is-promised.md").read_text()
    listed = set(re.findall(r"Tests/Promises/(test_\w+\.py)", text))
    there = {path.name for path in (ROOT / "Tests/Promises").glob("test_*.py") if not path.name.startswith("test_lab_")}
    assert not there ^ listed, f"a line is missing, or leads nowhere: {sorted(there ^ listed)}"


RUN = """<!-- run -->
# A page

```yaml
# cardea.yaml
identities:
  hr: {basic: {username: a, password: file:secret}}
routes:
  - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9101", use: hr}
admin: {socket: here.sock}
```

```sh
echo word >secret
chmod 600 secret
word=seen
cardea run >log 2>&1 &
```

```sh
curl -s http://127.0.0.1:9901/livez
cardea-lab --listen 127.0.0.1:9101 >lab &
echo "$word"
```

```text
o…
…
seen
```

```sh fails
cardea check nothing.yaml
```
"""


def test_pages_run_from_top_to_bottom(binary, lab_binary, tmp_path):
    """Every page that says so, and one that shows what pages may do; three at once, since each has a network of its own."""
    programs = {"cardea": binary, "cardea-lab": lab_binary}
    pages = [Page("a page", RUN)] + [page for page in PAGES.values() if page.kind == "run"]
    folders = [tmp_path / str(index) for index in range(len(pages))]
    for folder in folders:
        folder.mkdir()
    with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
        runs = list(pool.map(lambda page, own: documented_runs.faults(page, own, programs), pages, folders))
    faults = [fault for some in runs for fault in some]
    assert not faults, told(faults)


# --- That it can fail ----------------------------------------------------------------------------------------------------------

FALSE = {
    "```\nplain\n```": "run by nothing",
    "```text\nbananas\n```": "run by nothing",
    "<!-- check -->\n```sh\ncardea check\n```\n\n```text\nbananas\n```": "run by nothing",
    "<!-- run -->\n```sh\ncardea check\n```\nprose\n```text\nbananas\n```": "run by nothing",
    "```text told\nbananas\n```": "run by nothing",
    "```text drawing\nbananas\n```": "run by nothing",
    "```text logrotate\n/var/lib/x {\n    weakly\n}\n```": "weakly",
    "```text logrotate\n/var/lib/x {\n    weekly\n```": "no end",
    "```text unit\n[Service]\nLoadCredentail=x:/y\n```": "LoadCredentail",
    "```text nft\nadd rule ip nat output redirekt to :1\n```": "redirekt",
    "```text synopsis\ncardea tokkens [--json]\n```": "no subcommand 'tokkens'",
    "```sh\ncardea check\n```": "run by nothing",
    "```yaml\na: b\n```": "run by nothing",
    "<!-- check -->\n```sh\ncardea chekc\n```": "no subcommand 'chekc'",
    "<!-- check -->\n```sh\ncd x && cardea check --liv  # a remark\n```": "no option '--liv'",
    "<!-- check -->\n```sh\nx=$(cardea store verify extra)\n```": "takes 0 arguments",
    "<!-- check -->\n```sh\ncardea run -- make nothing\n```": "no target 'nothing'",
    "<!-- check -->\n```sh\nsudo -u cardea cardea reset\n```": "wants identity",
    "<!-- check -->\n```sh\nmake demo SYTEM=recipe\n```": "no variable 'SYTEM'",
    "<!-- check -->\n```sh\ncp deploy/nothing.service /etc\n```": "'deploy/nothing.service' is not",
    "<!-- check -->\n```sh\nkubectl apply -k deploy/nothing\n```": "'deploy/nothing' is not",
    "<!-- check -->\n```sh\nfrobnicate\n```": "'frobnicate' is not known",
    "Say `cardea tokens purge --rout x`.": "no option '--rout'",
    "Say `make nothing`.": "no target",
    "See `config/nothing.yaml`.": "is not in the repository",
    "Set `limits.nothing`.": "no key 'nothing' under 'limits'",
    "Count `cardea_nothing_total`.": "no metric",
    "```yaml\n# cardea.yaml\nroutes: [{listen: 127.0.0.1:8080, to: https://x.example.com, use: nobody}]\n```": "nobody",
    "```yaml\n# cardea.yaml\nidentities: {a: {basic: {username: a, password: env:A}}}\n"
    "routes: [{listen: 127.0.0.1:8080, to: https://x.example.com, use: a}]\n```": "warning",
    "```yaml fragment\nroutes:\n  - lisen: 127.0.0.1:8080\n```": "unknown key 'lisen'",
    "```yaml fragment\ntimeouts: {response: 5 parsecs}\n```": "must be a duration",
    "```yaml fragment\n- listen: 127.0.0.1:8080\n  ues: hr\n```": "all of the keys listen, ues",
    "```yaml kubernetes\nkind: Pod\n```": "no apiVersion",
    "```nginx\nserver { lisen 80; }\n```": "lisen",
    "```haproxy\nfrontend x\n  bind 127.0.0.1:1\n  nothing\n```": "nothing",
    "```json\n{\n```": "cannot be read",
    "```swift\nlet thisStandsNowhere = 1\n```": "no file of Swift",
    "```http\nHTTP/1.1 OK\n```": "no line of a message",
}


@pytest.mark.parametrize("text, words", FALSE.items(), ids=[str(index) for index in range(len(FALSE))])
def test_what_is_false_is_found(text, words, binary, folder):
    page = Page("a page", f"{text}\n")
    faults = strays(page) + false_commands(page, binary) + false_names(page, binary)
    for block in page.blocks:
        if category(page, block) in FILES:
            faults += false_file(page, block, binary, folder)
    assert words in told(faults)


@pytest.mark.parametrize(
    "true, false, words",
    [
        ("seen\n```\n\n```sh fails", "something else\n```\n\n```sh fails", "something else"),
        ("curl -s http://127.0.0.1:9901/livez", "curl -s http://127.0.0.1:9902/livez", "ended with 7"),
        ("check nothing.yaml", "version", "ended with 99"),
        ("chmod 600 secret", "false", "ended with 1"),
    ],
    ids=["another output", "nobody answers", "no failure", "a failure"],
)
def test_a_page_that_does_not_run_is_found(true, false, words, binary, lab_binary, tmp_path):
    assert true in RUN
    page = Page("a page", RUN.replace(true, false))
    assert words in told(documented_runs.faults(page, tmp_path, {"cardea": binary, "cardea-lab": lab_binary}))
