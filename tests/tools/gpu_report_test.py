#!/usr/bin/env python3
# tools/gpu-report with every tool around it faked, the driver too: what it runs, what it writes, when it is not content.
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "tools/gpu-report"

DRIVER = """
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { (void)flags; return INIT; }
int cuDeviceGetCount(int* count) { *count = COUNT; return 0; }
int cuDeviceGet(int* device, int i) { *device = i; return 0; }
int cuDeviceGetName(char* name, int size, int device) { (void)device; strncpy(name, "Imaginary Device", (size_t)size); return 0; }
int cuDeviceTotalMem_v2(size_t* bytes, int device) { (void)device; *bytes = (size_t)8 << 30; return 0; }
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { (void)device; *value = attribute == 75 ? 9 : 0; return 0; }
"""

# Each fake writes what it was asked for into $fakes/calls; how it behaves is told by files in $fakes.
FAKES = {
    "nvcc": 'echo "Cuda compilation tools, release 13.0"',
    "cmake": """
        echo "cmake $*" >>"$fakes/calls"
        case $1 in
            --version) echo "cmake version 3.30" ;;
            -S) case "$*" in *COURSE=ON*) if [ -e "$fakes/no-fmt" ]; then
                    echo 'By not providing "Findfmt.cmake" ... Could not find a package configuration file provided by "fmt"'; exit 1
                fi ;; esac ;;
            --build) if [ -e "$fakes/broken" ]; then echo "error: no such thing"; exit 2; fi
                mkdir -p "$2/bench" "$2/lessons" "$2/tests" && cp "$fakes/bench" "$2/bench/bench_gpu_steps" &&
                    cp "$fakes/tests" "$2/tests/test_cuda"
                [ -e "$fakes/no-fmt" ] || cp "$fakes/lesson" "$2/lessons/lesson_01_one" ;;
        esac""",
    "ctest": """
        echo "ctest required=$TALLY_REQUIRE_GPU $*" >>"$fakes/calls"
        while [ "$1" != --output-junit ]; do shift; done
        second=run; [ ! -e "$fakes/skips" ] || second=notrun
        echo "<testsuite><testcase name='a' status='run'/><testcase name='b' status='$second'/></testsuite>" >"$2" """,
    "tests": 'case $1 in --list-test-names-only) printf "one\\ntwo\\nlarge\\n" ;; esac',
    "compute-sanitizer": """
        echo "$*" >>"$fakes/checks"
        if [ -e "$fakes/race" ] && [ "$2" = racecheck ]; then case "$*" in *two) echo "a race"; exit 86 ;; esac; fi""",
    "bench": """
        echo '{"device": "Imaginary Device", "rounds": 3}'
        echo '{"row": "toy", "per": "step", "moved": 0, "waits": 0, "check": 2, "contestants":' \\
             '[{"name": "tally", "rounds_ns": [1000, 2000, 3000]}]}'
        echo '{"row": "large MLP as 1x64", "per": "update", "moved": 0, "waits": 0, "check": 5, "contestants":' \\
             '[{"name": "tally", "rounds_ns": [100, 200, 100]}, {"name": "cuBLAS", "rounds_ns": [90, 100, 90]}]}'
        echo '{"row": "large MLP as 4x16", "per": "update", "moved": 0, "waits": 0, "check": 5, "contestants":' \\
             '[{"name": "tally", "rounds_ns": [200, 200, 200]}, {"name": "cuBLAS", "rounds_ns": [120, 120, 120]}]}'
        echo '{"row": "relu 8x8", "per": "call", "moved": 4000000, "waits": 0, "check": 5, "contestants":' \\
             '[{"name": "tally", "rounds_ns": [1000, 1000, 1000]}, {"name": "copy", "rounds_ns": [900, 800, 900]}]}'""",
    "lesson": 'echo "a lesson"; case "$*" in *cuda) [ ! -e "$fakes/differs" ] || echo "and more" ;; esac',
    "python": """
        if [ "$1" = -c ]; then [ ! -e "$fakes/no-torch" ]; exit; fi
        check=2; [ ! -e "$fakes/wrong" ] || check=3
        echo '{"device": "Imaginary Device", "rounds": 3}'
        echo '{"row": "toy", "per": "step", "check": '$check', "contestants": [{"name": "PyTorch", "rounds_ns": [8000, 8000, 8000]},' \\
             '{"name": "PyTorch as a CUDA graph", "rounds_ns": [1000, 1000, 1000]}]}'
        for row in "large MLP as 1x64" "large MLP as 4x16" "relu 8x8"; do
            echo '{"row": "'$row'", "per": "update", "check": 5, "contestants": [{"name": "PyTorch", "rounds_ns": [400, 400, 400]}]}'
        done""",
}


