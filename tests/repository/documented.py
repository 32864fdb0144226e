#!/usr/bin/env python3
"""Checks that every complete program of README.md and docs/ compiles, runs, and prints the output on its page.

    documented.py "COMPILER FLAGS..." INCLUDE_PATH LIBRARY...

A comment at the end of a line that prints (`<< "\\n";  // 4096`) is the line's output; other comments are prose. The program also prints the
lines of a ```text that directly follows it. A Python listing in the same section runs afterwards in the program's folder if PyTorch and
safetensors are installed. A lesson is only compiled, because its page has its output. FLAGS are the flags of the library.
"""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGINS = r"^(?:int main\(|LESSON\()"  # a program, or a lesson, whose main() is in the kit
PROGRAM = re.compile(rf"^```cpp\n((?:(?!```).*\n)*?{BEGINS}(?:(?!```).*\n)*?)```\n(?:\n```text\n((?:(?!```).*\n)*)```\n)?", re.M)
LISTING = re.compile(r"(?:(?!^## |^```cpp)[\s\S])*?^```python\n([\s\S]*?)^```\n", re.M)  # searched up to the next section or program
PROSE = {"the same, bit for bit"}  # comments on the output


def missing(expected, printed):
    lines = iter(printed.splitlines())
    return [line for line in expected if line not in lines][:1]  # keeps the order, because `in` consumes the iterator


def python_with_torch():
    for python in (sys.executable, "python3", "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import torch, safetensors.torch"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return python
        except OSError:
            pass
    return None


def faults(name, text, block, listing, compile_with):
    expected = [found.group(1) for line in text.split("\n")
                if (found := re.search(r'<< "\\n";\s*// (.*)$', line)) and found.group(1) not in PROSE]
    with tempfile.TemporaryDirectory(prefix="tally-documented-") as folder:
        source, program = Path(folder, "program.cpp"), Path(folder, "program")
        source.write_text(text)
        compiler, path, *libraries = compile_with
        command = [*compiler.split(), "-std=c++20", "-ffp-contract=off", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{path}", source]
        a_lesson = "course/kit/" in text
        done = subprocess.run([*command, f"-I{ROOT}", "-fsyntax-only"] if a_lesson else [*command, *libraries, "-o", program], capture_output=True, text=True)
        if done.returncode:
            return f"{name} does not compile:\n{done.stderr[-2000:]}"
        if a_lesson:
            return None
        ran = subprocess.run([program], capture_output=True, text=True, cwd=folder)
        if ran.returncode:
            return f"{name} ends with {ran.returncode}:\n{ran.stdout}{ran.stderr}"
        if line := missing(expected, ran.stdout) or missing(block, ran.stdout):
            return f"{name} says {line[0]!r} and prints\n{ran.stdout}"
        if not listing:
            return None
        python = python_with_torch()
        if not python:
            print(f"skipped: the Python listing after {name}, because PyTorch or safetensors is missing")
            return None
        ran = subprocess.run([python, "-W", "ignore", "-c", listing], capture_output=True, text=True, cwd=folder)
    documented = re.findall(r"^print\(.*\)  # (.*)$", listing, re.M)
    return None if ran.returncode == 0 and documented == ran.stdout.splitlines() else \
        f"the Python listing after {name} says {documented} and prints\n{ran.stdout}{ran.stderr[-2000:]}"


def main(words):
    jobs, mains, listings = [], 0, 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        mains += len(re.findall(BEGINS, text, re.M))
        listings += len(re.findall(r"^```python$", text, re.M))
        for number, found in enumerate(PROGRAM.finditer(text), 1):
            listing = LISTING.match(text, found.end())
            block = [line for line in (found.group(2) or "").splitlines() if line]
            jobs.append((f"program {number} of {page.relative_to(ROOT)}", found.group(1), block, listing and listing.group(1), words))
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as several:
        found = [fault for fault in several.map(lambda job: faults(*job), jobs) if fault]
    print("\n".join(found) or f"{len(jobs)} programs compile, run, and print what they say")
    assert len(jobs) == mains > 0, f"{mains} programs begin, {len(jobs)} were found"
    assert sum(1 for job in jobs if job[3]) == listings, f"{listings} Python listings, but not each follows a program"
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
