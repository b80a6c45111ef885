"""Builds the site: copies the pages and the files that they link to, tells mkdocs how they hang together, and looks at what it made.

mkdocs loads this file as its hook. As a program: website.py copy FOLDER | website.py check FOLDER"""

import html.parser
import itertools
import pathlib
import re
import shutil
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from links import ROOT, links, pages, slug  # noqa: E402

TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
# The kinds of pages, in the order in which a reader needs them; the last is for those who change the program.
KINDS = (("Start", "start"), ("How-to", "how-to"), ("Reference", "reference"), ("Explanation", "explanation"), ("Security", "security"), ("How it is made", "design"))
# Letters of a name that fits a column, and columns of a table that does not fit a telephone.
SHORT_NAME, WIDE_TABLE = 16, 4
LOOKS = ("site.css", "mark.svg")
# Where the site has a picture, and its words for who does not see it; see pictures.py.
PICTURE = re.compile(r"^<!-- picture (\w+): (.+?) -->$", re.M)

def copy(target):
    """Every page that the site has, and every file of the repository that one of them links to, each at its own path."""
    shutil.rmtree(target, ignore_errors=True)
    sources = {ROOT / name for name in TOP} | set(pages(ROOT / "docs"))
    for page in list(sources):
        for _, _, link in links(page.read_text()):
            there = (page.parent / link.partition("#")[0]).resolve()
            if ":" not in link and there.is_file() and there.is_relative_to(ROOT):
                sources.add(there)
    for path in sources:
        place = target / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            # The second word behind a fence is for our tests; mkdocs takes it for text.
            place.write_text(re.sub(r"^( *(?:```+|~~~+)\w+) .*$", r"\1", path.read_text(), flags=re.M))
        else:
            shutil.copy(path, place)
    for name in LOOKS:
        shutil.copy(pathlib.Path(__file__).parent / name, target / name)


# --- The hook -----------------------------------------------------------------------------------------------------------


def title(path):
    return re.search(r"^# +(.*)$", path.read_text(), re.M)[1].replace("`", "")


def entries(root, folder):
    """A folder's index and, in the order of its links, the pages in it."""
    index = root / "docs" / folder / "README.md"
    seen = [index]
    for _, _, link in links(index.read_text()):
        there = (index.parent / link.partition("#")[0]).resolve()
        if there.suffix == ".md" and there.is_relative_to(index.parent) and there not in seen:
            seen.append(there)
    return [{"Overview" if path == index else title(path): str(path.relative_to(root))} for path in seen]


def on_config(config):
    root = pathlib.Path(config["docs_dir"]).resolve()
    nav = [{"Cardea": "README.md"}, {"All pages": "docs/README.md"}]
    nav += [{name: entries(root, folder)} for name, folder in KINDS if (root / "docs" / folder / "README.md").exists()]
    nav += [{"Words": "docs/glossary.md"}, {"Contributing": "CONTRIBUTING.md"}, {"Reporting a hole": "SECURITY.md"}, {"Changes": "CHANGELOG.md"}]
    config["nav"] = nav
    # Headings have the names that a forge gives them.
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    return config


def on_page_markdown(markdown, page, config, **_):
    """Puts pictures where a page has a mark for one, which on a forge is nothing; by day one, by night another."""
    if page.parent is None:
        # A page of no folder has no neighbours: its room is the text's.
        page.meta["hide"] = ["navigation"]
    root = pathlib.Path(config["docs_dir"])
    way = "../" * page.file.src_path.count("/")

    def picture(mark):
        name, words = mark[1], mark[2].strip()
        shown = [
            f"![{words}]({way}pictures/{name}-{scheme}.png#only-{scheme})"
            for scheme in ("light", "dark")
            if (root / f"pictures/{name}-{scheme}.png").exists()
        ]
        return "\n".join(shown)

    return PICTURE.sub(picture, markdown)


def on_page_content(content, **_):
    """Lets long names in tables break at their marks, and wide tables become lists where there is no room (site.css)."""

    def name(code):
        return re.sub(r"(?<=[\w}])([_./=:])(?=\w)", r"\1<wbr>", code[0]) if len(code[0]) > SHORT_NAME else code[0]

    def table(whole):
        text = re.sub(r"<td.*?</td>", lambda cell: re.sub(r"(?<=<code>)[^<]+", name, cell[0]), whole[0], flags=re.S)
        heads = re.findall(r"<th[^>]*>(.*?)</th>", text, re.S)
        if len(heads) < WIDE_TABLE:
            return text
        columns = itertools.cycle(re.sub(r"<[^>]+>", "", head) for head in heads)
        return re.sub(r"<td", lambda _: f'<td data-name="{next(columns)}"', text.replace("<table>", "<table data-wide>", 1))

    return re.sub(r"<table>.*?</table>", table, content, flags=re.S)


# --- What was made ------------------------------------------------------------------------------------------------------------


class Reader(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.places, self.targets, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.places |= {named[name] for name in ("id", "name") if named.get(name)}
        if tag == "a" and named.get("href"):
            self.targets.append(named["href"])
        for name in ("src", "href") if tag != "a" else ():
            if named.get(name):
                self.loads.append(named[name])


def faults(site):
    """Links of the site that lead nowhere, and what a page would load from elsewhere."""
    read = {path: Reader(path.read_text()) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    for path, reader in read.items():
        for target in reader.targets + reader.loads:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in reader.loads and not target.startswith("data:"):
                    yield f"{path.relative_to(site)} loads {target}"
                continue
            there = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            place = urllib.parse.unquote(parts.fragment)
            if not there.exists():
                yield f"{path.relative_to(site)}: {target} is not there"
            elif place and there in read and place not in read[there].places:
                yield f"{path.relative_to(site)}: {target} names a place that is not there"
    shown = {pathlib.PurePosixPath(urllib.parse.urlsplit(load).path).name for reader in read.values() for load in reader.loads}
    for picture in sorted(site.glob("pictures/*.png")):
        if picture.name not in shown:
            yield f"pictures/{picture.name} stands on no page"


if __name__ == "__main__":
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if what == "copy":
        copy(folder)
    else:
        told = list(faults(folder))
        print("\n".join(told), end="\n" if told else "")
        sys.exit(bool(told))
