#!/usr/bin/env python3
"""A build without CUDA: no CUDA name is in its compile commands."""
import json
import pathlib
import re
import sys

build = sys.argv[1]
sources = str(pathlib.Path(__file__).resolve().parent.parent)
commands = pathlib.Path(build) / "compile_commands.json"
if not commands.exists():
    print("skipped: no compile_commands.json (CMAKE_EXPORT_COMPILE_COMMANDS)")
    sys.exit(77)
entries = json.loads(commands.read_text())
assert any(entry["file"].endswith("gpu/pretend.cpp") for entry in entries), "pretend.cpp is the only device beside the CPU"
for entry in entries:
    words = entry["command"].split(" -o ")[0]
    for place in (entry["file"], build, sources):  # whose names are not ours to choose
        words = words.replace(place, "")
    found = re.search(r"\S*(cuda|nvcc|cublas)\S*", words, re.I)
    assert not found, f"{found.group()} in the command for {entry['file']}"
print(f"{len(entries)} commands")
