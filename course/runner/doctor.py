"""Prints versions, devices, the terminal and the optional packages that are missing."""
import ctypes
import json
import os
import platform
import re
import shutil
import subprocess

import build
from common import BUILD, ROOT, Exit, Problem, mode_for, out, window_width
from lessons import find_lessons

OPTIONAL = (("graphviz", "dot", "your own layout and styling of the .dot pictures", "graphviz"),
            ("LibTorch", "/usr/include/torch/csrc/api/include/torch/torch.h", "a peer to compare with in bench/", "libtorch-dev"))


def tally():
    version = (ROOT / "src/base/version.hpp").read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define TALLY_VERSION_\w+ (\d+)", version))


def compiler():
    program = build.cached(BUILD, "CMAKE_CXX_COMPILER") or "c++"
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def openblas():
    name = ctypes.CDLL("libopenblas.so.0").openblas_get_corename
    name.restype = ctypes.c_char_p
    return f"{name().decode()} kernels"


def cuda():
    if not (BUILD / "tally/tally_cuda.so").exists():
        return "no: this build has no CUDA"
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        found = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except OSError:
        found = False
    return "yes" if found else "no: this machine has no CUDA device"


def lessons():
    found = find_lessons()
    return f"{sum(each.program.exists() for each in found)} of {len(found)} are built"


def attempted(look):
    """The result of a function, or why it failed."""
    try:
        return look()
    except Problem as problem:
        return problem.message
    except (OSError, AttributeError, IndexError, subprocess.CalledProcessError):
        return "unknown"


def show(options):
    mode, width = mode_for(options), window_width()
    findings = [("versions", "tally", attempted(tally)), ("versions", "compiler", attempted(compiler)),
                ("versions", "python3", platform.python_version()), ("devices", "cpu", f"yes, {os.cpu_count()} hardware threads"),
                ("devices", "OpenBLAS", attempted(openblas)), ("devices", "cuda", cuda()), ("lessons", "built", attempted(lessons)),
                ("terminal", "width", f"{width} columns" if width else "the output is not a terminal"),
                ("terminal", "step mode", f"no: {mode.not_waiting}" if mode.not_waiting else "yes"),
                ("terminal", "colours", "yes" if mode.colour else "no"),
                ("terminal", "text", "ASCII" if mode.ascii else "UTF-8")]
    for name, found_as, adds, package in OPTIONAL:
        there = os.path.exists(found_as) if found_as.startswith("/") else shutil.which(found_as)
        missing = f"missing; adds {adds}: apt-get install --no-install-recommends {package}"
        findings.append(("optional", name, "there" if there else missing))
    last = ""
    for about, name, text in findings:
        if options.json:
            out(json.dumps({"v": 1, "event": "finding", "about": about, "name": name, "text": text}, ensure_ascii=False))
            continue
        if about != last:
            out(about)
        last = about
        out(f"  {name:14} {text}")
    return Exit.good
