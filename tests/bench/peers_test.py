#!/usr/bin/env python3
# Tests the errors of tools/bench-peers. Each benchmark checks that JAX and PyTorch compute tally's gradients (frameworks_test.py).
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def install(*words, **environment):
    return subprocess.run([sys.executable, ROOT / "tools" / "bench-peers", *words], capture_output=True, text=True, timeout=100,
                          env=os.environ | environment, check=False)


class Errors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def fails(self, result, code, sentence):
        self.assertEqual(result.returncode, code, result)
        self.assertIn(sentence, result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_a_folder_of_something_else(self):
        (self.folder / "mine").write_text("mine")
        self.fails(install(self.folder), 2, "is neither empty nor a virtual environment of Python; name another folder")
        self.fails(install(self.folder / "mine"), 2, "mine is a file; name a folder")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["mine"])

    def test_a_peer_that_is_none(self):
        self.fails(install(self.folder / "new", "jacks"), 2, "'jacks' is not a peer; name one of: jax, torch")
        self.assertFalse((self.folder / "new").exists())

    def test_without_venv(self):
        (self.folder / "sitecustomize.py").write_text("import sys\nfrom importlib import util\nthere = util.find_spec\n"
                                                      "util.find_spec = lambda name, *more: None if name == 'ensurepip' else there(name, *more)\n")
        self.fails(install(self.folder / "new", PYTHONPATH=str(self.folder)), 3, "nothing was changed: this Python has no module ensurepip")
        self.assertFalse((self.folder / "new").exists())

    def test_without_network(self):
        nowhere = "http://127.0.0.1:9/"
        result = install(self.folder / "new", "jax", PIP_INDEX_URL=nowhere, PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="0", PIP_FIND_LINKS="",
                         PIP_RETRIES="0", PIP_TIMEOUT="1")
        if result.returncode == 3:
            self.skipTest(f"no virtual environment can be made here: {result.stderr}")
        self.fails(result, 1, "jax could not be installed from PyPI: ERROR: No matching distribution found for jax (is there a network?)")
        self.assertEqual(os.listdir(self.folder), ["new"])
        self.assertFalse((self.folder / "new" / "tmp").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
