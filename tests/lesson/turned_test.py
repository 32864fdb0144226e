"""Whatever the numbers of a lesson are turned to, its checks hold. Usage: turned_test.py LESSON_PROGRAM SCHEMA [SEED]

What can be turned, and from where to where, the lesson says itself (--describe). Three settings are drawn, each with a --seed and one of
the two types, after those at the ends of each range: every check must hold, every line keep to 80 columns and every step to 14 lines,
every event the schema and every prediction its rules. What is out of range or not declared is refused, and the range named.
"""

import json
import os
import random
import re
import subprocess
import sys

import predictions
from schema import Schema
from terminal_driver import clean_environment, skip_where_it_does

DRAWN = 3
DEVICE = []  # what a lesson runs on, if not on the CPU


def run(lesson, *words):
    return subprocess.run([lesson, *DEVICE, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=clean_environment())


def cut(chance, total):
    """total as positive parts, all cuts alike."""
    sizes = [1]
    for _ in range(total - 1):
        if chance.random() < 0.5:
            sizes.append(1)
        else:
            sizes[-1] += 1
    return ",".join(map(str, sizes))


def drawn(chance, dial):
    if dial["kind"] == "parts":
        return cut(chance, int(dial["most"]))
    if dial["kind"] == "several":
        return ",".join(str(chance.randint(int(dial["least"]), int(dial["most"]))) for _ in dial["usual"])
    if dial["among"]:
        return f"{chance.choice(dial['among']):g}"
    if dial["kind"] == "whole":
        return str(chance.randint(int(dial["least"]), int(dial["most"])))
    return f"{max(dial['least'], min(dial['most'], round(chance.uniform(dial['least'], dial['most']), 3))):g}"


def ends(dial):
    if dial["kind"] == "parts":
        total = int(dial["most"])
        return [f"{total}", ",".join(["1"] * total), f"1,{total - 1}", f"{total - 1},1"]
    if dial["kind"] == "several":
        all_of = [",".join([f"{number:g}"] * len(dial["usual"])) for number in (dial["least"], dial["most"], max(dial["least"], 0))]
        return [*all_of, ",".join(f"{number:g}" for number in (dial["least"], dial["most"], *dial["usual"])[:len(dial["usual"])])]
    return [f"{number:g}" for number in dial["among"] or (dial["least"], dial["most"])]


def refused(dial):
    """What is none of its numbers, and none at all."""
    most = int(dial["most"])
    if dial["kind"] == "several":
        count = len(dial["usual"])
        return [",".join([f"{most + 1}"] * count), ",".join([f"{int(dial['least']) - 1}"] * count), ",".join([f"{most}"] * (count + 1)),
                "nan", "three", "", "1,,2", "0x1", "1.5", "-", "1-", "--1"]
    over = f"{most},1" if dial["kind"] == "parts" else f"{most + 1}"
    return [over, "0", "-1", "nan", "inf", "three", "1e999", "", "1,,2", "0x1", *(["1.5"] if dial["kind"] != "real" else [])]


def settings(chance, dials):
    for dial in dials:
        yield from ([f"--{dial['name']}={end}"] for end in ends(dial))
    for _ in range(DRAWN):
        yield [f"--{dial['name']}={drawn(chance, dial)}" for dial in dials] + [
            f"--seed={chance.randrange(1000)}", f"--dtype={chance.choice(['float32', 'float64'])}"]


def faults_of(lesson, schema, words):
    told = run(lesson, "--json", *words)
    events = [json.loads(line) for line in told.stdout.splitlines()]
    if told.returncode != 0 or not events or events[-1]["outcome"] != "ok":
        yield from (f"[FAIL] {event['name']}: {event['detail']}" for event in events if event["event"] == "check" and not event["ok"])
        yield f"exit {told.returncode}: {events[-1]['detail'] if events else ''}{told.stderr}"
        return
    for event in events:
        yield from schema.errors(event)
        if event["event"] == "prediction":
            yield from (f"{event['question']}: {fault}" for fault in predictions.faults(event, events))
    # How far long work has come is no part of a step.
    plain = re.sub(r"\n +[^\n]*: \d+ % \(\d+ of \d+\)(?=\n)", "", run(lesson, "--plain", *words).stdout)
    yield from (f"{len(line)} columns: {line}" for line in plain.splitlines() if len(line) > 80)
    yield from (f"not English: {line}" for line in plain.splitlines() if re.search(r"\b(?:1|[Oo]ne) (?:rows|items|layers|micro-batches|updates)\b", line))
    for step in re.split(r"\n\n(?= \[\d+/\d+\] )", plain)[1:]:
        others, checks = re.subn(r"\n {7}\[ok\][^\n]*(?:\n {12}[^\n]*)*", "", re.split(r"\n\n \[ok\] lesson ", step)[0].rstrip("\n"))
        if others.count("\n") + 1 + bool(checks) > 14:
            yield f"more than 14 lines: {others.splitlines()[0]}"


def main(lesson, schema, seed):
    dials = json.loads(run(lesson, "--describe").stdout).get("dials", [])
    if dials and run(lesson, "--quiet").returncode == 77:  # it wants a GPU
        DEVICE.append("--device=pretend")
        skip_where_it_does(lesson, *DEVICE)  # nor can it start processes
    chance, wrong, count = random.Random(seed), [], 0
    for words in settings(chance, dials) if dials else ():
        count += 1
        wrong += [f"{' '.join(words)}: {fault}" for fault in faults_of(lesson, schema, words)]
    taken = {dial["name"] for dial in dials}
    told = run(lesson, "--help").stdout
    for name in ("micro", "split", "rate", "items", "steps", "ranks", "values"):
        if (f"--{name} " in told) != (name in taken):
            wrong.append(f"--help and --describe disagree on --{name}")
        dial = next((dial for dial in dials if dial["name"] == name), None)
        for text in refused(dial) if dial else ["1"]:
            answer = run(lesson, f"--{name}={text}", "--plain")
            sentence = "it must be" if dial else "this lesson has no such number"
            if answer.returncode != 2 or answer.stdout or (text and sentence not in answer.stderr):
                wrong.append(f"--{name}={text}: exit {answer.returncode}, {answer.stderr!r}")
    print(f"{os.path.basename(lesson)}, seed {seed}: {count} settings of {sorted(taken)}, {len(wrong)} faults", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), Schema(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)))
