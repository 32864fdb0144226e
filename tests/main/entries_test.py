#!/usr/bin/env python3
# Every test case is run by exactly one test of ctest's, whatever its file is called and however it is tagged.
import json
import subprocess
import sys
import unittest
from collections import Counter, defaultdict
from pathlib import Path

BUILD = Path(sys.argv.pop())


def names(program, *selection):
    out = subprocess.run([program, *selection, "--list-test-names-only"], capture_output=True, text=True, timeout=60).stdout
    return Counter(out.splitlines())


class Entries(unittest.TestCase):
    def test_every_case_is_run_once(self):
        shown = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, timeout=60)
        selections = defaultdict(list)
        for test in json.loads(shown.stdout)["tests"]:
            program, *selection = test["command"]
            if Path(program).name in PROGRAMS:
                selections[program].append(selection)
        self.assertEqual({Path(program).name for program in selections}, PROGRAMS)
        for program, those in selections.items():
            run = sum((names(program, *selection) for selection in those), Counter())
            self.assertEqual(run, names(program), program)


PROGRAMS = {path.name for path in (BUILD / "tests").glob("test_*") if path.is_file() and not path.suffix}
if __name__ == "__main__":
    unittest.main()