class GpuReport(unittest.TestCase):
    def setUp(self):
        self.top = Path(tempfile.mkdtemp(prefix="gpu report "))
        self.addCleanup(shutil.rmtree, self.top)
        self.fakes, self.out = self.top / "fakes", self.top / "out"
        self.fakes.mkdir()
        for name, body in FAKES.items():
            (self.fakes / name).write_text("#!/bin/sh\n" + body)
            (self.fakes / name).chmod(0o755)

    def with_driver(self, init=0, count=1):
        (self.fakes / "driver.c").write_text(DRIVER)
        subprocess.run(["cc", "-shared", "-fPIC", f"-DINIT={init}", f"-DCOUNT={count}", "-o", self.fakes / "libcuda.so.1", self.fakes / "driver.c"], check=True)

    def given(self, *files):
        for name in ("no-fmt", "broken", "skips", "race", "no-torch", "wrong", "differs"):
            (self.fakes / name).unlink(missing_ok=True)
        for name in files:
            (self.fakes / name).touch()

    def report(self, *words):
        environment = {name: value for name, value in os.environ.items() if name not in ("CUDACXX", "TALLY_PREFIX")}
        environment |= {"PATH": f"{self.fakes}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(self.fakes),
                        "CUDA_VISIBLE_DEVICES": "", "fakes": str(self.fakes)}
        return subprocess.run([sys.executable, REPORT, "--build", self.top / "build", "--out", self.out, "--commit", "abc",
                               "--python", self.fakes / "python", *words], env=environment, capture_output=True, text=True,
                              timeout=120)

    def written(self):
        page, = self.out.glob("gpu-*-imaginary-device.md")
        return page.read_text(), json.loads(page.with_suffix(".json").read_text())

    def result_of(self, stage, name):
        return next(step for step in self.written()[1]["steps"] if (step["stage"], step["name"]) == (stage, name))

    def asked(self, file):
        path = self.fakes / file
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def test_without_a_device_it_refuses_and_writes_nothing(self):
        for driver in (None, {"init": 100}, {"count": 0}):
            if driver:
                self.with_driver(**driver)
            result = self.report()
            self.assertEqual(result.returncode, 3)
            self.assertIn("nothing was written", result.stderr)
            self.assertFalse(self.out.exists() or (self.top / "build").exists())
            self.assertEqual(self.asked("calls"), [])

    def test_usage(self):
        self.assertEqual(self.report("--stage", "tset").returncode, 2)
        self.assertEqual(subprocess.run([sys.executable, REPORT, "--dry"], capture_output=True, check=False).returncode, 2)

    def test_dry_it_builds_and_says_that_nothing_ran(self):
        self.with_driver()
        result = self.report("--dry")
        self.assertEqual(result.returncode, 0, result.stderr)
        page, = self.out.glob("gpu-*-dry.md")
        self.assertIn("**Nothing of this ran on a device**", page.read_text())
        self.assertIn("| test | test | left out | 0 | there is no device; nothing of this ran |", page.read_text())
        calls = self.asked("calls")
        self.assertTrue([call for call in calls if call.startswith("cmake --build")])
        self.assertFalse([call for call in calls if call.startswith("ctest")])
        self.given("broken")
        self.assertEqual(self.report("--dry").returncode, 1)
        self.assertIn("| build | compile | failed | 0 | error: no such thing |", page.read_text())

    def test_all_stages_make_a_green_report(self):
        self.with_driver()
        result = self.report("--large", "large$")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        page, data = self.written()
        self.assertIn("**Green**", page)
        self.assertEqual((data["machine"]["device"], data["machine"]["compute capability"]), ("Imaginary Device", "9.0"))
        calls = self.asked("calls")
        self.assertTrue([call for call in calls if "-DTALLY_CUDA=ON" in call and "-DCMAKE_CUDA_ARCHITECTURES=90" in call])
        self.assertTrue(all(call.startswith("ctest required=1 ") for call in calls if call.startswith("ctest")))
        checks = self.asked("checks")
        self.assertEqual(len(checks), 6)  # two tests under three tools, the large one left out
        self.assertIn(f"--tool initcheck --error-exitcode 86 --report-api-errors no {self.top}/build/tests/test_cuda two", checks)
        self.assertIn("0 waits of the host were counted", page)
        # of 9 rounds: tally's median, its share of the floor's speed round by round, and what was asked for
        self.assertIn("| large MLP as 1x64 | 100 ns | 100 ns | cuBLAS | 90 ns | 0.90 |  | 0.95: **no** |", page)
        self.assertIn("| relu 8x8 | 1 us | 1 us | copy | 900 ns | 0.90 | 4.00 TB/s | 0.85: yes |", page)
        self.assertIn("| large MLP | 4x16 over 1x64 | 2.000 | 1.333 | **no** |", page)
        self.assertIn("| toy | step | 2 us | 8 us | 4.00 (4.00 to 4.00) | 3: yes | 1 us | 0.50 (0.50 to 0.50) | 1: **no** |", page)
        render = subprocess.run([sys.executable, REPORT, "--render", next(self.out.glob("*.json"))], capture_output=True,
                                text=True, check=True)
        self.assertEqual(render.stdout, page)

    def test_stages_in_several_calls_are_one_report(self):
        self.with_driver()
        self.assertEqual(self.report("--stage", "build,test").returncode, 0)
        self.assertIn("sanitizer: not run", self.written()[0])
        self.assertEqual(self.report("--stage", "sanitizer").returncode, 0)
        (self.top / "build/gpu-report.json").rename(self.top / "earlier.json")
        self.assertEqual(self.report("--stage", "bench,lessons", "--earlier", self.top / "earlier.json").returncode, 0)
        self.assertIn("**Green**", self.written()[0])

    def test_what_the_sanitizer_found_is_named_and_checked_again(self):
        self.with_driver()
        self.given("race")
        self.assertEqual(self.report().returncode, 1)
        page, _ = self.written()
        self.assertIn("**Not green**: sanitizer: racecheck (failed).", page)
        self.assertIn("| racecheck | 2 | cuda/two (found something) |", page)
        self.asked("checks")
        self.given()
        self.assertEqual(self.report("--stage", "sanitizer").returncode, 0)
        self.assertEqual(len(self.asked("checks")), 1)
        self.assertIn("**Green**", self.written()[0])

    def test_a_skipped_device_test_is_a_failure(self):
        self.with_driver()
        self.given("skips")
        self.assertEqual(self.report("--stage", "build,test").returncode, 1)
        self.assertEqual(self.result_of("test", "device tests")["result"], "failed")
        self.assertEqual(self.result_of("test", "device tests")["words"], "1 passed, 0 failed, 1 skipped; skipped: b")
        self.assertEqual(self.result_of("test", "all others")["result"], "passed")  # these may skip for other reasons

    def test_without_what_the_lessons_need(self):
        self.with_driver()
        self.given("no-fmt")
        self.assertEqual(self.report().returncode, 1)
        self.assertEqual(self.result_of("build", "configure")["words"], "without the lessons: there is no fmt")
        self.assertEqual(self.result_of("lessons", "lessons")["result"], "missing")

    def test_a_lesson_that_prints_something_else(self):
        self.with_driver()
        self.given("differs")
        self.assertEqual(self.report("--stage", "build,lessons").returncode, 1)
        self.assertEqual(self.result_of("lessons", "lesson_01_one")["result"], "failed")

    def test_pytorch_may_be_missing_but_not_disagree(self):
        self.with_driver()
        self.given("no-torch")
        self.assertEqual(self.report("--stage", "build,bench").returncode, 0)
        self.assertEqual(self.result_of("bench", "PyTorch")["result"], "left out")
        self.given("wrong")
        self.assertEqual(self.report("--stage", "bench").returncode, 1)
        self.assertIn("toy", self.result_of("bench", "the same results as PyTorch")["words"])

    def test_when_the_time_is_up_the_rest_is_not_run(self):
        self.with_driver()
        self.report("--stage", "build")
        self.assertEqual(self.report("--stage", "sanitizer", "--minutes", "1e-9").returncode, 1)
        self.assertEqual(self.asked("checks"), [])
        self.assertEqual(self.result_of("sanitizer", "memcheck")["words"], "3 not run")
        self.assertEqual(self.report("--stage", "sanitizer").returncode, 0)


if __name__ == "__main__":
    if not shutil.which("cc"):
        print("skipped: no cc", file=sys.stderr)
        sys.exit(77)
    unittest.main()
