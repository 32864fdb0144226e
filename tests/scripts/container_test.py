"""Checks that Containerfile installs the packages of ./learn on a Debian that tools/bare supports, and that .devcontainer builds it.

Usage: container_test.py
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    container = (ROOT / "Containerfile").read_text(encoding="utf-8")
    installed = set(re.search(r"--no-install-recommends ([^&]+) &&", container)[1].split())
    asked = set()
    for line in re.findall(r"^(?:capabilities=')?([^|\n]+\|probe_[^|\n]+\|[^|\n]+)\|", (ROOT / "learn").read_text(encoding="utf-8"), re.MULTILINE):
        name, _, packages = line.split("|")
        if name != "emscripten":  # needed only to rebuild the page
            asked |= set(packages.split())
    assert len(asked) > 10, asked
    assert installed == asked, f"only in Containerfile: {installed - asked}; only in learn: {asked - installed}"
    assert re.search(r"^FROM debian:1[23]-slim$", container, re.MULTILINE)
    development = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert (ROOT / ".devcontainer" / development["build"]["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert (ROOT / ".containerignore").read_bytes() == (ROOT / ".dockerignore").read_bytes()
    print(f"{len(installed)} packages")


if __name__ == "__main__":
    sys.exit(main())
