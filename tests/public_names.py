#!/usr/bin/env python3
"""Which names the public headers declare in namespace tally itself: what a user never types belongs into tally::detail.

    public_names.py             each name with its header; marked are those that docs, lessons and examples never write
    public_names.py --check     that there are no more of these than BOUND says
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
PUBLIC = ["core.hpp", "processes.hpp", "tally.hpp", "train.hpp", "xtensor.hpp"]
BOUND = 90  # a little above where things stand


def reached():
    to_visit, found = list(PUBLIC), []
    while to_visit:
        header = to_visit.pop(0)
        if header in found:
            continue
        found.append(header)
        to_visit += re.findall(r'^\s*#\s*include "tally/(.*)"', (SRC / header).read_text(), re.M)
    return found


WORD = r"[A-Za-z_]\w*"


def declared(text):
    """(name, line) of each declaration at namespace scope of tally itself, by the indentation that clang-format gives."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    inside, statement, first, depth = [], "", 0, 0
    for number, line in enumerate(text.split("\n"), 1):
        code = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        code = re.sub(r"//.*", "", code).rstrip()
        if not code or code.startswith("#"):
            continue
        if opened := re.match(r"(?:inline )?namespace ([\w:]*) ?\{$", code):
            inside.append(opened[1] or "(none)")
            continue
        if code == "}" and depth == 0 and not statement:
            if inside:
                inside.pop()
            continue
        if not statement:
            first = number
        statement += " " + code.strip()
        depth += code.count("{") - code.count("}")
        if depth == 0 and (code.endswith((";", "}"))):
            if inside == ["tally"]:
                yield from ((name, first) for name in names(statement.strip()))
            statement = ""


def without_angles(text):
    out, deep = "", 0
    for i, c in enumerate(text):
        if c == "<" and (text[:i].rstrip().endswith("template") or re.search(r"\w$", text[:i])):
            deep += 1
        if not deep:
            out += c
        if c == ">" and deep and text[i - 1] != "-":
            deep -= 1
    return out


def names(statement):
    s = re.sub(r"\[\[.*?\]\]", "", statement)
    s = without_angles(s)
    s = re.sub(r"^(template|extern|inline|constexpr|static|constinit|thread_local|friend|requires\s*\([^)]*\)|\s)+", "", s)
    s = re.sub(r"^requires\([^)]*\)", "", s)
    if m := re.match(rf"(?:struct|class|enum class|enum|union|concept|using)\s+(?:alignas\([^)]*\)\s*)?({WORD})\b(?!::)", s):
        if not s.startswith("using namespace"):
            yield m[1]
        return
    head = re.split(r"[({=;]", s, maxsplit=1)[0].strip()
    if "operator" in head:
        return
    words = re.findall(rf"(?:{WORD}::)*~?{WORD}", head)
    if words and "::" not in words[-1] and len(words) > 1:
        yield words[-1]


def main():
    found = {}
    for header in reached():
        for name, line in declared((SRC / header).read_text()):
            found.setdefault(name, f"{header}:{line}")
    users = ""
    for folder in ["lessons", "exercises", "docs", "examples", "tests/install"]:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".hpp", ".md"):
                users += path.read_text(errors="replace")
    users += (ROOT / "README.md").read_text()
    said = set(re.findall(WORD, users))
    unsaid = [name for name in found if name not in said]
    if "--check" not in sys.argv:
        for name in sorted(found, key=lambda n: (found[n].split(":")[0], n)):
            print(f"{'  ' if name in said else '- '}{name:32} {found[name]}")
    print(f"{len(found)} names in tally::, {len(unsaid)} of them written nowhere in docs, lessons and examples")
    if "--check" in sys.argv and len(unsaid) > BOUND:
        sys.exit(f"{BOUND} are the bound: what of these belongs into tally::detail? {', '.join(unsaid)}")


main()
