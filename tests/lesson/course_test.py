"""The course as a whole: its order, what comes before, its minutes, and what a learner is told to try. Usage: course_test.py LEARN_RUNNER SCHEMA"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from schema import Schema
from terminal_driver import clean_environment, run_tests

ROOT = Path(__file__).resolve().parents[2]


def run(runner, *words):
    with tempfile.TemporaryDirectory() as work:
        return subprocess.run([runner, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=work,
                              env=clean_environment(TALLY_WORK=work, TALLY_IMAGES="672"))


def lessons(runner):
    return [json.loads(line) for line in run(runner, "list", "--json").stdout.splitlines()]


def page(lesson):
    return (ROOT / f"lessons/{lesson['lesson']:02}_{lesson['slug'].replace('-', '_')}.md").read_text(encoding="utf-8")


def test_every_lesson_is_in_the_syllabus(runner, schema):
    for lesson in lessons(runner):
        assert not schema.errors(lesson), (lesson, schema.errors(lesson))
        assert {"in_class", "after", "task", "rule", "try"} <= set(lesson), lesson
        assert lesson["in_class"] >= lesson["minutes"] and 40 <= len(lesson["rule"]) <= 110 and lesson["rule"].endswith("."), lesson


def test_what_a_lesson_comes_after_comes_before_it(runner, schema):
    seen = set()
    for lesson in lessons(runner):
        assert set(lesson["after"]) <= seen, lesson
        assert lesson["after"] or not seen, f"{lesson['slug']} comes after nothing"
        seen.add(lesson["slug"])


def test_the_pages_say_the_same(runner, schema):
    numbers = {lesson["slug"]: lesson["lesson"] for lesson in lessons(runner)}
    for lesson in lessons(runner):
        text = " ".join(page(lesson).split())
        assert f"**Minutes.** {lesson['minutes']} alone, {lesson['in_class']} in class" in text, lesson["slug"]
        before = re.search(r"\*\*Before it\.\*\*([^*]*?)(?:##|\. |\.$|\*\*)", text + " ")
        named = [int(number) for number in re.findall(r"[Ll]esson (\d+)", before.group(1))] if before else []
        assert named == [numbers[slug] for slug in lesson["after"]], (lesson["slug"], named, lesson["after"])


def test_the_minutes_are_reckoned(runner, schema):
    """As docs/teaching.md has it: words that are read, things that are looked at, and predictions that are discussed."""
    faults = []
    for lesson in lessons(runner):
        device = ["--device=pretend"] if lesson["slug"] == "on-the-gpu" else []
        events = [json.loads(line) for line in run(runner, "run", lesson["slug"], "--json", *device).stdout.splitlines()]
        if events[-1]["outcome"] == "skip":
            continue  # there is no MPI to start its processes
        text = " ".join(str(event[key]) for event in events for key in ("text", "question", "options", "why") if key in event and event["event"] != "tensor" and
                        event["event"] != "table")
        words = len(text.split())
        asked = sum(event["event"] == "prediction" for event in events)
        shown = sum(event["event"] in ("table", "tensor", "source", "graph", "plot") for event in events)
        for minutes, reckoned in ((lesson["minutes"], words / 150 + 1.5 * asked + 0.5 * shown), (lesson["in_class"], words / 110 + 4 * asked + shown)):
            if not math.ceil(reckoned / 5) * 5 - 5 <= minutes <= math.ceil(reckoned / 5) * 5 + 5:
                faults.append(f"{lesson['slug']}: {minutes} minutes, and {reckoned:.1f} are reckoned")
    assert not faults, "\n".join(faults)


def test_what_is_there_to_try_can_be_tried(runner, schema):
    exercises = {path.stem.split("_", 1)[1].replace("_", "-") for path in (ROOT / "exercises").glob("[0-9]*.cpp")}
    for lesson in lessons(runner):
        assert lesson["task"] in exercises | {""}, lesson
        program, command, *words = lesson["try"].split()
        assert program == "./learn", lesson
        if command == "check":
            assert words and words[0] in exercises, lesson
            continue
        assert words[0] == lesson["slug"], lesson
        result = run(runner, command, *words, *(["--plain"] if command == "run" else []))
        assert result.returncode == 0, (lesson["try"], result.stdout[-500:], result.stderr)
        if command == "run" and "--device" not in words:
            assert result.stdout != run(runner, "run", lesson["slug"], "--plain").stdout, f"{lesson['try']} shows nothing new"


def test_the_plans_and_the_glossary_name_what_there_is(runner, schema):
    slugs = {lesson["slug"]: lesson for lesson in lessons(runner)}
    teaching = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
    for command, slug in re.findall(r"\./learn (run|check) ([a-z][a-z-]*)", teaching):
        assert slug == "all" or (slug in slugs if command == "run" else (ROOT / "exercises").glob(f"*_{slug.replace('-', '_')}.cpp")), slug
    for title, table in re.findall(r"## (\d+ minutes|A day)[^\n]*\n(.*?)(?=\n## )", teaching, re.S):
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines() if row.startswith("|")][2:]
        total = sum(int(row[0]) for row in rows)
        limit = {"45 minutes": 45, "90 minutes": 90, "A day": 360}[title]
        assert total == limit, (title, total)
        for row in rows:
            for slug in re.findall(r"`run ([a-z-]+)`", row[1]):
                assert slug in slugs, (title, slug)
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| \[(.+?)\]\(\.\./lessons/(.+?)\) \|$", glossary, re.M)
    assert len(terms) >= 30 and [term.lower() for term, *_ in terms] == sorted(term.lower() for term, *_ in terms)
    faults = []
    for term, meaning, slug, path in terms:
        assert slug in slugs and (ROOT / "lessons" / path).name == f"{slugs[slug]['lesson']:02}_{slug.replace('-', '_')}.md", (term, slug, path)
        assert len(meaning) <= 160 and not meaning.endswith("."), f"one clause: {term}"
        source = (ROOT / "lessons" / path).with_suffix(".cpp").read_text(encoding="utf-8")
        stem = re.sub(r"[^a-z]", "", term.lower().split()[0])[:6]
        if stem not in re.sub(r"[^a-z]", "", (page(slugs[slug]) + source).lower()):
            faults.append(f"{term} is not in {slug}")
    assert not faults, "\n".join(faults)


if __name__ == "__main__":
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]), Schema(sys.argv[2]))
