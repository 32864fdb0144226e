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
    learn = (ROOT / "learn").read_text(encoding="utf-8")
    always, for_tests = re.search(r"^packages='([^']+)'", learn, re.M)[1], re.search(r'test\) packages="\$packages ([^"]+)"', learn)[1]
    asked = {word.partition(":")[2] or word for word in f"{always} {for_tests}".split()}
    assert len(asked) > 10, asked
    assert installed == asked, f"only in Containerfile: {installed - asked}; only in learn: {asked - installed}"
    assert re.search(r"^FROM debian:1[23]-slim$", container, re.MULTILINE)
    development = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert (ROOT / ".devcontainer" / development["build"]["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert (ROOT / ".containerignore").read_bytes() == (ROOT / ".dockerignore").read_bytes()
    print(f"{len(installed)} packages")


if __name__ == "__main__":
    sys.exit(main())
