"""Tests the order, prerequisites, minutes and suggested commands of the course. Usage: course_test.py BUILD SCHEMA"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

from schema import Schema
from terminal_driver import ROOT, RUNNER, clean_environment, given_build, run_tests


def run(build, *words):
    root, environment = given_build(build)
    with root, tempfile.TemporaryDirectory() as work:
        return subprocess.run([*RUNNER, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=work,
                              env=clean_environment(**environment, TALLY_WORK=work, TALLY_IMAGES="672"))


def lessons(build):
    return [json.loads(line) for line in run(build, "list", "--json").stdout.splitlines()]


def test_every_lesson_has_minutes_and_a_rule(build, schema):
    for lesson in lessons(build):
        assert not schema.errors(lesson), (lesson, schema.errors(lesson))
        assert {"in_class", "after", "exercises", "rule", "suggestion", "try"} <= set(lesson), lesson
        assert lesson["in_class"] >= lesson["minutes"] and 40 <= len(lesson["rule"]) <= 110 and lesson["rule"].endswith("."), lesson


def test_prerequisites_come_first(build, schema):
    seen = set()
    for lesson in lessons(build):
        assert set(lesson["after"]) <= seen, lesson
        assert lesson["after"] or not seen, f"{lesson['slug']} has no prerequisite"
        seen.add(lesson["slug"])


def test_minutes_follow_the_formula(build, schema):
    """Compares the minutes with two formulas. Alone, a learner reads 150 words a minute, and needs 1.5 minutes for a
    prediction and 0.5 for each table, value, code or picture. A class reads 110 words a minute, and needs 4 minutes for a prediction and 1 for
    each thing shown. The minutes are a multiple of five near the result."""
    faults = []
    for lesson in lessons(build):
        device = ["--device=simulated"] if lesson["slug"] == "on-the-gpu" else []
        events = [json.loads(line) for line in run(build, "run", lesson["slug"], "--json", *device).stdout.splitlines()]
        if events[-1]["outcome"] == "skip":
            continue  # without MPI the lesson is skipped
        text = " ".join(str(event[key]) for event in events for key in ("text", "question", "options", "why") if key in event and event["event"] != "tensor" and
                        event["event"] != "table")
        words = len(text.split())
        asked = sum(event["event"] == "prediction" for event in events)
        shown = sum(event["event"] in ("table", "tensor", "source", "graph", "plot") for event in events)
        for minutes, reckoned in ((lesson["minutes"], words / 150 + 1.5 * asked + 0.5 * shown), (lesson["in_class"], words / 110 + 4 * asked + shown)):
            if not math.ceil(reckoned / 5) * 5 - 5 <= minutes <= math.ceil(reckoned / 5) * 5 + 5:
                faults.append(f"{lesson['slug']}: {minutes} minutes, and the formula gives {reckoned:.1f}")
    assert not faults, "\n".join(faults)


def test_each_exercise_belongs_to_a_lesson_that_names_it(build, schema):
    named = {lesson["slug"]: lesson["exercises"] for lesson in lessons(build)}
    for check in sorted(ROOT.glob("exercises/[0-9]*/check.cpp")):
        lesson, slug = re.search(r'\.lesson = "([\w-]+)"', check.read_text())[1], check.parent.name[3:].replace("_", "-")
        assert slug in named.get(lesson, []), f"exercise {slug} belongs to lesson {lesson}, whose page names {named.get(lesson)}"


def test_suggested_commands_work(build, schema):
    exercises = {path.stem.split("_", 1)[1].replace("_", "-") for path in (ROOT / "exercises").glob("[0-9]*")}
    for lesson in lessons(build):
        assert set(lesson["exercises"]) <= exercises, lesson
        program, command, *words = lesson["try"].split()
        assert program == "./learn", lesson
        if command == "check":
            assert words and words[0] in exercises, lesson
            continue
        assert words[0] == lesson["slug"], lesson
        result = run(build, command, *words, *(["--plain"] if command == "run" else []))
        if result.returncode == 77:
            continue  # without MPI the lesson is skipped
        assert result.returncode == 0, (lesson["try"], result.stdout[-500:], result.stderr)
        if command == "run" and "--device" not in words:
            assert result.stdout != run(build, "run", lesson["slug"], "--plain").stdout, f"{lesson['try']} shows nothing new"


if __name__ == "__main__":
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]), Schema(sys.argv[2]))
