#!/usr/bin/env python3
"""How much of a lesson is its subject, and where its talk begins. Usage: read_aloud.py [--write]

Each line of lessons/NN_*.cpp, from 01 on, is one of these:

  says      what the speaker says: step(), note(), predict(), skip()
  shows     what the class sees: show(), graph() without the drawing, plot(), and the rows of a table
  computes  what the lesson is about, in the engine's words or in plain C++: every other statement of the talk, and of the
            functions that it calls, above the rulers "the tools" and "the witness"
  checks    check(), check_equal(), check_close(); a call of what stands below the ruler "the witness"; all that stands there
  rest      the file's opening, the lesson's record at its end, and all below the ruler "the tools": what only makes text,
            arrays or vectors of something; in the talk table() with its columns, code(), arrays of typed numbers,
            vectors that begin empty and what is pushed to them; comments, blank lines, lines without a letter or digit

The subject is what computes, shows and says. A statement of several lines counts with all of them. A lesson fails where
its talk begins after line 25, where less than 35 % of its lines are its subject, or less than read_aloud.txt says of it
(--write writes that file anew), and where it defines something outside of namespace {, which both of its objects would share.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURES = Path(__file__).with_name("read_aloud.txt")
LAST_LINE_BEFORE, LEAST = 25, 35
KINDS = ("says", "shows", "computes", "checks", "rest")
RULERS = {"checks": re.compile(r"^    // -+ the witness\b"), "rest": re.compile(r"^    // -+ the tools\b")}
SAYS = re.compile(r"(step|note|predict|skip)\(")
SHOWS = re.compile(r"(show|graph|plot)\(|\w+\.row\(")
CHECKS = re.compile(r"check(_\w+)?\(")
REST = re.compile(r"(auto \w+ = )?table\(|(if \(.*\) )?code\(|std::vector<[^;=]*> [\w, ]+;|\w+\.push_back\(|#|using |namespace|template|struct |public:|private:|class ")
TYPED = re.compile(r"Array<\w+>\(\{[\d, ]*\}, *\{")


def statements(lines):
    """(the first line's number, its lines), where a statement ends: at ; { or } on its own level of parentheses."""
    first, depth, text = 0, 0, []
    for number, line in enumerate(lines):
        bare = re.sub(r'"(\\.|[^"\\])*"', '""', line)
        bare = re.sub(r"//.*", "", bare)
        text.append(line)
        depth += bare.count("(") - bare.count(")")
        opens_lambda = re.search(r"\[[^]]*\] ?(\([^()]*\) ?)?(-> [^{]+)?\{\s*$", bare)
        if opens_lambda:
            depth = 0
        if not bare.strip() or re.search(r"[;{}:]\s*$", bare) and depth <= 0 or opens_lambda:
            yield first, text
            first, depth, text = number + 1, 0, []
    if text:
        yield first, text


def kind_of(statement, witnesses):
    text = " ".join(line.strip() for line in statement)
    if not re.search(r"\w", re.sub(r"//.*", "", statement[0])) and len(statement) == 1:
        return "rest"
    if CHECKS.match(text) or (called := re.match(r"(?:const auto \w+ = )?(\w+)\(", text)) and called.group(1) in witnesses:
        return "checks"
    for kind, pattern in (("says", SAYS), ("shows", SHOWS), ("rest", REST)):
        if pattern.match(text):
            return kind
    return "rest" if TYPED.search(text) else "computes"


def counted(path):
    """(the line that the talk begins in, {kind: lines})"""
    lines = path.read_text().rstrip("\n").split("\n")
    begins = next((number for number, line in enumerate(lines, 1) if re.match(r"\s*(step|predict)\(", line)), len(lines))
    opens = next((number for number, line in enumerate(lines) if line.startswith("struct ")), 0)
    ends = next((number for number, line in enumerate(lines) if line.startswith("const Given<")), len(lines))
    rulers = {kind: next((number for number, line in enumerate(lines) if ruler.match(line)), ends) for kind, ruler in RULERS.items()}
    below = sorted([*((number, kind) for kind, number in rulers.items()), (ends, "rest")])
    witnesses = set(re.findall(r"\b(\w+)\([^;]*\) (?:const )?\{", "\n".join(lines[rulers["checks"]:ends])))
    found = dict.fromkeys(KINDS, 0)
    found["rest"] += opens + len(lines) - ends
    for _, statement in statements(lines[opens:below[0][0]]):
        code = [line for line in statement if not re.match(r"\s*//", line)]
        found["rest"] += len(statement) - len(code)
        if code:
            found[kind_of(code, witnesses)] += len(code)
    for (first, kind), (last, _) in zip(below, below[1:]):
        for line in lines[first:last]:
            found[kind if re.search(r"\w", re.sub(r"//.*", "", line)) else "rest"] += 1
    assert sum(found.values()) == len(lines), f"{path}: {found}, {len(lines)} lines"
    return begins, found


def main(words):
    figures = {}
    if FIGURES.exists():
        figures = {name: int(share) for name, share in (line.split() for line in FIGURES.read_text().splitlines() if line[:1].isdigit())}
    faults, now = [], {}
    print(f"{'lesson':28}{'talk from line':>15}" + "".join(f"{kind:>10}" for kind in KINDS) + f"{'lines':>8}{'subject':>9}")
    for path in sorted((ROOT / "lessons").glob("[0-9][0-9]_*.cpp")):
        if path.stem.startswith("00_"):
            continue
        begins, found = counted(path)
        first = next((line for line in path.read_text().split("\n") if line and not re.match(r"//|#include |using namespace ", line)), "")
        if first != "namespace {":
            faults.append(f"{path.name}: '{first}' stands outside of namespace {{")
        if path.read_text().find("\n}") != path.read_text().rfind("\n};") or not path.read_text().endswith("\n}  // namespace\n"):
            faults.append(f"{path.name}: it is not one struct, then its Given, in one namespace {{")
        lines = sum(found.values())
        share = now[path.stem] = 100 * (found["says"] + found["shows"] + found["computes"]) // lines
        print(f"{path.stem:28}{begins:15}" + "".join(f"{found[kind]:10}" for kind in KINDS) + f"{lines:8}{share:7} %")
        if begins > LAST_LINE_BEFORE:
            faults.append(f"{path.name}: its talk begins in line {begins}, after {LAST_LINE_BEFORE}")
        if share < max(LEAST, figures.get(path.stem, 0)):
            faults.append(f"{path.name}: {share} % are its subject, not {max(LEAST, figures.get(path.stem, 0))} %")
    if words == ["--write"]:
        FIGURES.write_text("# The share of a lesson's lines that is its subject, in %, at least; written by read_aloud.py --write.\n"
                           + "".join(f"{name} {share}\n" for name, share in now.items()))
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
