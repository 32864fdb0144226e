#!/usr/bin/env python3
"""Writes docs/reference.md: every public name with its signature and the comment above it, by module and header.

    reference.py            checks that the page is up to date and that each public name has a comment
    reference.py --write    writes the page

A name is public if it is in namespace tally, outside tally::detail and tally::functor and not below a ruler with the word "engine". Its header is
tally/xtensor.hpp or is included directly by tally/core.hpp, tally/distributed.hpp, tally/tally.hpp or tally/train.hpp. A comment belongs to the
declarations that follow it without an empty line, and a trailing comment to its line. The first comment of a header also documents the names in it.
"""
import functools
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC, PAGE = ROOT / "src", ROOT / "docs" / "reference.md"
DOORS = ["core.hpp", "distributed.hpp", "tally.hpp", "train.hpp"]
OWN = "xtensor.hpp"  # a public header that declares names itself
HIDDEN = {"detail", "functor"}  # internal names, and formulas for authors of operations
INTERNAL = re.compile(r"\bdetail::(?:ApplyState|BackwardPass|GradientRef|LayerRng|RngUse|SideEffects?|SaveRequest|State|Storage|ValueNode)\b")  # only the engine uses these
WIDTH = 120  # of a comment on the page
HEAD = """<!-- Written by `python3 tests/repository/reference.py --write` from the headers. -->
# Reference

This page is for programmers who use tally. It lists every name of `tally::` with its signature and its comment, by module and
header. The guides to [tensors](tensors.md) and [training](training.md) show how to use the names together.

"""


def headers():
    doors = [(SRC / door).read_text() for door in DOORS if (SRC / door).is_file()]
    return sorted({SRC / name for text in doors for name in [*re.findall(r'#include "tally/(.*)"', text), OWN] if name not in DOORS})


class Source:
    """A header's text with blanks in place of comments, so that positions stay; `comments` has them by line."""

    def __init__(self, text):
        self.comments, self.alone = {}, set()  # line -> comment; lines that contain only a comment

        def blank(found):
            whole = found.group()
            if not whole.startswith("//"):
                return re.sub(r"[^\n]", "_", whole)  # a literal may contain any text
            line = text.count("\n", 0, found.start()) + 1
            self.comments[line] = whole[2:].removeprefix(" ").rstrip()
            if not text[text.rfind("\n", 0, found.start()) + 1:found.start()].strip():
                self.alone.add(line)
            return " " * len(whole)

        self.text = text
        code = re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', blank, text)
        self.code = re.sub(r"(?m)^[ \t]*#(?:.*\\\n)*.*$", lambda found: re.sub(r"[^\n]", " ", found.group()), code)

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def is_for_the_engine(self, line):
        rulers = re.findall(r"(?m)^// ----.*", "\n".join(self.text.split("\n")[:line]))
        return bool(rulers) and "engine" in rulers[-1]

    def purpose(self):
        lines = []
        for line in range(1, 1 + len(self.text.split("\n"))):
            if line not in self.alone or not self.comments[line]:
                break
            lines.append(self.comments[line])
        return " ".join(lines)


OPENING, CLOSING = "([{", ")]}"


