#!/usr/bin/env python3
"""Checks that only the CUDA module is linked with CUDA and contains GPU code; lessons, tests and examples are not."""
import pathlib
import re
import shutil
import subprocess
import sys

if not shutil.which("ldd") or not shutil.which("readelf"):
    print("skipped: no ldd or no readelf")
    sys.exit(77)
build = pathlib.Path(sys.argv[1])


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def names_cuda(binary):
    linked = output("ldd", binary)
    if "libtorch" in linked:  # LibTorch may be linked with CUDA
        return None
    return re.search(r"\S*(cublas|cudart|libcuda\b)\S*", linked) or re.search(r"\.nv\w+|__nv\w+", output("readelf", "-SW", binary))


def is_binary(path):
    return path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF"


programs = [path for folder in (".", "lessons", "tests", "examples", "src")
            for path in sorted((build / folder).glob("*")) if path.suffix in ("", ".so") and is_binary(path)]
assert len(programs) > 5, programs
for program in programs:
    found = names_cuda(program)
    assert not found, f"{program}: {found.group()}"
module = build / "tally" / "tally_cuda.so"
if module.exists():
    assert names_cuda(module), "the module itself is not recognised"
print(f"{len(programs)} programs")
