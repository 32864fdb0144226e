#!/usr/bin/env python3
# The GPU's benchmark with the simulated device: its rows agree with the CPU's and never wait.
import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()
UPDATES = ["MLP as 1x64", "MLP as 4x16", "MLP as 64x1", "large MLP as 1x64", "large MLP as 4x16"]
CALLS = [f"{name} 256x256" for name in ("relu", "relu backward", "add", "bias", "softmax", "sum across", "sum down")]


def run(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300, check=False)


class GpuRows(unittest.TestCase):
    def test_the_rows(self):
        for device in ("--small", "--cpu"):
            result = run(device, "--rounds", "1")
            self.assertEqual(result.returncode, 0, result.stderr)
            head, *lines = map(json.loads, result.stdout.splitlines())
            self.assertEqual(head["rounds"], 1)
            self.assertEqual([(line["row"], line["per"]) for line in lines],
                             [(name, "update") for name in UPDATES] + [(name, "call") for name in CALLS])
            for line in lines:
                self.assertEqual(line["waits"], 0)
                self.assertGreater(line["check"], 0)
                self.assertEqual([contestant["name"] for contestant in line["contestants"]], ["tally"])
            alone = [line["check"] for line in lines if line["per"] == "call"]
            self.assertEqual(len(set(alone)), len(alone))  # no call returns the old content of the shared array

    def test_floors_need_cuda(self):
        result = run("--rounds", "1", "MLP as 1x64")
        self.assertEqual(result.returncode, 1)
        self.assertIn("[bench] cannot measure cuBLAS in a program without CUDA; use --small or --cpu", result.stderr)


if __name__ == "__main__":
    unittest.main()
