"""Tests that a lesson prints the same lines on a device as on the CPU. Usage: device_lines_test.py LESSON_PROGRAM DEVICE

These parts may differ: the name of the device in the title and in errors, the line about the simulated device, the difference of a check
with a bound, and rows of a table with times (BEFORE and AFTER, ordered and blas) with their heading.
"""

import difflib
import os
import re
import subprocess
import sys

from terminal_driver import clean_environment, run_tests, skip_where_it_does


def lines(lesson, device):
    # Very wide, so that a shorter number does not change the line breaks.
    result = subprocess.run([lesson, f"--device={device}", "--plain", "--width=1000"],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=clean_environment())
    assert result.returncode == 0, f"{device}: exit {result.returncode}\n{result.stdout[-2000:]}{result.stderr}"
    said, titles = re.subn(rf"=+ {device}  ", "", result.stdout)
    assert titles == 1, f"no title names {device}:\n{result.stdout[:1200]}"
    said, simulated = re.subn(r"(?m)^A simulated device: .*\n", "", said)
    assert simulated == (device == "simulated"), said[:1200]
    said = re.sub(r" on (cpu|cuda)\b", "", said)
    said = re.sub(r"(?m)^( *(?:BEFORE|AFTER|ordered|blas)\b).*", r"\1", said)
    said = re.sub(r"(?m)^ +(?:Time|products  ).*", "", said)  # the headings of these rows have the same width
    return re.sub(r"exact (?:yes|no)   (close \w+)   max\|diff\| \S+", r"\1", said).splitlines()


def test_the_same_lines(lesson, device):
    cpu, there = lines(lesson, "cpu"), lines(lesson, device)
    assert cpu == there, "\n".join(difflib.unified_diff(cpu, there, "cpu", device, lineterm=""))


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    skip_where_it_does(program, f"--device={sys.argv[2]}")
    run_tests(sys.modules[__name__], program, sys.argv[2])
