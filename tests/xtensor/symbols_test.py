"""The library's loops over views of xtensor bear names that no program's loops have: the linker keeps one of each name.

    symbols_test.py LIBRARY
"""
import re
import subprocess
import sys

try:
    symbols = subprocess.run(["nm", "-C", "--defined-only", sys.argv[1]], check=True, capture_output=True, text=True).stdout
except OSError:
    print("skipped: no nm, of binutils")
    sys.exit(77)
loops = re.findall(r"^\w+ [WVu] (.*\bxt::\w*assign\w*.*)$", symbols, re.M)
# Where little is inlined, what counts indices is there, too: it reads no number, and is the same in every program.
shared = [name for name in loops if "tally::cpu::Ours<" not in name and "::idx_tools<" not in name]
print("\n".join(shared) or f"{len(loops)} functions of the library assign by xtensor, none under a name that a program's could have")
sys.exit(1 if shared or not loops else 0)
