#!/usr/bin/env python3
"""The program of docs/processes.md, by 1, 2, 3 and 5 processes, prints what the page says.

    page_test.py MPIEXEC "COMPILER FLAGS..." INCLUDE_PATH LIBRARY...
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MPIEXEC, compiler, path, *libraries = sys.argv[1:]
page = (Path(__file__).resolve().parents[2] / "docs" / "processes.md").read_text()
program = re.search(r"^```cpp\n(.*?)^```", page, re.M | re.S).group(1)
expected = re.findall(r'<< "\\n"; +// (.*)', program)
faults = 0 if len(expected) == 2 else 1
with tempfile.TemporaryDirectory() as folder:
    source, binary = Path(folder, "program.cpp"), Path(folder, "program")
    source.write_text(program)
    subprocess.run([*compiler.split(), "-std=c++20", "-ffp-contract=off", f"-I{path}", source, *libraries, "-o", binary], check=True)
    for ranks in (1, 2, 3, 5):
        done = subprocess.run([MPIEXEC, "-n", str(ranks), binary], capture_output=True, text=True, timeout=60)
        right = done.returncode == 0 and done.stdout.splitlines() == expected
        print(f"{ranks} processes: {'as the page says' if right else done.stdout + done.stderr}")
        faults += not right
sys.exit(1 if faults else 0)
