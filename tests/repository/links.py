#!/usr/bin/env python3
"""Checks that each link of each Markdown page leads to an existing file and, with an anchor, to a heading of that file.

    links.py            checks the Markdown pages
    links.py FOLDER     checks the site that tools/build-site made there
"""
import re
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["docs", "lessons", "exercises", "examples", "bench", "tests", "web"]


def without_code(text):
    text = re.sub(r"(?ms)^( *)(```|~~~).*?^\1\2", "", text)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(page):
    """Returns the anchors of a page as GitHub makes them: one per heading, numbered when repeated, and explicit ones."""
    text, found = page.read_text(), {}
    for heading in re.findall(r"(?m)^#+ +(.*?) *#*$", re.sub(r"(?ms)^( *)```.*?^\1```", "", text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        number = found.get(anchor, 0)
        found[anchor] = number + 1
        if number:
            found[f"{anchor}-{number}"] = 1
    return set(found) | set(re.findall(r'(?:id|name)="([^"]+)"', text))


def faults(page):
    text = without_code(page.read_text())
    links = re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", text) + re.findall(r"(?m)^\[[^]]+\]: +(\S+)", text)
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue  # an external link
        path, _, anchor = link.partition("#")
        target = (page.parent / unquote(path)).resolve() if path else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: {link} leads to no file"
        elif anchor and target.suffix == ".md" and unquote(anchor) not in anchors(target):
            yield f"{page.relative_to(ROOT)}: {link} leads to no heading of {target.name}"


def faults_of_site(site):
    pages = {page.resolve(): page.read_text() for page in site.rglob("*.html")}
    nav = re.findall(r": (\S+\.md)$", (ROOT / "web/mkdocs.yml").read_text(), re.M)
    yield from (f"web/mkdocs.yml does not list {page.relative_to(ROOT)}" for page in (ROOT / "docs").glob("*.md") if str(page.relative_to(ROOT)) not in nav)
    if not pages:
        yield f"{site} has no pages"
    ids = {page: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for page, text in pages.items()}
    for page, text in pages.items():
        if (ROOT / page.relative_to(site)).exists() or page.name == "404.html":
            continue  # not made from Markdown; its links are those of a server
        for link in sorted(set(re.findall(r'<(?:a|img)[^>]*? (?:href|src)="([^"]+)"', text))):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            if not target.exists():
                yield f"{page.relative_to(site)}: {link} leads to no file"
            elif anchor and target in ids and unquote(anchor) not in ids[target]:
                yield f"{page.relative_to(site)}: {link} leads to no heading"


def main():
    if len(sys.argv) == 2:
        wrong = list(faults_of_site(Path(sys.argv[1]).resolve()))
        print("\n".join(wrong or ["no broken links"]))
        return 1 if wrong else 0
    pages = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md")))]
    wrong = [fault for page in pages for fault in faults(page)]
    print("\n".join(wrong or [f"{len(pages)} pages, no broken links"]))
    return 1 if wrong or len(pages) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
