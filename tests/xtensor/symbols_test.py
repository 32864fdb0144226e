"""Tests that the library's xtensor loops have symbol names that no program's loops have, since the linker keeps one of each.

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
# Without inlining, idx_tools functions, which only count indices, are symbols. They are equal in every program.
shared = [name for name in loops if "tally::cpu::Ours<" not in name and "::idx_tools<" not in name]
print("\n".join(shared) or f"{len(loops)} functions of the library assign by xtensor, none with a name that a program could have")
sys.exit(1 if shared or not loops else 0)
