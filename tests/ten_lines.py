#!/usr/bin/env python3
"""How much of tally the README's ten lines compile: bytes are bounded, seconds are told.

    ten_lines.py COMPILER INCLUDE_PATH
"""
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILER, INCLUDE_PATH = sys.argv[1].split(), Path(sys.argv[2]).resolve()
MOST_BYTES = 20_000  # of code in the user's object; most of what is there is main and what it prints with


def compiled(name, source, folder):
    """Bytes of code in the object, and the compiler's seconds."""
    (folder / f"{name}.cpp").write_text(source)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*COMPILER, "-std=c++20", "-O2", "-ffp-contract=off", "-I", INCLUDE_PATH, "-c", f"{name}.cpp", "-o", f"{name}.o"],
                   cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sections = subprocess.run(["size", "-A", f"{name}.o"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    code = sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", sections, re.M))
    return code, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    lines = re.search(r"## tally in ten lines\n\n```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    assert "#include <tally/core.hpp>" in lines, "the README's ten lines do not begin with core.hpp"
    with tempfile.TemporaryDirectory() as folder:
        code, seconds = compiled("ten_lines", lines, Path(folder))
        _, alone = compiled("iostream", "#include <iostream>\nint main() { std::cout << 1; }\n", Path(folder))
    print(f"the README's ten lines: {code} bytes of code, {seconds:.2f} s; <iostream> alone {alone:.2f} s")
    assert 1000 < code <= MOST_BYTES, f"{code} bytes of code; {MOST_BYTES} are the bound: what is compiled there that src/instances could have?"


try:
    subprocess.run(["size", "--version"], stdout=subprocess.DEVNULL, check=True)
except OSError:
    print("skipped: no size, of binutils")
    sys.exit(77)
main()
