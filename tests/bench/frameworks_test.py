#!/usr/bin/env python3
# Tests how bench_table handles frameworks that are missing, wrong or end early, folders without one, and OpenBLAS.
# If TALLY_PEER_FOLDER is a folder that tools/bench-peers has filled, the report on its frameworks is tested as well.
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = sys.argv.pop()
PEERS = os.environ.get("TALLY_PEER_FOLDER", "")

# Replaces Python: says hello, then answers requests as {jax} defines for JAX. PyTorch is absent.
FAKE = """#!{python}
import sys
if "jax" not in sys.argv[2]:
    sys.exit(1)
print("ready JAX 0", flush=True)
for line in sys.stdin:
    what, number, *rest = line.split()
    {jax}
    print("done", flush=True)
"""


def bench(folder, peers, *words):
    return subprocess.run([PROGRAM, "--rounds", "1", "--no-sweeps", "--only", "mlp-16x4", "--frameworks", peers, "-o", folder / "out",
                           *words], capture_output=True, text=True, timeout=300, check=False, env=os.environ | {"OPENBLAS_CORETYPE": ""})


class Frameworks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def with_jax(self, does):
        fake = self.folder / "bin" / "python"
        fake.parent.mkdir()
        fake.write_text(FAKE.format(python=sys.executable, jax=does))
        fake.chmod(0o755)
        return bench(self.folder, self.folder)

    def test_a_folder_without_a_python(self):
        result = bench(self.folder, self.folder / "none")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"[bench] cannot run {self.folder}/none/bin/python; to install JAX and PyTorch, run tools/bench-peers {self.folder}/none", result.stderr)

    def test_an_absent_framework_is_reported(self):
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "python").symlink_to("/bin/false")
        result = bench(self.folder, self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("JAX (absent), PyTorch (absent).", (self.folder / "out" / "bench.md").read_text())

    def test_a_wrong_gradient_is_an_error(self):
        result = self.with_jax("if what == 'numbers': open(rest[0], 'wb').write(bytes(2 * 4 * 669706))")
        self.assertEqual(result.returncode, 1)
        self.assertIn("16x4, JAX: gradient 0 differs from tally's by 1 of its largest number", result.stderr)

    def test_too_few_numbers_are_an_error(self):
        result = self.with_jax("if what == 'numbers': open(rest[0], 'wb').write(bytes(2 * 4 * 669706 - 1))")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\[bench\] \S+ is too short")

    def test_a_framework_that_ends_is_an_error(self):
        result = self.with_jax("if what == 'mlp': sys.exit()")
        self.assertEqual(result.returncode, 1)
        self.assertIn("[bench] JAX answered 'nothing, it has ended' to 'mlp 1 ", result.stderr)

    def test_openblas_at_its_best(self):
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
        for more, expected in (({}, r"OpenBLAS at \w+, of as found \(\w+\) [0-9.]+ ms"),
                           ({"OPENBLAS_CORETYPE": ""}, r"OpenBLAS at \w+, as OPENBLAS_CORETYPE says\.")):
            subprocess.run([PROGRAM, "--rounds", "1", "--no-sweeps", "--only", "toy", "-o", self.folder], check=True, timeout=300,
                           env=environment | more, capture_output=True)
            self.assertRegex((self.folder / "bench.md").read_text(), expected)

    @unittest.skipUnless(PEERS, "TALLY_PEER_FOLDER names no folder of tools/bench-peers")
    def test_the_report(self):
        result = bench(self.folder, PEERS)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads((self.folder / "out" / "bench.json").read_text())
        here = [name for name, there in report["machine"]["peers"].items() if there and re.match("JAX|PyTorch", name)]
        self.assertTrue(here, report["machine"])
        page = (self.folder / "out" / "bench.md").read_text()
        for name in (name.split()[0] for name in here):
            side, = (side for side in report["rows"][0]["sides"] if side["name"] == name)
            self.assertEqual(side["role"], "peer")
            self.assertRegex(page, rf"{name} [0-9.]+ ms \([0-9.]+ ms\), tally (takes|is) ")
            self.assertRegex(page, rf"- {name}: tally is faster in (nothing|mlp-16x4 [0-9.]+ x)\. Slower in (nothing|mlp-16x4 [0-9.]+ x)\.")


if __name__ == "__main__":
    unittest.main(verbosity=2)
