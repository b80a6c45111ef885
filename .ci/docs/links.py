"""Checks every link of the repository's Markdown: the file is there, the place in it too, as a forge finds them and as the site has them.

Run as a program: links.py [FOLDER]    prints each fault with its place; ends with 1 if there is one."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *(```+|~~~+)")
LINK = re.compile(r"(?<!\\)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s+(\S+)")
ATTRIBUTE = re.compile(r"<(?:a|img|source)\b[^>]*\b(?:href|src|srcset)=\"([^\"]*)\"")
PLACE = re.compile(r"<a id=\"([^\"]+)\">")


def pages(root):
    """Every page of Markdown, but what is built and what belongs to git."""
    return sorted(path for path in root.rglob("*.md") if not {".build", ".git"} & set(path.relative_to(root).parts))


def prose(text):
    """The lines outside of fenced blocks, each with its number."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        match = FENCE.match(line)
        if fence is None and match:
            fence = match[1]
        elif fence is not None:
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        else:
            yield number, line


def slug(heading, _=None):
    """The name by which forges lead to a heading: GitHub's rule, which GitLab's and Gitea's agree with for every name that has no two
    hyphens together."""
    words = re.sub(r"<[^>]+>|[`*]", "", heading)
    words = LINK.sub(r"\1", words).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def places(text):
    """Names of places: those that the page gives, and its headings. A heading that stands twice has no name of its own."""
    given, headings = PLACE.findall(text), []
    for _, line in prose(text):
        match = re.match(r"^#{1,6} +(.*?) *#*$", line)
        if match:
            headings.append(slug(match[1]))
    return set(given) | {name for name in headings if headings.count(name) == 1 and "--" not in name}


def links(text):
    """(line, words, target) of each link and picture."""
    for number, line in prose(text):
        # Code in a line holds no links; what it says stays, since a link's words may be code.
        bare = re.sub(r"`[^`]*`", lambda match: match[0].replace("](", "] ("), line)
        for match in LINK.finditer(bare):
            yield number, match[1], match[2]
        for target in DEFINITION.findall(bare) + ATTRIBUTE.findall(bare):
            yield number, "", target


def fault(page, words, target, root):
    """The fault of one link; None where there is none."""
    if re.match(r"^(https?|mailto|urn):", target):
        return None
    if re.match(r"^\w+:|^/", target):
        return "is neither a path beside this page nor an address"
    path, _, place = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not there.is_relative_to(root):
        return "leads out of the repository"
    if path and (not there.exists() or there.name not in [one.name for one in there.parent.iterdir()]):
        return "is not there"
    if there.is_dir():
        return None if (there / "README.md").exists() else "is a folder without a README.md, which a site cannot show"
    if place and there.suffix != ".md":
        return "names a place in a file that is no page"
    if place and place not in places(there.read_text()):
        return "names a place that is not there (or a heading that stands twice, or whose name has two hyphens together)"
    named = words.strip("`")
    said = [f"/{there.relative_to(root)}"] + [f"/{there.parent.relative_to(root)}"] * (there.name == "README.md")
    is_path = re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?|[\w-]+\.(md|py|swift|yaml|sh)", named)
    if is_path and not any(one.endswith(f"/{named.strip('./')}") for one in said):
        return f"leads elsewhere than its words '{named}' say"
    return None


def unreachable(root):
    """Pages below docs that no way of links leads to from docs/README.md."""
    start = root / "docs" / "README.md"
    known, ahead = {start}, [start]
    while ahead:
        page = ahead.pop()
        for _, _, target in links(page.read_text()):
            path = target.partition("#")[0]
            there = (page.parent / path).resolve()
            there = there / "README.md" if there.is_dir() else there
            if path and ":" not in path and there.suffix == ".md" and there.exists() and there not in known:
                known.add(there)
                ahead.append(there)
    return [page for page in pages(root / "docs") if page not in known]


def faults(root):
    found = []
    for page in pages(root):
        for number, words, target in links(page.read_text()):
            if wrong := fault(page, words, target, root):
                found.append(f"{page.relative_to(root)}:{number}: '{target}' {wrong}")
    if (root / "docs" / "README.md").exists():
        found += [f"{page.relative_to(root)}: no link leads here from docs/README.md" for page in unreachable(root)]
    return found


if __name__ == "__main__":
    told = faults(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
    print("\n".join(told), end="\n" if told else "")
    sys.exit(bool(told))
