#!/usr/bin/env python3
# The GPU's benchmark with the pretended device: its rows agree with the CPU's, never wait, and are PyTorch's by name.
import importlib.util
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop()
sys.path.insert(0, str(ROOT / "tools"))


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300, check=False)


def rows_of_pytorch():
    """What tools/gpu_peer.py would time, whether or not PyTorch is here: names, and per what."""
    rows = []
    modules = {name: mock.MagicMock() for name in ("torch", "torch.nn", "torch.nn.functional")}
    with mock.patch.dict(sys.modules, modules), mock.patch.object(sys, "argv", ["gpu_peer.py", "--cpu"]), \
            mock.patch("builtins.print"):
        modules["torch"].__version__ = "none"
        import gpu_peer
        with mock.patch.object(gpu_peer, "race", lambda name, per, *_: rows.append((name, per))):
            gpu_peer.main()
    return rows


class GpuRows(unittest.TestCase):
    def test_the_rows(self):
        for device in ("--small", "--cpu"):
            result = run(device, "--rounds", "1")
            self.assertEqual(result.returncode, 0, result.stderr)
            head, *lines = map(json.loads, result.stdout.splitlines())
            self.assertEqual(head["rounds"], 1)
            self.assertEqual([(line["row"], line["per"]) for line in lines], rows_of_pytorch())
            for line in lines:
                self.assertEqual(line["waits"], 0)
                self.assertGreater(line["check"], 0)
                self.assertEqual([contestant["name"] for contestant in line["contestants"]], ["tally"])
            alone = [line["check"] for line in lines if line["per"] == "call"]
            self.assertEqual(len(set(alone)), len(alone))  # they share an array: what one left there is not another's result

    def test_both_programs_draw_the_same_numbers(self):
        formula = r"mixed = \((.*)\) & 0xFFFFFFFF"
        mine, peer = (re.search(formula, (ROOT / file).read_text()).group(1) for file in ("bench/gpu_rows.hpp", "tools/gpu_peer.py"))
        self.assertEqual(mine.replace("u", ""), peer)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "there is no PyTorch")
    def test_pytorch_agrees(self):
        peer = subprocess.run([sys.executable, ROOT / "tools/gpu_peer.py", "--cpu", "--rounds", "1"], capture_output=True, text=True,
                              timeout=300, check=True)
        for mine, other in zip(run("--small", "--rounds", "1").stdout.splitlines()[1:], peer.stdout.splitlines()[1:], strict=True):
            mine, other = json.loads(mine), json.loads(other)
            self.assertAlmostEqual(mine["check"] / other["check"], 1, delta=1e-5, msg=mine["row"])

    def test_floors_need_cuda(self):
        result = run("--rounds", "1", "MLP as 1x64")
        self.assertEqual(result.returncode, 1)
        self.assertIn("[bench] this program has no CUDA, so nothing to time beside tally; use --small or --cpu", result.stderr)


if __name__ == "__main__":
    unittest.main()
