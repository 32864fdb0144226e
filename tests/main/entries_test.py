#!/usr/bin/env python3
# Checks that exactly one ctest test runs each test case, independently of the case's file and tags.
import json
import re
import subprocess
import sys
import unittest
from collections import Counter, defaultdict
from pathlib import Path

BUILD = Path(sys.argv.pop())


def names(program, *selection):
    for how in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):  # Catch2 v2, v3
        listed = subprocess.run([program, *selection, *how], capture_output=True, text=True, timeout=60).stdout.splitlines()
        if listed:
            return Counter(listed)
    return Counter()


class Entries(unittest.TestCase):
    def test_every_case_is_run_once(self):
        shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, timeout=60)
        selections = defaultdict(list)
        for test in json.loads(shown.stdout)["tests"]:
            if re.match(r"ptx/(bits|forward|reverse|random)/", test["name"]):  # the same cases on another device
                continue
            words = test["command"]
            at = next((i for i, word in enumerate(words) if Path(word).name in PROGRAMS), None)
            if at is None:
                continue
            program, *selection = words[at:]
            if at == 0 or selection not in selections[program]:  # mpirun runs a case once per number of processes
                selections[program].append(selection)
        self.assertEqual({Path(program).name for program in selections}, PROGRAMS)
        for program, those in selections.items():
            run = sum((names(program, *selection) for selection in those), Counter())
            self.assertTrue(names(program), program)
            self.assertEqual(run, names(program), program)


PROGRAMS = {path.name for path in (BUILD / "tests").glob("test_*") if path.is_file() and not path.suffix}
if __name__ == "__main__":
    unittest.main()
