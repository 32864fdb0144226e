"""Tests that the checks of a lesson hold for all values of its parameters. Usage: settings_test.py LESSON_PROGRAM SCHEMA [SEED]

The lesson lists its parameters and their ranges (--describe). The test uses the ends of each range, then three random settings with a
random --seed. Every check must hold, and the numbers must agree with exact values (tests/lesson/exact). Lines have at most 80 columns and steps at most 16 lines. Events must match the schema
and predictions must follow their rules. A value out of range and an undeclared parameter must be rejected with an error.
"""

import json
import os
import random
import re
import subprocess
import sys

import exact_values
import predictions
from schema import Schema
from terminal_driver import clean_environment, skip_where_it_does

DRAWN = 3
DEVICE = []  # the flag for a lesson that does not run on the CPU


def run(lesson, *words):
    return subprocess.run([lesson, *DEVICE, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=clean_environment())


def drawn(chance, parameter):
    if parameter["kind"] == "several":
        return ",".join(str(chance.randint(int(parameter["least"]), int(parameter["most"]))) for _ in parameter["usual"])
    if parameter["among"]:
        return f"{chance.choice(parameter['among']):g}"
    if parameter["kind"] == "whole":
        return str(chance.randint(int(parameter["least"]), int(parameter["most"])))
    return f"{max(parameter['least'], min(parameter['most'], round(chance.uniform(parameter['least'], parameter['most']), 3))):g}"


def ends(parameter):
    if parameter["kind"] == "several":
        all_of = [",".join([f"{number:g}"] * len(parameter["usual"])) for number in (parameter["least"], parameter["most"], max(parameter["least"], 0))]
        return [*all_of, ",".join(f"{number:g}" for number in (parameter["least"], parameter["most"], *parameter["usual"])[:len(parameter["usual"])])]
    return [f"{number:g}" for number in parameter["among"] or (parameter["least"], parameter["most"])]


def invalid_texts(parameter):
    """Returns texts that are not valid values of the parameter."""
    most = int(parameter["most"])
    if parameter["kind"] == "several":
        count = len(parameter["usual"])
        return [",".join([f"{most + 1}"] * count), ",".join([f"{int(parameter['least']) - 1}"] * count), ",".join([f"{most}"] * (count + 1)),
                "nan", "three", "", "1,,2", "0x1", "1.5", "-", "1-", "--1"]
    return [f"{most + 1}", "0", "-1", "nan", "inf", "three", "1e999", "", "1,,2", "0x1", *(["1.5"] if parameter["kind"] != "real" else [])]


def settings(chance, parameters):
    yield []
    for parameter in parameters:
        yield from ([f"--{parameter['name']}={end}"] for end in ends(parameter))
    for _ in range(DRAWN):
        yield [f"--{parameter['name']}={drawn(chance, parameter)}" for parameter in parameters] + [
            f"--seed={chance.randrange(1000)}"]


def faults_of(lesson, schema, words, parameters):
    answer = run(lesson, "--json", *words)
    events = [json.loads(line) for line in answer.stdout.splitlines()]
    if answer.returncode != 0 or not events or events[-1]["outcome"] != "ok":
        yield from (f"[FAIL] {event['name']}: {event['detail']}" for event in events if event["event"] == "check" and not event["ok"])
        yield f"exit {answer.returncode}: {events[-1]['detail'] if events else ''}{answer.stderr}"
        return
    for event in events:
        yield from schema.errors(event)
        if event["event"] == "prediction":
            yield from (f"{event['question']}: {fault}" for fault in predictions.faults(event, events))
    yield from exact_values.faults(events[0]["slug"], answer.stdout, parameters, words)
    # Lines of progress are not part of a step.
    plain = re.sub(r"\n +[^\n]*: \d+ % \(\d+ of \d+\)(?=\n)", "", run(lesson, "--plain", *words).stdout)
    yield from (f"{len(line)} columns: {line}" for line in plain.splitlines() if len(line) > 80)
    yield from (f"not English: {line}" for line in plain.splitlines() if re.search(r"\b(?:1|[Oo]ne) (?:rows|items|layers|micro-batches|updates)\b", line))
    for step in re.split(r"\n\n(?= \[\d+/\d+\] )", plain)[1:]:
        others, checks = re.subn(r"\n {7}\[ok\][^\n]*(?:\n {12}[^\n]*)*", "", re.split(r"\n\n \[ok\] lesson ", step)[0].rstrip("\n"))
        if others.count("\n") + 1 + bool(checks) > 16:
            yield f"more than 16 lines: {others.splitlines()[0]}"


def main(lesson, schema, seed):
    parameters = json.loads(run(lesson, "--describe").stdout).get("parameters", [])
    if parameters and run(lesson, "--quiet").returncode == 77:  # the lesson requires a GPU
        DEVICE.append("--device=simulated")
        skip_where_it_does(lesson, *DEVICE)  # the lesson cannot start processes here
    chance, wrong, count = random.Random(seed), [], 0
    for words in settings(chance, parameters):
        count += 1
        wrong += [f"{' '.join(words)}: {fault}" for fault in faults_of(lesson, schema, words, parameters)]
    taken = {parameter["name"] for parameter in parameters}
    help_text = run(lesson, "--help").stdout
    for name in ("micro", "rate", "items", "steps", "ranks", "values"):
        if (f"--{name} " in help_text) != (name in taken):
            wrong.append(f"--help and --describe disagree on --{name}")
        parameter = next((parameter for parameter in parameters if parameter["name"] == name), None)
        for text in invalid_texts(parameter) if parameter else ["1"]:
            answer = run(lesson, f"--{name}={text}", "--plain")
            sentence = "it must be" if parameter else "this lesson has no such parameter"
            if answer.returncode != 2 or answer.stdout or (text and sentence not in answer.stderr):
                wrong.append(f"--{name}={text}: exit {answer.returncode}, {answer.stderr!r}")
    print(f"{os.path.basename(lesson)}, seed {seed}: {count} settings of {sorted(taken)}, {len(wrong)} faults", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), Schema(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)))
