"""Checks that an example learns and agrees with PyTorch. Usage: examples_test.py reference|pytorch|ranks PROGRAM FOLDER

reference: compares the first losses with those of PyTorch that FOLDER/curve.csv has recorded.
pytorch: runs the PyTorch version FOLDER/pytorch.py and also compares the weights; skipped without PyTorch.
ranks: runs the example on 1, 2 and 3 processes. With exact sums, its output and files have the bits of a run without MPI. With
running sums, the losses agree within the bounds for PyTorch.
"""
import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM, FOLDER = Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
COMPARED = 5  # updates; later ones may differ more, as the example's README explains
# Bounds for the relative difference of a loss and the difference of a weight, which is of the order of 1. Measured are a few
# roundings: 2e-7 and 1e-15 for losses, 7e-7 and 4e-15 for weights.
BOUNDS = {"float": (1e-5, 1e-5), "double": (1e-12, 1e-12)}


def numbers(lines, name):
    return [float(found) for found in re.findall(rf"(?<!\S){re.escape(name)} +(\S+)", lines)]


def example(folder, dtype, updates):
    # Runs in a folder without data/, so that the example uses drawn pictures, which are the same everywhere.
    done = subprocess.run([PROGRAM, str(updates), folder, dtype], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    losses = numbers(done.stdout, "loss")
    assert len(losses) == updates, done.stdout
    return losses


def expect_recorded(losses, dtype):
    with open(FOLDER / "curve.csv", newline="") as file:
        recorded = [float(row[f"pytorch {dtype}"]) for row in csv.DictReader(file)][:COMPARED]
    apart = max(abs(ours - theirs) / theirs for ours, theirs in zip(losses, recorded, strict=True))
    print(f"{dtype}: the first {COMPARED} losses are within {apart:.2g} of those recorded")
    assert apart <= BOUNDS[dtype][0], (losses, recorded)


def reference():
    with tempfile.TemporaryDirectory() as folder:
        losses = example(folder, "float", 25)
        expect_recorded(losses[:COMPARED], "float")
        expect_recorded(example(folder, "double", COMPARED), "double")
    late = sum(losses[-5:]) / 5
    print(f"float: the loss falls from {losses[0]:.3f} to {late:.3f}")
    assert late < 0.8 * losses[0], losses


def python_with_torch():
    for python in (sys.executable, "python3", "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import numpy, torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return python
        except OSError:
            pass
    print("skipped: no PyTorch")
    sys.exit(77)


def pytorch():
    python = python_with_torch()
    for dtype in BOUNDS:
        with tempfile.TemporaryDirectory() as folder:
            losses = example(folder, dtype, COMPARED)
            output = subprocess.run([python, FOLDER / "pytorch.py", folder], check=True, stdout=subprocess.PIPE, text=True).stdout
        expect_recorded(losses, dtype)
        expect_recorded(numbers(output, "loss"), dtype)
        apart = max(numbers(output, "others") or numbers(output, "max|dw|"))
        print(f"{dtype}: the weights are within {apart:.2g} of PyTorch's")
        assert apart <= BOUNDS[dtype][1], output


def left_by(command, dtype, sums):
    """Runs a command, and returns its output and the files that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, str(COMPARED), folder, dtype, sums], cwd=folder, stdout=subprocess.PIPE, text=True, timeout=100,
                              check=True, env={**os.environ, "BUILD": str(PROGRAM.parents[1])})
        return done.stdout, {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def ranks():
    by = {count: [FOLDER.parent / "run", FOLDER.name, "--ranks", str(count)] for count in (1, 2, 3)}
    for dtype, (bound, _) in BOUNDS.items():
        alone, files = left_by([PROGRAM], dtype, "exact")
        assert sum(name.startswith("weights-") for name in files) == COMPARED + 1, sorted(files)
        running = numbers(left_by([PROGRAM], dtype, "running")[0], "loss")
        for count, command in by.items():
            together, their_files = left_by(command, dtype, "exact")
            assert together == alone, f"{count} processes, {dtype}:\n{together}\n{alone}"
            assert their_files == files, f"{count} processes, {dtype}: other weights"
            theirs = numbers(left_by(command, dtype, "running")[0], "loss")
            apart = max(abs(a - b) / b for a, b in zip(theirs, running, strict=True))
            print(f"{dtype}, {count} processes: with exact sums the same bits, with running sums losses within {apart:.2g}")
            assert apart <= bound, (theirs, running)


{"reference": reference, "pytorch": pytorch, "ranks": ranks}[sys.argv[1]]()
