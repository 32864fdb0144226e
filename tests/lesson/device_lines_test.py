"""A lesson says the same on a device beside the CPU, line for line. Usage: device_lines_test.py LESSON_PROGRAM DEVICE

What may differ: the device in the title, the line that says it is simulated, and the device in an error; where a check promises a bound and no bits, how far below it the
lesson stays; and the rows of a table that tell a time (BEFORE and AFTER; ordered and blas), with what stands above them.
"""

import difflib
import os
import re
import subprocess
import sys

from terminal_driver import clean_environment, run_tests, skip_where_it_does


def lines(lesson, device, dtype):
    # As wide as it gets: a shorter number must not wrap a line elsewhere.
    result = subprocess.run([lesson, f"--device={device}", f"--dtype={dtype}", "--plain", "--width=1000"],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=clean_environment())
    assert result.returncode == 0, f"{device}, {dtype}: exit {result.returncode}\n{result.stdout[-2000:]}{result.stderr}"
    said, titles = re.subn(rf"=+ {device}  {dtype} ", "", result.stdout)
    assert titles == 1, f"no title says {device} and {dtype}:\n{result.stdout[:1200]}"
    said, simulated = re.subn(r"(?m)^A simulated device: .*\n", "", said)
    assert simulated == (device == "simulated"), said[:1200]
    said = re.sub(r" on (cpu|cuda)\b", "", said)
    said = re.sub(r"(?m)^( *(?:BEFORE|AFTER|ordered|blas)\b).*", r"\1", said)
    said = re.sub(r"(?m)^ +(?:Time|products  ).*", "", said)  # above these rows, as wide as they are
    return re.sub(r"exact (?:yes|no)   (close \w+)   max\|diff\| \S+", r"\1", said).splitlines()


def test_the_same_lines(lesson, device):
    for dtype in ("float32", "float64"):
        cpu, there = lines(lesson, "cpu", dtype), lines(lesson, device, dtype)
        assert cpu == there, f"{dtype}\n" + "\n".join(difflib.unified_diff(cpu, there, "cpu", device, lineterm=""))


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    skip_where_it_does(program, f"--device={sys.argv[2]}")
    run_tests(sys.modules[__name__], program, sys.argv[2])
