#!/usr/bin/env python3
"""Tests that the programs of docs/processes.md print the results of the page with 1, 2, 3 and 5 processes.

    page_test.py MPIEXEC "COMPILER FLAGS..." INCLUDE_PATH LIBRARY...
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MPIEXEC, compiler, path, *libraries = sys.argv[1:]
page = (Path(__file__).resolve().parents[2] / "docs" / "processes.md").read_text()
programs = re.findall(r"^```cpp\n(#include .*?)^```", page, re.M | re.S)
faults = 0 if len(programs) == 2 else 1


def printed(program):
    """Returns the output of a program for each number of processes."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "program.cpp"), Path(folder, "program")
        source.write_text(program)
        subprocess.run([*compiler.split(), "-std=c++20", "-ffp-contract=off", f"-I{path}", source, *libraries, "-o", binary], check=True)
        done = {ranks: subprocess.run([MPIEXEC, "-n", str(ranks), binary], capture_output=True, text=True, timeout=60, cwd=folder) for ranks in (1, 2, 3, 5)}
        return {ranks: done.stdout if done.returncode == 0 else done.stderr for ranks, done in done.items()}


for number, program in enumerate(programs, 1):
    expected = re.findall(r'<< "\\n"; +// (.*)', program)
    faults += not expected
    for ranks, output in printed(program).items():
        right = output.splitlines() == expected
        print(f"program {number}, {ranks} processes: {'as on the page' if right else output}")
        faults += not right
sys.exit(1 if faults else 0)
