"""Checks that lessons/add_micro_batches.ptx is what nvcc makes of lessons/add_micro_batches.cu.

Usage: kernel_test.py NVCC [--write]

--write writes the file again. The test is skipped if another version of nvcc wrote the committed file.
"""

import re
import subprocess
import sys
from pathlib import Path

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
COMMITTED = LESSONS / "add_micro_batches.ptx"


def main(arguments):
    nvcc, *write = arguments
    command = [nvcc, "-ptx", "-arch=sm_80", "--fmad=false", "-lineinfo", COMMITTED.with_suffix(".cu"), "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ptx = re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", done.stdout)  # without the folder
    if write == ["--write"]:
        COMMITTED.write_text(ptx)
        return 0
    committed = COMMITTED.read_text()
    versions = [re.search(r"Compiler Build ID.*|$", text)[0] for text in (committed, ptx)]
    if versions[0] != versions[1]:
        print(f"skipped: the file is of '{versions[0]}', and nvcc is '{versions[1]}'")
        return 77
    if ptx != committed:
        print(f"{COMMITTED.name} is not what nvcc makes of the .cu file: python3 tests/lesson/kernel_test.py {nvcc} --write")
    return int(ptx != committed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
