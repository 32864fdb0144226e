"""Compares the output of a lesson with tests/lesson/printed/, which has one line for each event.

Usage: printed_test.py LESSON_PROGRAM          compares one lesson
       printed_test.py --write BUILD           writes all files again after an intended change

Lessons run on the CPU, lesson 31 on the simulated device. A line has the step, the event, the beginning of the text and a
digest of the whole text. Values that depend on the processor, the compiler or the time are left out: progress, times, and digits of a
number that are not shown. Checks (counted at the end), reveals (which repeat their prediction) and source lines are left out as well.
"""

import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from terminal_driver import clean_environment

FOLDER = Path(__file__).resolve().parent / "printed"
IMAGES = {"fashion": "1312", "on_the_gpu": "416"}  # fewer generated images, because all of them take a minute
SHOWN = 100  # characters of a line
LEFT_OUT = ("progress", "check", "reveal", "source")


def events(program):
    lesson = re.search(r"lesson_\d\d_(\w+)", program.name)[1]
    command = [program, "--json", f"--device={'simulated' if lesson == 'on_the_gpu' else 'cpu'}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          env=clean_environment(TALLY_IMAGES=IMAGES.get(lesson)))
    if done.returncode == 77:  # without MPI
        print(done.stdout)
        sys.exit(77)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def rounded(numbers):
    if isinstance(numbers, list):
        return [rounded(each) for each in numbers]
    return f"{numbers:.4g}" if isinstance(numbers, float) else numbers


def row_of(columns, row):
    """Returns the row without times, rounding differences and the bits of libraries, which depend on the processor."""
    if row[0].startswith(("BEFORE", "AFTER", "blas")) or any(re.search(r"\b(seconds|done)\b", name) for name in columns):
        return row[:1]
    return [cell for name, cell in zip(columns, row) if name not in ("bits", "libraries", "max|diff|", "microseconds, at once")]


def printed(event):
    """Returns the shown part of an event as words and lists of words, without times."""
    kind = event["event"]
    if kind == "table":
        return [event["columns"], [row_of(event["columns"], row) for row in event["text"]]]
    if kind == "plot":
        return [event["name"], event["kind"], [[series["label"], rounded(series["x"]), rounded(series["y"])] for series in event["series"]]]
    fields = {"title": ("title", "minutes", "steps"), "tensor": ("name", "text"),
              "sentence": ("text",), "graph": ("name", "svg"),
              "prediction": ("kind", "question", "options", "ids", "mistakes", "answer", "hints", "why"), "end": ("outcome", "steps", "checks", "failed", "detail")}
    return [event[name] for name in fields[kind] if name in event] if kind in fields else {name: event[name] for name in event if name not in ("v", "slug")}


def in_one_line(words):
    if isinstance(words, (list, tuple)):
        return " | ".join(map(in_one_line, words))
    return " ".join(str(words).split())


def line_of(event):
    shown = printed(event)
    digest = hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:8]
    text = in_one_line(shown if event["event"] != "graph" else shown[:1])
    return f"{event.get('step', 0)} {event['event']}: {text if len(text) <= SHOWN else text[:SHOWN] + '…'}  #{digest}"


def lines_of(program):
    return [line_of(event) for event in events(program) if event["event"] not in LEFT_OUT]


def main(arguments):
    if arguments[0] == "--write":
        FOLDER.mkdir(exist_ok=True)
        programs = sorted(path for path in (Path(arguments[1]) / "lessons").glob("lesson_*") if os.access(path, os.X_OK) and path.is_file())
        wanted = {f"{program.name[7:]}.txt": lines_of(program) for program in programs}
        for name, lines in wanted.items():
            (FOLDER / name).write_text("\n".join(lines) + "\n")
        for stray in {path.name for path in FOLDER.glob("*.txt")} - set(wanted):
            print(f"tests/lesson/printed/{stray} does not belong to a lesson of {arguments[1]}")
        print(f"{len(wanted)} lessons, {sum(map(len, wanted.values()))} lines")
        return 0
    program = Path(arguments[0]).resolve()
    golden = FOLDER / f"{program.name[7:]}.txt"
    before = golden.read_text().splitlines() if golden.exists() else []
    changed = list(difflib.unified_diff(before, lines_of(program), "before", "now", lineterm="", n=1))
    if changed:
        print("\n".join(changed) + "\n\nIf the change is intended: python3 tests/lesson/printed_test.py --write BUILD")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
