#!/usr/bin/env python3
"""Checks that docs/scaling.md has the tables and the picture of bench_scaling.   Usage: scaling_page_test.py BENCH_SCALING [--write]"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE, PICTURE = ROOT / "docs" / "scaling.md", ROOT / "docs" / "pictures" / "scaling.svg"


def printed(program, folder):
    output = subprocess.run([program, folder], capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^(Table|Drawing): (.*)\n\n", output, flags=re.M)[1:]
    return {f"{kind.lower()}: {name}": text.strip("\n") for kind, name, text in zip(parts[::3], parts[1::3], parts[2::3])}


def with_parts(page, parts):
    for name, text in parts.items():
        mark = f"<!-- {name} -->"
        assert page.count(mark) == 1, f"{PAGE.name} has no place for '{name}'"
        before, after = page.split(mark)
        after = re.sub(r"\A\n\n(?:```.*?```|\|.*?)(?=\n\n|\Z)", "", after, count=1, flags=re.S)
        page = f"{before}{mark}\n\n{text}{after}"
    return page


def main():
    with tempfile.TemporaryDirectory() as folder:
        parts = printed(sys.argv[1], folder)
        picture = (pathlib.Path(folder) / "scaling.svg").read_text(encoding="utf-8")
    assert len(parts) == 5, sorted(parts)
    page = PAGE.read_text(encoding="utf-8")
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(with_parts(page, parts), encoding="utf-8")
        PICTURE.write_text(picture, encoding="utf-8")
        return
    assert with_parts(page, parts) == page, f"{PAGE.name} is not what {sys.argv[1]} prints: run this with --write, and read the page again"
    assert PICTURE.read_text(encoding="utf-8") == picture, f"{PICTURE.name} is another picture: run this with --write"


if __name__ == "__main__":
    main()
