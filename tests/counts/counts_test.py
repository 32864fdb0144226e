#!/usr/bin/env python3
# Checks that a step costs no more than its bars in bars.txt: buffers and bytes by the memory account, instructions by
# callgrind. bars.txt also has the tolerances. Times have no bars.
#
#     counts_test.py ledger COUNT_STEPS
#     counts_test.py instructions COUNT_STEPS COMPILER ARCHITECTURE BUILD_TYPE
#
# With --update as the first argument, the new counts are written to bars.txt.
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BARS = Path(__file__).with_name("bars.txt")
STEPS = ("toy", "toy-in-three", "chain", "chain-of-numbers", "small-network")
NAMED = "tests/counts/bars.txt"


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def read_bars(text):
    """Returns {(kind, step, what): number} and the tolerance of each kind."""
    bars, tolerance = {}, {}
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["tolerance"]:
            tolerance[words[1]] = float(words[2])
        elif words:
            kind, step, what, number = words
            bars[kind, step, what] = int(number)
    return bars, tolerance


def ledger(program):
    run = subprocess.run([program], capture_output=True, text=True, check=True)
    return {("ledger", step, what): int(number) for step, what, number in map(str.split, run.stdout.splitlines())}


def instructions(program, compiler, architecture, build_type):
    if not shutil.which("valgrind"):
        skip("no valgrind")
    if build_type != "Release":
        skip("instructions are counted in a Release build")
    if architecture != "x86-64-v3":
        skip(f"built for '{architecture}', bars are those of x86-64-v3 (valgrind knows no AVX-512): cmake --preset counts")
    counted = {}
    for step in STEPS:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out")
            run = subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=counted_steps",
                                  f"--callgrind-out-file={out}", program, step], capture_output=True, text=True,
                                 env=os.environ | {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1"})
            assert run.returncode == 0, run.stderr
            total = int(re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)[1])
            counted[compiler, step, "instructions"] = round(total / int(run.stdout))
    return counted


def update(counted):
    """Replaces the numbers of existing bars, and appends new bars."""
    left, lines = dict(counted), []
    for line in BARS.read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) == 4 and tuple(words[:3]) in left:
            line = " ".join([*words[:3], str(left.pop(tuple(words[:3])))])
        lines.append(line)
    lines += [" ".join([*key, str(number)]) for key, number in left.items()]
    BARS.write_text("\n".join(lines) + "\n")


def judge(counted, bars, tolerance):
    """Returns an error line for each count outside the tolerance of its bar."""
    wrong = []
    for key, number in counted.items():
        if key not in bars:
            wrong.append(f"{' '.join(key)}: no bar; it is {number}")
            continue
        allowed = tolerance["ledger" if key[0] == "ledger" else "instructions"]
        bar = bars[key]
        print(f"{' '.join(key)} {number} (bar {bar}, {allowed:.0%})")
        if number > bar * (1 + allowed):
            wrong.append(f"{' '.join(key)}: {number}, more than the bar of {bar}")
        elif number < bar * (1 - allowed):
            wrong.append(f"{' '.join(key)}: {number}, less than the bar of {bar}: lower the bar, so that it guards the improvement")
    return wrong


def main(words):
    updating = words[:1] == ["--update"]
    kind, *given = words[1:] if updating else words
    counted = {"ledger": ledger, "instructions": instructions}[kind](*given)
    if updating:
        update(counted)
        return 0
    bars, tolerance = read_bars(BARS.read_text())
    if kind == "instructions" and not any(key[0] == given[1] for key in bars):
        skip(f"no bars for {given[1]}; it counts {counted}")
    wrong = judge(counted, bars, tolerance)
    for line in wrong:
        print(line)
    if wrong:
        print(f"if that is meant: {sys.argv[0]} --update {' '.join(words)}, and say why in the commit ({NAMED})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
