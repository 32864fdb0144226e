#!/usr/bin/env python3
"""Every complete program of README.md and docs/ compiles, runs, and prints what its comments say.

    documented.py "COMPILER FLAGS..." INCLUDE_PATH LIBRARY...

A comment at the end of a line that prints (`<< "\\n";  // 4096`) is what that line prints; others are prose. A lesson only compiles:
what it prints is on its page. FLAGS are those that the library was built with, where linking needs them.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = re.compile(r"^```cpp\n((?:(?!```).*\n)*?int main\((?:(?!```).*\n)*?)```", re.M)
PROSE = {"the same, bit for bit"}  # not what is printed, but about it


def faults(page, number, text, compile_with):
    expected = [found.group(1) for line in text.split("\n")
                if (found := re.search(r'<< "\\n";\s*// (.*)$', line)) and found.group(1) not in PROSE]
    with tempfile.TemporaryDirectory(prefix="tally-documented-") as folder:
        source, program = Path(folder, "program.cpp"), Path(folder, "program")
        source.write_text(text)
        compiler, path, *libraries = compile_with
        command = [*compiler.split(), "-std=c++20", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{path}", source]
        a_lesson = "tally/lesson/" in text
        done = subprocess.run([*command, "-fsyntax-only"] if a_lesson else [*command, *libraries, "-o", program], capture_output=True, text=True)
        if done.returncode:
            return f"{page}, program {number}, does not compile:\n{done.stderr[-2000:]}"
        if a_lesson:
            return None
        ran = subprocess.run([program], capture_output=True, text=True, cwd=folder)
    if ran.returncode:
        return f"{page}, program {number}, ends with {ran.returncode}:\n{ran.stdout}{ran.stderr}"
    printed = iter(ran.stdout.splitlines())
    missing = [line for line in expected if line not in printed]  # in this order: what is found is used up
    return f"{page}, program {number}, says {missing[0]!r} and prints\n{ran.stdout}" if missing else None


def main(words):
    found, programs, mains = [], 0, 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        mains += len(re.findall(r"^int main\(", page.read_text(), re.M))
        for number, text in enumerate(PROGRAM.findall(page.read_text()), 1):
            programs += 1
            found.append(faults(page.relative_to(ROOT), number, text, words))
    found = [fault for fault in found if fault]
    print("\n".join(found) or f"{programs} programs compile, run, and print what they say")
    assert programs == mains > 0, f"{mains} programs begin, {programs} were found"
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
