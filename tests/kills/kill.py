#!/usr/bin/env python3
"""Kills trainings and examples at random times until they end, and compares their files with those of an undisturbed run.

    tests/kills/kill.py BUILD KILLS [SEED]

BUILD has tests/killed_training and, if they were built, examples/example_conv and example_text. A training resumes from its
checkpoint. An example has no checkpoint, so it starts again and overwrites its files. Prints a line for each kind. The exit code
is 1 if anything is lost: other bits, another line of metrics, an incomplete file, or a temporary file after the last run.
TERM ends the program after the current run, and the table then has the runs until that time.
"""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD, KILLS = Path(sys.argv[1]).resolve(), int(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(2**32)
VARIANTS = 12
ENVIRONMENT = dict(os.environ, OPENBLAS_NUM_THREADS="1")


def run(command, folder, seconds=None):
    """Returns whether the run ended before it was killed. An error of the program counts as a loss."""
    with subprocess.Popen([*command[:1], *(word.format(folder=folder) for word in command[1:])], cwd=folder, env=ENVIRONMENT,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        if process.returncode != 0:
            raise AssertionError(f"exit code {process.returncode}: {process.stderr.read().strip()}")
        return True


def content(folder):
    """Returns the content of each file, without speeds, which differ between runs."""
    files = {}
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        if path.name == "run.csv":
            data = re.sub(rb",[^,\n]*\n", b"\n", data)
        elif path.name == "run.jsonl":
            data = re.sub(rb', "samples_per_second": [^}]*', b"", data)
        elif path.name == "run.state":
            continue  # contains speeds, too; each resumed run has read it completely
        elif ".tmp-" in path.name:
            continue  # a killed process left it
        files[path.name] = data
    return files


def differences(found, wanted):
    return [f"'{name}' {'is additional' if name not in wanted else 'is missing' if name not in found else 'differs'}"
            for name in sorted(found.keys() | wanted.keys()) if found.get(name) != wanted.get(name)]


class Kind:
    def __init__(self, name, command, resumes):
        self.name, self.command, self.resumes = name, command, resumes
        self.runs = self.kills = self.temporaries = 0
        self.losses = []
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            run(command, folder)
            self.seconds = time.monotonic() - begun
            self.wanted = content(Path(folder))

    def once(self, draw, most):
        """Runs a training or example to its end, and kills it at most `most` times before."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                for _ in range(most):
                    # A resumed run makes progress in pieces. Other runs are killed anywhere, and end when they are not killed.
                    if run(self.command, folder, draw.uniform(0, self.seconds * (0.5 if self.resumes else 1))):
                        break
                    self.kills += 1
                    self.temporaries += sum(".tmp-" in name for name in os.listdir(folder))
                run(self.command, folder)
                self.losses += differences(content(Path(folder)), self.wanted)
            except AssertionError as error:
                self.losses.append(str(error))
            if self.losses:
                kept = tempfile.mkdtemp(prefix="tally-kills-")
                shutil.copytree(folder, kept, dirs_exist_ok=True)
                print(f"{self.name}: {self.losses[-1]}; the folder is kept as {kept}", file=sys.stderr)
        self.runs += 1


def main():
    draw, stopped = random.Random(SEED), []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    kinds = [Kind(f"training {variant}", [BUILD / "tests/killed_training", "{folder}", str(variant)], True)
             for variant in range(VARIANTS)]
    for name in ("conv", "text"):
        program = BUILD / f"examples/example_{name}"
        if program.exists():
            kinds.append(Kind(f"example {name}", [program, "8", "{folder}", "float"], False))
    killed = 0
    while killed < KILLS and not stopped:
        for kind in kinds:
            before = kind.kills
            kind.once(draw, min(KILLS - killed, 12 if kind.resumes else 3))
            killed += kind.kills - before
            if killed >= KILLS or stopped:
                break
    print(f"seed {SEED}\n\n| | runs | kills | temporaries left by them | losses |\n|---|---|---|---|---|")
    for kind in kinds:
        print(f"| {kind.name} | {kind.runs} | {kind.kills} | {kind.temporaries} | {len(kind.losses)} |")
    losses = sum(len(kind.losses) for kind in kinds)
    print(f"| all | {sum(kind.runs for kind in kinds)} | {killed} | {sum(kind.temporaries for kind in kinds)} | {losses} |")
    return losses > 0


sys.exit(main())
