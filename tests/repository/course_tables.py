#!/usr/bin/env python3
"""Writes the tables of docs/lessons.md and the counts of lessons, exercises and claims in README.md and docs/claims.md.

    course_tables.py            checks that the tables and counts are up to date
    course_tables.py --write    writes them

A new lesson or exercise gets a row whose second text is "?"; replace it.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lessons():
    """(number, slug, file, minutes) of each lesson, in the order of the course"""
    for page in sorted((ROOT / "lessons").glob("[0-9][0-9]_*.md")):
        minutes = re.search(r"^(\d+) minutes alone, \d+ in class", page.read_text(), re.M)[1]
        yield page.stem[:2], page.stem[3:].replace("_", "-"), page.name, int(minutes)


def exercises():
    """(number, slug, lesson, minutes, known mistakes) of each exercise, in the order of the course"""
    for folder in sorted((ROOT / "exercises").glob("[0-9][0-9]_*")):
        check = (folder / "check.cpp").read_text()
        lesson, minutes = (re.search(rf'\.{field} = "?([\w-]+)', check)[1] for field in ("lesson", "minutes"))
        yield int(folder.name[:2]), folder.name[3:].replace("_", "-"), lesson, int(minutes), (folder / "mistakes.txt").read_text().count("\n== ")


def with_table(page, heading, rows, row_of):
    """Replaces the rows of a table, and keeps the text of each row, which only the table contains."""
    begin = page.index("\n", page.index("\n|---", page.index(heading)) + 1) + 1
    end = page.index("\n\n", begin) + 1 if "\n\n" in page[begin:] else len(page)
    texts = dict(re.findall(r"^\| \d+ \| \[?([\w-]+).*? \| ([^|]*) \|", page[begin:end], re.M))
    return page[:begin] + "".join(row_of(*row, texts.get(row[1], "?")) + "\n" for row in rows) + page[end:]


def pages():
    """The path and the right text of each page."""
    every_lesson, every_exercise = list(lessons()), list(exercises())
    overview = ROOT / "docs" / "lessons.md"
    text = with_table(overview.read_text(), "| | lesson |", every_lesson,
                      lambda number, slug, page, minutes, known: f"| {number} | [{slug}](../lessons/{page}) | {known} | {minutes} |")
    yield overview, with_table(text, "| | exercise |", every_exercise, lambda number, slug, lesson, minutes, mistakes, task:
                               f"| {number} | {slug} | {task} | {lesson} | {minutes} | {mistakes} |")

    claims = ROOT / "docs" / "claims.md"
    text = claims.read_text()
    verdicts = re.findall(r"^\| [A-E]\d+ \| .* \| (right|right under conditions|misleading|wrong) \|", text, re.M)
    right, under_conditions, misleading, wrong = (verdicts.count(each) for each in ("right", "right under conditions", "misleading", "wrong"))
    counts = f"{len(verdicts)} claims: {right} right, {under_conditions} right under conditions, {misleading} misleading, {wrong} wrong"
    yield claims, re.sub(r"\d+ claims: \d+ right, \d+ right under conditions, \d+ misleading, \d+ wrong", counts, text)

    minutes = [each[3] for each in every_lesson]
    text = (ROOT / "README.md").read_text()
    for pattern, counted in ((r"\d+ \[lessons\]\(docs/lessons.md\) of \d+ to \d+ minutes", f"{len(minutes)} [lessons](docs/lessons.md) of {min(minutes)} to {max(minutes)} minutes"),
                             (r"\d+ \[exercises\]", f"{len(every_exercise)} [exercises]"),
                             (r"which of \d+ known", f"which of {sum(each[4] for each in every_exercise)} known"),
                             (r"\[\d+ claims\]", f"[{len(verdicts)} claims]"),
                             (r"Of the claims, \d+ are right", f"Of the claims, {right} are right")):
        text, found = re.subn(pattern, counted, text)
        assert found == 1, f"README.md does not contain {pattern}"
    yield ROOT / "README.md", text


def main(words):
    faults = []
    for name, numbers in (("lessons", [int(each[0]) for each in lessons()]), ("exercises", [each[0] for each in exercises()])):
        if numbers != list(range(1, len(numbers) + 1)):
            faults.append(f"the {name} have the numbers {numbers}; expected 1 to {len(numbers)}, each once")
    for path, text in pages():
        if words == ["--write"]:
            path.write_text(text)
        elif path.read_text() != text:
            faults.append(f"{path.relative_to(ROOT)} has old tables or counts of the course; run tests/repository/course_tables.py --write")
        if "| ? |" in text:
            faults.append(f"{path.relative_to(ROOT)} has a row without text: replace '?'")
    print("\n".join(faults or ["the tables and counts of the course are up to date"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
