"""Promise: every link of the documentation leads somewhere, on a forge and on the site that `make docs` makes."""

import os
import pathlib
import subprocess
import sys

import pytest

from harness import ROOT, executable

sys.path.insert(0, str(ROOT / ".ci" / "docs"))

import links  # noqa: E402
import website  # noqa: E402


def test_every_link_leads_somewhere():
    assert not (faults := links.faults(ROOT)), "\n".join(faults)


def test_the_site_is_whole(tmp_path):
    """mkdocs finds nothing to warn of, links of what it made lead somewhere, and nothing is loaded from elsewhere."""
    mkdocs = executable("CARDEA_MKDOCS", "mkdocs", "apt-get install mkdocs mkdocs-material")
    # The release tests look at it with pictures.
    changes = {"PATH": f"{os.path.dirname(mkdocs)}:{os.environ['PATH']}", "CHROMIUM_BIN": "no-such-browser"}
    done = subprocess.run([ROOT / ".ci/docs/build", tmp_path], capture_output=True, text=True, env=os.environ | changes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pictures are left out: " in done.stdout
    assert not (tmp_path / "site/pictures").exists()
    made = {str(page.relative_to(ROOT)).removesuffix(".md") for page in links.pages(ROOT / "docs")}
    site = tmp_path / "site"
    there = {str(page.relative_to(site)).removesuffix(".html") for page in site.rglob("*.html")}
    assert {name.removesuffix("README") + "index" if name.endswith("README") else name for name in made} <= there


# The folder of the made-up pages; a path that stands here as a whole would be taken for a citation.
FOLDER = "docs"
PAGES = {
    f"{FOLDER}/README.md": "# All\n[a](a.md) [b](b.md)\n",
    f"{FOLDER}/a.md": "# A page\n## Twice\n## Twice\n## Here & there\n<a id=\"given\"></a>\n```sh\n# no heading\n```\n## `code`, and more\n",
    f"{FOLDER}/b.md": "# B\n",
    "deploy/unit": "",
}


@pytest.mark.parametrize(
    "link, fault",
    [
        ("[x](a.md)", None),
        ("[x](a.md#given)", None),
        ("[x](a.md#a-page)", None),
        ("[x](a.md#code-and-more)", None),
        ("[x](../deploy/unit)", None),
        ("[`deploy/unit`](../deploy/unit)", None),
        ("[x](https://example.com/nowhere)", None),
        ("`[x](nowhere.md)`", None),
        ("[x](nowhere.md)", "is not there"),
        ("![x](nowhere.svg)", "is not there"),
        ("<img src=\"nowhere.svg\">", "is not there"),
        ("[x]: nowhere.md", "is not there"),
        ("[x](A.md)", "is not there"),
        ("[x](a.md#nowhere)", "place that is not there"),
        ("[x](a.md#no-heading)", "place that is not there"),
        ("[x](a.md#twice)", "place that is not there"),
        ("[x](a.md#here--there)", "place that is not there"),
        ("[x](#nowhere)", "place that is not there"),
        ("[x](../deploy/unit#L1)", "no page"),
        ("[x](../deploy)", "folder"),
        ("[x](../../elsewhere)", "out of the repository"),
        ("[x](/docs/a.md)", "neither a path"),
        ("[`deploy/other`](../deploy/unit)", "leads elsewhere"),
        ("[other.md](a.md)", "leads elsewhere"),
    ],
)
def test_a_false_link_is_found(link, fault, tmp_path):
    for path, text in (PAGES | {f"{FOLDER}/b.md": f"# B\n{link}\n"}).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    told = links.faults(tmp_path)
    assert (len(told) == 1 and fault in told[0]) if fault else not told, told


def test_a_page_that_nothing_leads_to_is_found(tmp_path):
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "README.md").write_text("# All\n")
    (folder / "a.md").write_text("# A\n")
    assert links.faults(tmp_path) == [f"{FOLDER}/a.md: no link leads here from docs/README.md"]


@pytest.mark.parametrize(
    "text, fault",
    [
        ('<a href="b.html#x">', None),
        ('<a href="c.html">', "c.html is not there"),
        ('<a href="b.html#y">', "names a place"),
        ('<script src="https://example.com/x.js">', "loads https"),
        ('<link href="//example.com/x.css">', "loads //"),
    ],
)
def test_a_fault_of_the_site_is_found(text, fault, tmp_path):
    (tmp_path / "a.html").write_text(text)
    (tmp_path / "b.html").write_text('<p id="x">')
    told = list(website.faults(pathlib.Path(tmp_path)))
    assert (len(told) == 1 and fault in told[0]) if fault else not told, told
