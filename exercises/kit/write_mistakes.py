"""Writes the header of a check: each mistake in full, from `right` and the different lines.

Usage: write_mistakes.py check.cpp mistakes.txt given.hpp OUT
"""
import re
import sys
from pathlib import Path


class Fault(Exception):
    pass


def text_of(path):
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Fault(f"cannot read {path}: {error.strerror}") from None


def lines_of(path):
    return text_of(path).removesuffix("\n").split("\n")


def right_answer(path):
    lines = lines_of(path)
    try:
        first = lines.index("namespace right {") + 1
        return lines[first:lines.index("}  // namespace right", first)]
    except ValueError:
        raise Fault(f"{path} has no namespace right") from None


def mistakes_in(path):
    """The mistakes: (name, sentence, changes). A change has the number of its line, and the line, which begins with ' ' (keep),
    '-' (remove) or '+' (insert), as in a diff."""
    mistakes = []
    for number, line in enumerate(lines_of(path), 1):
        if not line or line.startswith("# "):
            continue
        if line.startswith("== "):
            mistakes.append((line[3:], [], []))
            continue
        if not mistakes:
            raise Fault(f"{path}:{number}: a mistake begins with '== ' and its name")
        name, sentence, changes = mistakes[-1]
        if line[0] in " -+":
            changes.append((number, line))
        elif changes:
            raise Fault(f"{path}:{number}: a line of {name} begins with neither ' ' nor '-' nor '+'")
        else:
            sentence.append(line)
    return [(name, " ".join(sentence), changes) for name, sentence, changes in mistakes]


def changed(right, mistake, path):
    """Applies the changes to `right` in order. A line to keep or remove is searched below the previous one, and '+' inserts after the
    previous one. Other lines are kept, but removed between '-...' and the next named one."""
    name, sentence, changes = mistake
    result, at, removes, number = [], 0, False, 1
    for number, line in changes:
        text = line[1:]
        if line == "-...":
            removes = True
        elif line[0] == "+":
            result.append(text)
        else:
            if text not in right[at:]:
                below = " below the one named before it" if at else ""
                raise Fault(f"{path}:{number}: {name} names a line that `right` does not have{below}: {text}")
            found = right.index(text, at)
            result += [] if removes else right[at:found]
            result += [text] if line[0] == " " else []
            at, removes = found + 1, False
    result += right[at:]
    for fault, words in ((removes, "does not say which line stays after '-...'"), (result == right, "is the answer itself"),
                         (not sentence, "has no sentence")):
        if fault:
            raise Fault(f"{path}:{number}: {name} {words}")
    return result


def quoted(text):
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def header(check, mistakes, given):
    right, names = right_answer(check), re.findall(r"^HAND_IN\((.*?)\)", text_of(given), re.M)

    def functions_of(answer):
        return "{" + ", ".join(f"{answer}::{name}" for name in names) + "}"

    text, table = ["// Written by write_mistakes.py."], []
    for mistake in mistakes_in(mistakes):
        name, sentence, _ = mistake
        text += ["", f"namespace {name} {{", *changed(right, mistake, mistakes), f"}}  // namespace {name}"]
        table.append(f"     {{{quoted(name)}, {functions_of(name)}, {quoted(sentence)}}},")
    text += ["", "struct Functions {", *(f"    decltype(&::{name}) {name};" for name in names), "};", "",
             "const exercise::Answers<Functions> answers{", "    {" + ", ".join(map(quoted, names)) + "},", f"    {functions_of('right')},",
             "    {", *table, "    }};", ""]
    return "\n".join(text)


def main():
    try:
        *read, written = sys.argv[1:]
        text = header(*read)
        Path(written).write_text(text, encoding="utf-8")
    except Fault as fault:
        sys.exit(str(fault))


if __name__ == "__main__":
    main()
