#!/usr/bin/env python3
# tools/bench-peers refuses in sentences; the sides of JAX and PyTorch compute the gradients of a network of a few numbers.
# The second only where TALLY_PEER_FOLDER names a folder that tools/bench-peers has filled.
import array
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = os.environ.get("TALLY_PEER_FOLDER", "")
SIZES, ROWS, RATE = [5, 4, 3], 8, 0.125
BOUND = 1e-5  # of the largest number of a gradient, as in ./learn bench

sys.path.insert(0, str(ROOT / "bench" / "peers"))
import side


def install(*words, **environment):
    return subprocess.run([sys.executable, ROOT / "tools" / "bench-peers", *words], capture_output=True, text=True, timeout=100,
                          env=os.environ | environment, check=False)


class Refusals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def refused(self, result, code, sentence):
        self.assertEqual(result.returncode, code, result)
        self.assertIn(sentence, result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_a_folder_of_something_else(self):
        (self.folder / "mine").write_text("mine")
        self.refused(install(self.folder), 2, "is neither empty nor a virtual environment of Python; name another folder")
        self.refused(install(self.folder / "mine"), 2, "mine is a file; name a folder")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["mine"])

    def test_a_peer_that_is_none(self):
        self.refused(install(self.folder / "new", "jacks"), 2, "there is no peer 'jacks': jax, torch")
        self.assertFalse((self.folder / "new").exists())

    def test_without_venv(self):
        (self.folder / "sitecustomize.py").write_text("import sys\nfrom importlib import util\nthere = util.find_spec\n"
                                                      "util.find_spec = lambda name, *more: None if name == 'ensurepip' else there(name, *more)\n")
        self.refused(install(self.folder / "new", PYTHONPATH=str(self.folder)), 3, "nothing was changed: this Python has no module ensurepip")
        self.assertFalse((self.folder / "new").exists())

    def test_without_network(self):
        nowhere = "http://127.0.0.1:9/"
        result = install(self.folder / "new", "jax", PIP_INDEX_URL=nowhere, PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="0", PIP_FIND_LINKS="",
                         PIP_RETRIES="0", PIP_TIMEOUT="1")
        if result.returncode == 3:
            self.skipTest(f"no virtual environment can be made here: {result.stderr}")
        self.refused(result, 1, "jax could not be installed from PyPI: ERROR: No matching distribution found for jax (is there a network?)")
        self.assertEqual(os.listdir(self.folder), ["new"])
        self.assertFalse((self.folder / "new" / "tmp").exists())


def write_problem(path, micro):
    numbers = random.Random(1)
    layers = [count for a, b in zip(SIZES, SIZES[1:]) for count in (a * b, b)]
    with open(path, "wb") as file:
        file.write(json.dumps({"rows": ROWS, "micro": micro, "rate": RATE, "sizes": SIZES}).encode() + b"\n")
        for count in [*layers, ROWS * SIZES[0]]:
            array.array("f", [numbers.uniform(-1, 1) for _ in range(count)]).tofile(file)
        array.array("i", [row % SIZES[-1] for row in range(ROWS)]).tofile(file)


def by_hand(problem):
    """Gradients of the mean cross-entropy, and the weights after an update; loops over numbers in double."""
    (_, w1), (_, b1), (_, w2), (_, b2) = problem.parameters
    inputs, hidden, classes = SIZES
    gradients = [[0.0] * len(numbers) for _, numbers in problem.parameters]
    for row, label in enumerate(problem.labels[1]):
        x = problem.pictures[1][row * inputs:(row + 1) * inputs]
        h = [max(0.0, b1[j] + sum(x[i] * w1[i * hidden + j] for i in range(inputs))) for j in range(hidden)]
        y = [b2[k] + sum(h[j] * w2[j * classes + k] for j in range(hidden)) for k in range(classes)]
        total = sum(math.exp(value) for value in y)
        dy = [(math.exp(value) / total - (k == label)) / ROWS for k, value in enumerate(y)]
        dh = [sum(dy[k] * w2[j * classes + k] for k in range(classes)) * (h[j] > 0) for j in range(hidden)]
        for into, left, right in ((gradients[0], x, dh), (gradients[1], [1], dh), (gradients[2], h, dy), (gradients[3], [1], dy)):
            for place in range(len(into)):
                into[place] += left[place // len(right)] * right[place % len(right)]
    weights = [[w - RATE * g for w, g in zip(numbers, gradient)] for (_, numbers), gradient in zip(problem.parameters, gradients)]
    return gradients + weights


def answers(script, folder):
    """What a side says of the cuts into 1 and into 4, both held at once."""
    process = subprocess.Popen([Path(PEERS) / "bin" / "python", ROOT / "bench" / "peers" / script, "1"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    hello = process.stdout.readline()
    if not hello.startswith("ready "):
        process.communicate()
        return None
    found = {}
    for micro in (ROWS, ROWS // 4):
        write_problem(folder / "problem", micro)
        for told in (f"mlp {micro} {folder / 'problem'}", f"numbers {micro} {folder / 'numbers'}", f"run {micro} 2"):
            process.stdin.write(told + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n", told
        values = array.array("f", (folder / "numbers").read_bytes())
        found[micro] = values
    process.communicate("forget 2\nforget 8\n")
    assert process.returncode == 0
    return found


@unittest.skipUnless(PEERS, "TALLY_PEER_FOLDER names no folder of tools/bench-peers")
class Gradients(unittest.TestCase):
    def compare(self, script):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            found = answers(script, folder)
            if found is None:
                self.skipTest(f"{script}: its framework is not in {PEERS}")
            expected = by_hand(side.Problem(folder / "problem"))
        for micro, values in found.items():
            values = list(values)
            for vector in expected:
                mine, values = values[:len(vector)], values[len(vector):]
                bound = BOUND * max(map(abs, vector))
                self.assertLessEqual(max(abs(a - b) for a, b in zip(mine, vector, strict=True)), bound, (script, micro))
            self.assertEqual(values, [])

    def test_jax(self):
        self.compare("jax_side.py")

    def test_pytorch(self):
        self.compare("torch_side.py")


if __name__ == "__main__":
    unittest.main(verbosity=2)
