#!/usr/bin/env python3
"""Limits the headers that the ten lines of docs/tensors.md read and the code that they compile to, and prints the seconds.

    ten_lines.py COMPILER INCLUDE_PATH
"""
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER, INCLUDE_PATH = sys.argv[1].split(), Path(sys.argv[2]).resolve()
MOST_BYTES = 20_000  # of code in the user's object, mostly main() and its output
MOST_LINES = 5_750  # of tally's own headers, comments included
# The standard headers that core.hpp may include; each costs every user compile time. <functional>, <memory>, <algorithm> and <deque> are
# not allowed: together they would cost a quarter of all the others.
STANDARD = set("""array atomic bit cmath concepts cstddef cstdint cstring initializer_list iosfwd iterator limits new numbers optional ostream
    span stdexcept string string_view tuple type_traits utility vector""".split())


def compiled(name, source, folder):
    """Compiles a source, and returns the bytes of code in the object and the compiler's seconds."""
    (folder / f"{name}.cpp").write_text(source)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*COMPILER, "-std=c++20", "-O2", "-ffp-contract=off", "-I", INCLUDE_PATH, "-c", f"{name}.cpp", "-o", f"{name}.o"],
                   cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sections = subprocess.run(["size", "-A", f"{name}.o"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
    code = sum(int(size) for size in re.findall(r"^\.text\S*\s+(\d+)", sections, re.M))
    return code, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def read_by(header, read):
    """Returns {header: text} of this header and all tally headers that it includes, directly or not."""
    if header in read:
        return read
    read[header] = (INCLUDE_PATH / header).read_text()
    for included in re.findall(r'^#include "(.*)"', read[header], re.M):
        read_by(included, read)
    return read


def main():
    headers = read_by("tally/core.hpp", {})
    count = sum(text.count("\n") for text in headers.values())
    print(f"core.hpp: {count} lines in {len(headers)} headers of tally")
    assert 1000 < count <= MOST_LINES, f"{count} lines; {MOST_LINES} are the bound"
    for header, text in headers.items():
        more = set(re.findall(r"^#include <(.*)>", text, re.M)) - STANDARD
        assert not more, f"{header}, which core.hpp includes, includes {sorted(more)}; remove the include, or move its use to a .cpp"
    lines = re.search(r"## tally in ten lines\n\n```cpp\n(.*?)```", (ROOT / "docs" / "tensors.md").read_text(), re.S)[1]
    assert "#include <tally/core.hpp>" in lines, "the ten lines of docs/tensors.md do not begin with core.hpp"
    with tempfile.TemporaryDirectory() as folder:
        code, seconds = compiled("ten_lines", lines, Path(folder))
        _, alone = compiled("iostream", "#include <iostream>\nint main() { std::cout << 1; }\n", Path(folder))
    print(f"the ten lines: {code} bytes of code, {seconds:.2f} s; <iostream> alone {alone:.2f} s")
    assert 1000 < code <= MOST_BYTES, f"{code} bytes of code; {MOST_BYTES} are the bound; move templates to the explicit instantiations of src/autograd/instances"


try:
    subprocess.run(["size", "--version"], stdout=subprocess.DEVNULL, check=True)
except OSError:
    print("skipped: no size, of binutils")
    sys.exit(77)
main()
