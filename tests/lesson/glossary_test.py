"""No term of docs/glossary.md is on the screen before the lesson that the glossary says it is first met in.

Usage: glossary_test.py [--write] RUNNER LESSON...

Lessons come in the order of the runner's list. Looked at is what a learner reads: sentences, questions, options, hints, explanations,
mistakes, names of values and of columns. --write puts the right lesson into the table.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from terminal_driver import clean_environment

GLOSSARY = Path(__file__).resolve().parents[2] / "docs/glossary.md"
ROW = re.compile(r"^(\| \*\*(.+?)\*\* \| .+? \| )\[(.+?)\]\(\.\./lessons/(.+?)\)", re.M)


def events_of(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=clean_environment(TALLY_IMAGES="1312"))
    assert done.returncode in (0, 77), done.stderr  # 77: skipped, where there is no device
    return [json.loads(line) for line in done.stdout.splitlines()]


def read_in(event):
    """What of an event is words on the screen."""
    yield from (event.get(name, "") for name in ("question", "why"))
    for name in ("options", "hints", "mistakes", "columns"):
        yield from event.get(name, [])
    if event["event"] in ("sentence", "title", "reveal"):
        yield event.get("text", "") + event.get("title", "")
    if event["event"] == "tensor":
        yield event["name"]


def main(words):
    write = words[:1] == ["--write"]
    runner, *programs = words[write:]
    order = [event["slug"] for event in events_of(runner, "list", "--json")]
    read = {}
    for program in programs:
        events = events_of(program, "--json", *(["--device=pretend"] if "_22_" in program else []))
        read[events[0]["slug"]] = (f"{events[0]['lesson']:02}_{events[0]['slug'].replace('-', '_')}.md",
                                   "\n".join(text for event in events for text in read_in(event)).lower())
    glossary = GLOSSARY.read_text(encoding="utf-8")
    early = []

    def right_row(row):
        said, term, slug, _ = row.groups()
        term_in = re.compile(rf"\b{re.escape(term.lower())}(s|es|d|ed|ing)?\b")
        first = next((lesson for lesson in order if lesson in read and term_in.search(read[lesson][1])), slug)
        if order.index(first) < order.index(slug):
            early.append(f"{term}: in {first}, before {slug}")
            return f"{said}[{first}](../lessons/{read[first][0]})"
        return row.group(0)

    corrected = ROW.sub(right_row, glossary)
    if write:
        GLOSSARY.write_text(corrected, encoding="utf-8")
    print("\n".join(early) or f"{len(ROW.findall(glossary))} terms, none before its lesson")
    return 1 if early and not write else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