def closed(code, at):
    """Returns the position after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in OPENING) - (code[i] in CLOSING)
        if depth == 0:
            return i + 1
    raise ValueError(f"a bracket is never closed: {code[at:at + 60]!r}")


def declarations(code, at, end):
    """Yields (begin, end of the signature, end, range inside the braces or None) of each declaration."""
    while True:
        while at < end and (code[at].isspace() or code[at] == ";"):
            at += 1
        if at >= end:
            return
        begin, i, is_value = at, at, False
        label = re.compile(r"(?:public|protected|private)\s*:").match(code, at)
        if label:
            yield begin, label.end(), label.end(), None
            at = label.end()
            continue
        while i < end and code[i] != ";":
            if code[i] in "([":
                i = closed(code, i)
                continue
            if code[i] == "=" and not re.search(r"operator\s*[=!<>+*/-]*$", code[begin:i]) and code[i + 1] != "=" and code[i - 1] not in "=!<>":
                is_value = is_value or "<" not in code[begin:i] or code.count("<", begin, i) == code.count(">", begin, i)
            if code[i] == "{":
                head = code[begin:i]
                behind = closed(code, i)
                if re.search(r"\brequires\s*(?:\([^()]*\)\s*)?$", head) and not re.search(r"\)[\s&]*(?:const[\s&]*)?requires\s*\([^()]*\)\s*$", head):
                    i = behind  # a requires-expression has no body
                    continue
                if is_value and not re.match(r"\s*(?:template\s*<.*>\s*)?(?:class|struct|enum|union)\b", head, re.S):
                    i = behind
                    continue
                is_type = re.search(r"(?:^|[>\s])(?:class|struct|enum|union|namespace)\b[^()=]*$", head) or head.strip().startswith("extern")
                if not is_type and re.search(r"[\w>]\s*$", head) and "(" not in re.sub(r"\(\s*\)", "", head) and not head.rstrip().endswith(("const", "noexcept", "override", "final")):
                    i = behind  # the initializer of a variable
                    continue
                yield begin, i, behind, (i + 1, behind - 1)
                at = behind
                break
            i += 1
        else:
            yield begin, i, i + 1, None
            at = i + 1


def without_requirements(head):
    return re.sub(r"(?s)\brequires\b.*?(?=\b(?:class|struct)\b)", "", head)


def plain(head):
    """Returns a signature in one line, without attributes, inline and extern."""
    head = re.sub(r"\[\[[^\]]*\]\]|__attribute__\(\(.*?\)\)|\binline\b|\bextern\b", " ", head)
    return re.sub(r"\s+", " ", head).strip()


def name_of(head):
    """Returns the declared name; None for friends, specialisations, instantiations and macros."""
    text = plain(head)
    if re.match(r"(?:template\s*<\s*>|template\s+(?!<)|friend\b|static_assert\b|namespace\b|using namespace\b|public|private|protected)", text):
        return None
    while text.startswith("template"):
        depth = 0
        for i, letter in enumerate(text):
            depth += (letter == "<") - (letter == ">" and text[i - 1] != "-")
            if letter == ">" and depth == 0:
                break
        text = text[i + 1:].strip()
    if found := re.match(r"concept (\w+)", text):
        return found.group(1)
    if found := re.match(r"using ([\w]+)(?: =|$)", text):
        return found.group(1)
    if found := re.search(r"^(?:requires\b.*? )?(?:class|struct|union|enum(?: class)?) (?:\[\[.*?\]\] )?(\w+)(?=\s|$)(?!\s*<)", text):
        return found.group(1)
    if text.endswith("= delete") or not text or re.match(r"(?:class|struct|TALLY_\w+)\b", text):
        return None
    before = re.split(r"\s=\s|\{", text)[0] if "operator" not in text and "(" not in text.split("=")[0] else text
    if found := re.search(r"(operator\s*(?:\(\)|\[\]|[^\s\w(]+|\w+))\s*\(|(~?\w+)\s*\(", before):
        is_a_member = before[:found.start()].endswith("::")  # its class shows it
        return None if is_a_member else (found.group(1) or found.group(2)).replace(" ", "")
    found = re.search(r"(\w+)\s*(?:\[.*\])?$", before.strip())
    return found.group(1) if found else None


class Entry:
    def __init__(self, source, begin, end, to, inside, space):
        self.first, self.last = source.line(begin), source.line(end - 1 if source.code[end - 1:end] else end)
        self.signature, self.name = plain(source.code[begin:end]), name_of(source.code[begin:end])
        self.text = plain(re.sub(r"//[^\n]*", "", source.text[begin:end]))
        self.space, self.inside, self.ends = space, inside, source.line(to - 1)
        self.alias = None  # the public name of a struct of detail
        if self.name and "= default" in self.signature:
            self.text = self.signature
        self.said = [source.comments[line] for line in range(self.first, self.last + 1) if line in source.comments and line not in source.alone]
        self.above = []
        line = self.first - 1
        while line in source.alone:
            self.above.insert(0, source.comments[line])
            line -= 1
        self.above = [words for words in self.above if not words.startswith("clang-format") and not re.match(r"----.*", words)]
        is_type = re.match(r"(?:template.*> ?)?(?:requires.*)?(?:class|struct)\b", self.signature)
        if re.search(r"\benum\b", self.signature) and inside:
            self.text += enumerators(source, inside)
        elif is_type and inside:
            self.text += members(source, inside, self.signature)
        else:
            self.text += ";"


def enumerators(source, inside):
    values = "\n".join(re.sub(r"^\s{0,8}", "    ", words) for words in source.text[inside[0]:inside[1]].strip("\n").split("\n"))
    one = plain(re.sub(r"//[^\n]*", "", values))
    return " { " + one + " };" if "//" not in values else " {\n" + values.rstrip() + "\n};"


def members(source, inside, head):
    """Returns the public members of a class with their comments."""
    shown, last, is_commented, was_commented = [], 0, False, False
    class_name = name_of(head)
    public = not re.search(r"\bclass\b", re.sub(r"template\s*<[^>]*>", "", head))
    for begin, end, to, body in declarations(source.code, *inside):
        words = plain(source.code[begin:end])
        if found := re.match(r"(public|protected|private)\s*:", words):
            public = found.group(1) == "public"
            continue
        if not public or re.match(r"(?:friend|using (?:std::|value_type|scalar|\w+ = (?:typename )?detail::))|.*= delete|.*static_assert|(?:virtual )?~", words):
            continue
        if re.fullmatch(r"\w+\(\) = default", words) and source.line(end) not in source.comments:
            continue
        entry_name = name_of(source.code[begin:end])
        if entry_name in (None, "operator=") or words == "union" or re.match(rf"{class_name}\((?:const {class_name}&|{class_name}&&)", words):
            continue
        if INTERNAL.search(words.split(") : ")[0]) or body and re.match(r"\s*(?:static_assert|not_in_place<)", source.code[body[0]:]):
            continue  # for the engine; a call that the compiler rejects
        line, lines = source.line(begin), []
        is_inherited = words.endswith("override") and line - 1 not in source.alone  # without a comment of its own
        nested = re.match(r"(enum )?(?:struct|class) \w+", words)
        if words.endswith("const&&") or is_inherited or nested and not body:
            last = source.line(to - 1)
            continue  # const&& is for temporaries; a declared type is on the page where it is defined
        rulers = [source.comments[at] for at in range(source.line(inside[0]), line) if at in source.alone and source.comments[at].startswith("----")]
        if rulers and re.search(r"\b(?:engine|window|each step|files)\b", rulers[-1]):
            continue
        while line - 1 in source.alone and line - 1 > source.line(inside[0]) - 1:
            line -= 1
            lines.insert(0, source.comments[line])
        lines = [] if any("clang-format" in each for each in lines) else wrapped(lines, "    ")
        if nested:
            inside_text = enumerators(source, body) if nested.group(1) else members(source, body, words)
            shown += [*lines, *(f"    {line}" for line in (plain(words) + inside_text).split("\n"))]
            last = source.line(to - 1)
            continue
        text = re.sub(r"\s*(?<!:):(?!:)\s*\w+(?:<[^<>]*>)?[({].*$", "", re.sub(r"//[^\n]*", "", source.text[begin:end]), flags=re.S) if "(" in words else re.sub(
            r"//[^\n]*", "", source.text[begin:end])
        behind = [source.comments[at] for at in range(source.line(begin), source.line(max(begin, end - 1)) + 1)
                  if at in source.comments and at not in source.alone]
        behind = behind or [source.comments[at] for at in [source.line(to - 1)] if at in source.comments and at not in source.alone]
        is_commented = bool(lines) or is_commented and source.line(begin) - last == 1
        if was_commented and not is_commented:
            shown.append("")  # the comment above does not belong to this member
        was_commented = is_commented
        last = source.line(to - 1)
        shown += [*lines, f"    {plain(text)};" + (f"  // {' '.join(behind)}" if behind else "")]
    if len(shown) < 3 and not any("//" in line for line in shown) and len(head) + len("".join(shown)) < WIDTH:
        return " { " + " ".join(line.strip() for line in shown) + " };" if shown else " {};"
    return " {\n" + "\n".join(shown) + "\n};"


def aliases(source):
    """A type of detail that users fill in or read -> its name on the page: SgdOptions -> Sgd::Options."""
    found = {}
    for use in re.finditer(r"(?m)^    using (\w+) = detail::(\w+)", source.code):
        owner = re.findall(r"(?m)^(?:template <[^>]*>\s*)?(?:class|struct) (\w+)[^;{]*\{", source.code[:use.start()])
        if owner:
            found[use.group(2)] = f"{owner[-1]}::{use.group(1)}"
    heads = [source.code[begin:end] for outer in declarations(source.code, 0, len(source.code)) if outer[3]
             for begin, end, _, inside in declarations(source.code, *outer[3]) if "(" in source.code[begin:end]]
    for name in re.findall(r"\bdetail::(\w+)", " ".join(heads)):
        found.setdefault(name, f"detail::{name}")
    return found


@functools.cache
def aliases_of_all():
    """The aliases of all headers, and the options in the signatures of functions."""
    sources = [Source(path.read_text()) for path in headers()]
    options = {name: f"detail::{name}" for source in sources for name in re.findall(r"\bdetail::(\w+(?:Options|Arg|Stream))\b", source.code)}
    return options | {name: alias for source in sources for name, alias in aliases(source).items() if not alias.startswith("detail::")}


def entries(source, begin=0, end=None, space=()):
    for start, stop, to, inside in declarations(source.code, begin, len(source.code) if end is None else end):
        words = plain(source.code[start:stop])
        if found := re.match(r"namespace(?: ([\w:]+))?$", words):
            names = (found.group(1) or "detail").split("::")
            if inside and not HIDDEN & set(names):
                yield from entries(source, *inside, space + tuple(names))
            elif inside and space + tuple(names) == ("tally", "detail"):
                for declared in declarations(source.code, *inside):
                    entry = Entry(source, *declared, space[1:])
                    entry.alias = (aliases_of_all() | aliases(source)).get(entry.name)
                    if entry.alias and not INTERNAL.search(entry.alias) and entry.inside and re.search(rf"\b(?:struct|class) {entry.name}\b", entry.text):
                        entry.text = re.sub(rf"(struct|class) {entry.name}\b", rf"\1 {entry.alias}", entry.text, count=1)
                        yield entry
        elif space and space[0] == "tally":
            entry = Entry(source, start, stop, to, inside, space[1:])
            if nested := re.search(r"\b(?:class|struct) (\w+::\w+)(?= |$)", entry.signature):
                entry.name = entry.alias = nested.group(1)
            is_forward = re.match(r"(?:template <.*> )?(?:class|struct) \w+$", words) and not inside
            is_deduction_guide = re.search(r"\) -> \w+<", entry.signature)
            if entry.name and not is_forward and not is_deduction_guide:
                yield entry


def groups(source):
    """Yields groups of declarations that share a comment, without those for the engine."""
    together = []
    for entry in entries(source):
        if source.is_for_the_engine(entry.first):
            continue
        if together and (entry.above or entry.first - together[-1].ends > 1 or entry.space != together[-1].space):
            yield together
            together = []
        together.append(entry)
    if together:
        yield together


def public_names():
    """Returns {header: names on the page}."""
    sources = {path: Source(path.read_text()) for path in headers()}
    return {path: {"::".join((*entry.space, entry.name)) for group in groups(source) for entry in group if not entry.alias} for path, source in sources.items()}


def module_of(path):
    return path.relative_to(SRC).parts[0].removesuffix(".hpp")


def alike(group):
    """Yields each declaration with the names of those that differ from it in the name alone, if they are several."""
    same = {}  # the text without the name -> the declarations
    for entry in group:
        text = entry.text if "\n" in entry.text or entry.said else re.sub(rf"(?<![\w]){re.escape(entry.name)}(?=\()", "@", entry.text, count=1)
        same.setdefault(text, []).append(entry)
    for first, *others in same.values():
        if len(others) > 1:
            yield first, [each.name for each in others]
        else:
            yield from ((entry, []) for entry in (first, *others))


def wrapped(comment, margin=""):
    """Fills the lines of a comment up to the width of the page. Empty and indented lines, such as code, stay as they are."""
    lines, text = [], []
    for line in [*comment, ""]:
        if line and not line.startswith(" "):
            text.append(line)
            continue
        lines += textwrap.wrap(" ".join(text), WIDTH - len(margin) - len("// "), break_long_words=False, break_on_hyphens=False)
        lines.append(line)
        text = []
    return [f"{margin}// {line}".rstrip() for line in lines[:-1]]


def page_and_faults():
    page, faults, names = [HEAD], [], {}  # module -> its names
    parts = {}  # module -> the listings of its headers
    for path in headers():
        source = Source(path.read_text())
        name, told = f"tally/{path.relative_to(SRC)}", {}
        found = list(groups(source))
        for group in found:
            said = bool(group[0].above)
            for entry in group:
                said = said or bool(entry.said)  # also documents the next lines of its group
                told[entry.name] = told.get(entry.name) or said or bool(
                    re.search(rf"(?<!\w){re.escape(entry.name)}(?!\w)", source.purpose()))
        for group in found:
            for entry in group:
                if not told[entry.name] and not entry.name.startswith("operator"):
                    faults.append(f"src/{path.relative_to(SRC)}:{entry.first}: no comment on {'::'.join(('tally', *entry.space, entry.name))}")
                    told[entry.name] = True
                if not entry.alias:
                    names.setdefault(module_of(path), set()).add("::".join((*entry.space, entry.name)))
        if not found:
            continue
        lines, space, was_commented = [], (), False
        for group in found:
            if group[0].space != space:
                space = group[0].space
                lines += ["", f"namespace tally{''.join(f'::{each}' for each in space)}"]
            if was_commented and not group[0].above or lines[-1:] == ["};"]:
                lines.append("")
            was_commented = bool(group[0].above)
            is_said_by_name = re.fullmatch(r"Options of [\w:()]+\.", " ".join(group[0].above)) and "::" in group[0].text.split("{")[0]
            lines += [] if is_said_by_name else wrapped(group[0].above)
            for entry, others in alike(group):
                said = f"  // {' '.join(entry.said)}" if entry.said else ""
                first, *rest = entry.text.split("\n")
                lines += [first + said, *rest, *(wrapped([f"Likewise: {', '.join(others)}."]) if others else [])]
        parts.setdefault(module_of(path), []).append(f"**{name}**: {source.purpose()}\n```cpp\n" + "\n".join(lines).strip() + "\n```\n")
    rows = [f"| [{module}](#{module}) | {', '.join(f'`{each}`' for each in sorted(names[module], key=lambda name: (name.lower(), name)))} |" for module in parts]
    sections = [f"## {module}\n\n" + "\n".join(blocks) for module, blocks in parts.items()]
    return "".join([*page, "| module | names |\n|---|---|\n", "\n".join(rows), "\n\n", "\n".join(sections)]), faults, len(set().union(*names.values()))


def main(words):
    page, faults, count = page_and_faults()
    if words == ["--write"]:
        PAGE.write_text(page)
    elif not PAGE.is_file() or PAGE.read_text() != page:
        faults.append("docs/reference.md differs from the headers; run tests/repository/reference.py --write")
    print("\n".join(faults or [f"{count} public names, each with a comment"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
