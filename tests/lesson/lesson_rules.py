"""Checks the rules that apply to every lesson. Usage: lesson_rules.py LESSON_PROGRAM SCHEMA [ARGUMENT...]"""

import functools
import json
import os
import re
import subprocess
import sys

import predictions
from schema import Schema
from terminal_driver import clean_environment, run_tests, skip_where_it_does


@functools.cache  # several rules use the same run
def run(lesson, *arguments):
    result = subprocess.run([lesson, *sys.argv[3:], *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                            env=clean_environment())
    assert result.returncode == 0, f"exit {result.returncode}\n{result.stdout[-3000:]}{result.stderr}"
    return result.stdout


def test_predicts_and_checks_and_ends_well(lesson, schema):
    events = [json.loads(line) for line in run(lesson, "--json").splitlines()]
    for event in events:
        wrong = schema.errors(event)
        assert not wrong, f"{event}: {wrong}"
    end = events[-1]
    assert end["event"] == "end" and end["outcome"] == "ok", end
    names = [event["event"] for event in events]
    assert "prediction" in names, "every lesson asks for at least one prediction"
    assert "check" in names, "every lesson has a check"


def test_explains_in_statements(lesson, schema):
    for event in map(json.loads, run(lesson, "--json").splitlines()):
        if event["event"] == "prediction":
            assert not event["why"].rstrip().endswith("?"), f"the explanation is a question: {event['why']}"


def test_predictions_teach(lesson, schema):
    events = [json.loads(line) for line in run(lesson, "--json").splitlines()]
    faults = [f"{event['question']}: {fault}" for event in events if event["event"] == "prediction" for fault in predictions.faults(event, events)]
    assert not faults, "\n".join(faults)


def test_rows_add_up(lesson, schema):
    """A number in a column "in all" or "together" is the sum of the printed numbers to its left."""
    for event in map(json.loads, run(lesson, "--json").splitlines()):
        for name in {"in all", "together"} & set(event.get("columns", [])) if event["event"] == "table" else ():
            end = event["columns"].index(name)
            for row in event["values"]:
                parts = [cell for cell in row[:end] if not isinstance(cell, str)]
                assert sum(parts) == row[end], f"{event['columns']}: {row}"


def around(printed):
    """Returns the range of numbers with this printed form."""
    half = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    return float(printed) - half, float(printed) + half


def test_ratios_hold_as_printed(lesson, schema):
    """A number in a column "ratio" is the quotient of the two numbers to its left, within their printed digits."""
    for event in map(json.loads, run(lesson, "--json").splitlines()):
        if event["event"] == "table" and "ratio" in event["columns"][2:]:
            at = event["columns"].index("ratio")
            for row in event["text"]:
                (a, b), (c, d), (low, high) = (around(cell) for cell in row[at - 2:at + 1])
                assert c > 0 and low <= max(a / c, a / d, b / c, b / d) and min(a / c, a / d, b / c, b / d) <= high, row


def test_a_step_is_at_most_16_lines_of_80_columns(lesson, schema):
    plain = run(lesson, "--plain")
    for line in plain.splitlines():
        assert len(line) <= 80, f"{len(line)} columns: {line}"
    # A terminal shows all checks that hold in one line. Lines of progress are not part of a step.
    lasting = re.sub(r"\n +\d+ % \(\d+ of \d+\):[^\n]*(?=\n)", "", plain)
    for step in re.split(r"\n\n(?= \[\d+/\d+\] )", lasting)[1:]:
        shown = re.split(r"\n\n \[(?:ok|FAIL|skip)\] lesson ", step)[0].rstrip("\n")
        others, checks = re.subn(r"\n {7}\[ok\][^\n]*(?:\n {12}[^\n]*)*", "", shown)
        lines = others.split("\n") + [f"{checks} checks hold"] * bool(checks)
        assert len(lines) <= 16, f"{len(lines)} lines:\n" + "\n".join(lines)


def test_fits_a_narrow_window(lesson, schema):
    for line in run(lesson, "--plain", "--width=60").splitlines():
        assert len(line) <= 60, line


def test_pure_ascii(lesson, schema):
    spoken = run(lesson, "--plain", "--ascii")
    assert spoken.isascii()
    assert spoken.count("?") == run(lesson, "--plain").count("?"), "the text has characters other than ASCII"


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    skip_where_it_does(program, *sys.argv[3:])
    run_tests(sys.modules[__name__], program, Schema(sys.argv[2]))
