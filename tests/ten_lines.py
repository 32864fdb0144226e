#!/usr/bin/env python3
"""How much of tally the README's ten lines compile: what they read and the bytes that come out are bounded, seconds are told.

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
MOST_LINES = 5_720  # of tally's own headers, comments included
# What core.hpp may include of the standard library: each costs everybody who includes it. <functional>, <memory>, <algorithm> and <deque>,
# which are not here, cost as much as a quarter of all the rest.
STANDARD = set("""array atomic bit cmath concepts cstddef cstdint cstring initializer_list iosfwd iterator limits new numbers optional ostream
    span stdexcept string string_view tuple type_traits utility vector""".split())


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


def read_by(header, read):
    """All of tally's headers that this one includes, itself included, by what they say."""
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
        assert not more, f"{header}, which core.hpp includes, includes {sorted(more)}: can it be without, or can a .cpp have that?"
    lines = re.search(r"## tally in ten lines\n\n```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    assert "#include <tally/core.hpp>" in lines, "the README's ten lines do not begin with core.hpp"
    with tempfile.TemporaryDirectory() as folder:
        code, seconds = compiled("ten_lines", lines, Path(folder))
        _, alone = compiled("iostream", "#include <iostream>\nint main() { std::cout << 1; }\n", Path(folder))
    print(f"the README's ten lines: {code} bytes of code, {seconds:.2f} s; <iostream> alone {alone:.2f} s")
    assert 1000 < code <= MOST_BYTES, f"{code} bytes of code; {MOST_BYTES} are the bound: what is compiled there that src/autograd/instances could have?"


try:
    subprocess.run(["size", "--version"], stdout=subprocess.DEVNULL, check=True)
except OSError:
    print("skipped: no size, of binutils")
    sys.exit(77)
main()
