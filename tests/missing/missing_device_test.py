#!/usr/bin/env python3
# A test program without its device: skipped in words, and failed in words where the device is required.
import os
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()


class MissingDevice(unittest.TestCase):
    def run_it(self, required, *words):
        environment = {name: value for name, value in os.environ.items() if name != "TALLY_REQUIRE_GPU"}
        if required is not None:
            environment["TALLY_REQUIRE_GPU"] = required
        return subprocess.run([PROGRAM, *words], env=environment, capture_output=True, text=True, timeout=60)

    def test_it_is_skipped(self):
        for required in (None, "", "0"):
            result = self.run_it(required)
            self.assertEqual(result.returncode, 4)  # what ctest is told to call skipped
            self.assertEqual(result.stderr, "skipped: no such device\n")

    def test_required_it_fails(self):
        result = self.run_it("1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "failed, as TALLY_REQUIRE_GPU=1: no such device\n")

    def test_its_tests_are_listed_without_it(self):
        self.assertIn("What needs the device", self.run_it("1", "--list-tests").stdout)


if __name__ == "__main__":
    unittest.main()
