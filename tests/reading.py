#!/usr/bin/env python3
"""How much one must read to answer a question about the engine, and how much of that is about the subject.

    reading.py            the table, as docs/reading.md has it
    reading.py --show     what is to be read, essential lines marked
    reading.py --write    puts the table into docs/reading.md
    reading.py --check    whether each range of tests/reading.txt is still there, and docs/reading.md has this table

The questions and their ranges, and what they mean, are in tests/reading.txt.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RANGES = ROOT / "tests" / "reading.txt"
PAGE = ROOT / "docs" / "reading.md"


class Fault(Exception):
    pass


def indent(line):
    return len(line) - len(line.lstrip())


def lines_of(where, place):
    """The numbers of the lines, from 0, that are not blank: of a whole file, or from one anchor to another."""
    file, _, anchors = place.partition(": ")
    if not (ROOT / file).is_file():
        raise Fault(f"{where}: there is no file {file}")
    text = (ROOT / file).read_text().splitlines()

    def begin(words, after=-1):
        return [at for at, line in enumerate(text) if at > after and line.strip().startswith(words)]

    def only(words):
        if len(begin(words)) != 1:
            raise Fault(f"{where}: {file} has {len(begin(words))} lines that begin with '{words}'; one is wanted")
        return begin(words)[0]

    def first_of(places, words):
        if not places:
            raise Fault(f"{where}: {file} has no line there that begins with '{words}'")
        return places[0]

    if anchors == "whole":
        start, end = 0, len(text) - 1
    else:
        first, _, last = anchors.partition(" .. ")
        around, _, first = first.rpartition(" >> ")
        start = first_of(begin(first, only(around)), first) if around else only(first)
        level = [at for at in begin(last, start) if not last.startswith("}") or indent(text[at]) == indent(text[start])]
        end = first_of(level, last) if last else start
    return file, {at for at in range(start, end + 1) if text[at].strip()}


def closed(file, read, core):
    """Lines to read that close what an essential line opens: its braces are essential, too."""
    text = (ROOT / file).read_text().splitlines()
    for at in read:
        if text[at].strip().startswith("}"):
            before = (line for line in range(at - 1, -1, -1) if text[line].strip() not in ("", "public:", "protected:", "private:"))
            opened = next((line for line in before if indent(text[line]) <= indent(text[at])), at)
            if opened in core and indent(text[opened]) == indent(text[at]):
                yield at


def questions():
    found = []
    for number, line in enumerate(RANGES.read_text().splitlines(), 1):
        where = f"{RANGES.name}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.strip().partition(" ")
        if word == "question":
            name, most, share = rest.rsplit(maxsplit=2)
            found.append({"name": name, "most": int(most), "share": int(share), "read": {}, "core": {}})
        elif word in ("read", "core"):
            file, lines = lines_of(where, rest)
            if word == "core" and (beside := lines - found[-1]["read"].get(file, set())):
                raise Fault(f"{where}: line {min(beside) + 1} of {file} is said to be essential, but not to be read")
            found[-1][word].setdefault(file, set()).update(lines)
        else:
            raise Fault(f"{where}: begins with '{word}'; question, read and core are known")
    for question in found:
        for file, core in question["core"].items():
            core.update(list(closed(file, question["read"][file], core)))
    return found


def table():
    rows = ["| question | lines to read | in files | essential | goal |", "|---|---|---|---|---|"]
    for q in questions():
        lines, core = (sum(map(len, q[word].values())) for word in ("read", "core"))
        share = core / lines * 100
        missed = " and ".join(word for word, bad in (("length", lines > q["most"]), ("share", share < q["share"])) if bad)
        rows.append(f"| {q['name']} | {lines} | {len(q['read'])} | {core} ({share:.0f} %) "
                    f"| ≤ {q['most']}, ≥ {q['share']} %: {missed + ' missed' if missed else 'reached'} |")
    return "\n".join(rows) + "\n"


def show():
    for q in questions():
        print(f"==== {q['name']} ====")
        for file, lines in q["read"].items():
            text = (ROOT / file).read_text().splitlines()
            print(f"---- {file} ----")
            print("\n".join(f"{at + 1:4} {'|' if at in q['core'].get(file, ()) else ' '} {text[at]}" for at in sorted(lines)))


def main(words):
    try:
        if words == ["--show"]:
            show()
            return 0
        now, page = table(), PAGE.read_text()
    except Fault as fault:
        print(fault)
        return 1
    print(now, end="")
    if words == ["--write"]:
        PAGE.write_text(re.sub(r"^\| question \|.*\n(?:\|.*\n)*", lambda _: now, page, flags=re.M))
    elif words == ["--check"] and now not in page:
        print("docs/reading.md has another table; tests/reading.py --write puts this one there")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
