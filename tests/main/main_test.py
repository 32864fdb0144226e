#!/usr/bin/env python3
# Tests the main() of the test programs: a missing device, cases that leave changes behind, and an empty selection.
import os
import subprocess
import sys
import unittest

CARELESS = sys.argv.pop()
MISSING_DEVICE = sys.argv.pop()


def run(program, *words, required=None, products=None):
    asked = ("TALLY_REQUIRE_GPU", "TALLY_PRODUCTS")
    environment = {name: value for name, value in os.environ.items() if name not in asked}
    if products is not None:
        environment["TALLY_PRODUCTS"] = products
    if required is not None:
        environment["TALLY_REQUIRE_GPU"] = required
    return subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=60)


class MissingDevice(unittest.TestCase):
    def test_it_is_skipped(self):
        for required in (None, "", "0"):
            result = run(MISSING_DEVICE, required=required)
            self.assertEqual(result.returncode, 4)  # ctest shows this code as skipped
            self.assertEqual(result.stderr, "skipped: no such device\n")

    def test_required_it_fails(self):
        result = run(MISSING_DEVICE, required="1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "failed, as TALLY_REQUIRE_GPU=1: no such device\n")

    def test_its_tests_are_listed_without_it(self):
        self.assertIn("a case that needs the device", run(MISSING_DEVICE, "--list-tests", required="1").stdout)


class Careless(unittest.TestCase):
    def test_a_change_that_stays_fails_and_is_reported(self):
        for name, words in (("leaves a budget", "leaves the budget of cpu at 1.0 MiB; before, it was 0 B"),
                            ("leaves bytes", "leaves the memory in use of cpu at 64 bytes; before, it was 0 bytes"),
                            ("leaves threads", "leaves the number of threads at 2; before, it was 1"),
                            ("leaves products", "leaves the products at blas; before, it was ordered"),
                            ("leaves a mode", "leaves recording at off; before, it was on"),
                            ("is skipped unannounced", "was skipped, which ctest cannot tell unless it is tagged [alone]")):
            result = run(CARELESS, name)
            self.assertEqual(result.returncode, 1, name)
            self.assertRegex(result.stderr, rf'careless\.cpp:\d+: "{name}" ')
            self.assertTrue(result.stderr.endswith(f'"{name}" {words}\n'), result.stderr)

    def test_the_next_case_is_not_blamed(self):
        result = run(CARELESS, "leaves a budget,leaves nothing")
        self.assertEqual((result.returncode, result.stderr.count("leaves nothing")), (1, 0))

    def test_who_leaves_nothing_passes(self):
        self.assertEqual(run(CARELESS, "leaves nothing").returncode, 0)

    def test_the_environment_says_who_computes_products(self):
        for products, ordered in ((None, True), ("", True), ("ordered", True), ("blas", False)):
            for case, expected in (("has ordered products", ordered), ("has products of BLAS", not ordered)):
                result = run(CARELESS, case, products=products)
                self.assertEqual(result.returncode, 0 if expected else 1, (products, case, result.stdout))

    def test_unknown_products_are_an_error(self):
        result = run(CARELESS, "leaves nothing", products="fast")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("[products] unknown products 'fast'; use ordered or blas", result.stdout + result.stderr)

    def test_a_skip_has_its_exit_code(self):
        self.assertEqual(run(CARELESS, "is skipped").returncode, 4)

    def test_nothing_to_run_is_a_failure(self):
        result = run(CARELESS, "-#", "[#renamed]~[alone]")
        self.assertEqual((result.returncode, result.stderr), (1, "no test was found by this name, or in this file\n"))


if __name__ == "__main__":
    unittest.main()
