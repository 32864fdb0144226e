#!/usr/bin/env python3
# Tests tools/gpu-report with fakes of all tools: the tools that it runs, its report, and that it fails when a tool fails.
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPORT = Path(__file__).resolve().parents[2] / "tools/gpu-report"

# Each fake appends its arguments to $fakes/calls. It fails if $fakes contains a file 'no NAME'.
FAKES = {
    "nvidia-smi": "echo 'Imaginary Device, 9.0, 8192 MiB, 580.1'",
    "nvcc": "echo 'release 13.0'",
    "cmake": 'case $1 in --build) mkdir -p "$2/bench" && cp "$fakes/bench_gpu_steps" "$2/bench" ;; esac',
    "ctest": """
        echo "1/2 Test  #7: $TALLY_REQUIRE_GPU/good ......   Passed    0.01 sec"
        [ ! -e "$fakes/skips" ] || echo "2/2 Test  #8: cuda/absent .......***Skipped   0.01 sec" """,
    "compute-sanitizer": '[ ! -e "$fakes/race" ] || [ "$2" != racecheck ] || { echo "a race"; exit 86; }',
    "bench_gpu_steps": """
        if [ -e "$fakes/silent" ]; then echo "{}"; exit; fi
        echo '{"row": "MLP as 1x64", "contestants": [{"name": "tally", "median_ns": 2000, "times_tally": 1},' \\
            '{"name": "cuBLAS", "median_ns": 1800, "times_tally": 0.9}]}'""",
}
STEPS = ["configure", "build", "device tests", "lessons", "memcheck", "racecheck", "initcheck", "benchmark rows"]


class GpuReport(unittest.TestCase):
    def setUp(self):
        self.top = Path(tempfile.mkdtemp(prefix="gpu report "))
        self.addCleanup(shutil.rmtree, self.top)
        self.fakes, self.out = self.top / "fakes", self.top / "report.json"
        self.fakes.mkdir()
        for name, body in FAKES.items():
            text = f'#!/bin/sh\necho "{name} $*" >>"$fakes/calls"\n[ ! -e "$fakes/no {name}" ] || {{ echo "no {name}"; exit 5; }}\n{body}\n'
            (self.fakes / name).write_text(text)
            (self.fakes / name).chmod(0o755)

    def report(self, *words, given=(), path=os.environ["PATH"]):
        for name in given:
            (self.fakes / name).touch()
        environment = os.environ | {"PATH": f"{self.fakes}:{path}", "fakes": str(self.fakes), "CUDA_HOME": str(self.top)}
        environment.pop("CUDACXX", None)
        return subprocess.run([sys.executable, REPORT, "--build", self.top / "build", "--out", self.out, "--jobs", "2", *words],
                              env=environment, capture_output=True, text=True, timeout=120, check=False)

    def failed_steps(self):
        return [(step["name"], step["words"]) for step in json.loads(self.out.read_text())["steps"] if step["result"] != "passed"]

    def assertFails(self, result, words):
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(f"{words}; nothing was written", result.stderr)
        self.assertFalse(self.out.exists() or (self.top / "build").exists())

    def test_without_a_gpu_it_fails_and_writes_nothing(self):
        self.assertFails(self.report(given=["no nvidia-smi"]), "this machine has no GPU (nvidia-smi: no nvidia-smi)")
        (self.fakes / "nvidia-smi").write_text("#!/bin/sh\n")
        self.assertFails(self.report(), "this machine has no GPU (nvidia-smi: it lists no device)")
        (self.fakes / "nvidia-smi").unlink()
        self.assertFails(self.report(path=""), "this machine has no GPU (nvidia-smi: it is not there)")

    def test_without_a_toolkit(self):
        (self.fakes / "compute-sanitizer").unlink()
        self.assertFails(self.report(path=""), f"the CUDA toolkit's compute-sanitizer is neither in PATH nor in {self.top}")

    def test_it_runs_every_tool_and_writes_the_rows(self):
        result = self.report("--rounds", "3")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("MLP as 1x64: 2.0 us, 0.90 of the speed of cuBLAS", result.stdout)
        data, build = json.loads(self.out.read_text()), self.top / "build"
        self.assertEqual([step["name"] for step in data["steps"]], STEPS)
        self.assertEqual([row["row"] for row in data["rows"]], ["MLP as 1x64"])
        self.assertEqual((data["machine"]["name"], data["machine"]["toolkit"]), ("Imaginary Device", "release 13.0"))
        calls = (self.fakes / "calls").read_text()
        for call in ("-DTALLY_CUDA=ON -DTALLY_BENCH=ON -DCMAKE_CUDA_ARCHITECTURES=90\n", "--parallel 2 -L ^cuda$\n", "-R _on_cuda$\n",
                     f"--tool initcheck --error-exitcode 86 --report-api-errors no {build}/tests/test_cuda\n", "bench_gpu_steps --rounds 3\n"):
            self.assertIn(call, calls)
        self.assertIn("1/good", (build / "device-tests.log").read_text())  # the tests fail without the device

    def test_a_tool_that_fails_makes_it_fail(self):
        for name, step, words in (("no ctest", "device tests", "exit code 5: no ctest"), ("skips", "device tests", "cuda/absent (Skipped)"),
                                  ("race", "racecheck", "exit code 86: a race"), ("silent", "benchmark rows", "the program printed no row: {}"),
                                  ("no bench_gpu_steps", "benchmark rows", "exit code 5: the program printed no row: no bench_gpu_steps"),
                                  ("no cmake", "configure", "exit code 5: no cmake")):
            self.assertEqual(self.report(given=[name]).returncode, 1, name)
            self.assertIn((step, words), self.failed_steps())
            (self.fakes / name).unlink()


if __name__ == "__main__":
    unittest.main()
