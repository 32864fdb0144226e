#!/usr/bin/env python3
# A module of the device that is of no use, each in its own way: a sentence, and the CPU goes on.
# Usage: modules_test.py PROGRAM FOLDER_OF_MODULES SIMULATED [LESSON]
import os
import subprocess
import sys
import unittest

PROGRAM, FOLDER, SIMULATED, LESSON = (sys.argv[1:] + [None])[:4]

DEFECTIVE = {
    "/nowhere/tally_cuda.so": "device '/nowhere/tally_cuda.so' was not found: its module cannot be loaded: ",
    "other_version": "{file} belongs to tally 0.0.9, and this is tally ",
    "other_build": "{file} belongs to another build of tally ",
    "no_module": "{file} is not a module of tally",
    "old_driver": "this machine has no CUDA device (CUDA driver version is insufficient)",
    "lacks_library": "its module cannot be loaded: liblacking.so",
    "nothing": "device 'nothing' was not found; name its module in TALLY_GPU_MODULE",
}


def run(program, module, *words):
    environment = {**os.environ, "TALLY_GPU_MODULE": module}
    return subprocess.run([program, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)


class Modules(unittest.TestCase):
    def each(self):
        for module, sentence in DEFECTIVE.items():
            file = module if "/" in module or module == "nothing" else f"{FOLDER}/{module}.so"
            yield file, sentence.format(file=file)

    def test_a_program_reports_the_error_and_continues(self):
        for file, sentence in self.each():
            result = run(PROGRAM, file)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            lines = result.stdout.splitlines()
            self.assertEqual(lines[:3], ["cpu: 14", "waits: 0", "loaded before it is asked for: 0"])
            self.assertIn(sentence, lines[3])
            why = lines[3].removeprefix("absent: ")
            self.assertEqual(lines[4], f"error: [to] {why}")
            self.assertEqual(lines[6:], ["cpu: 14"])

    def test_one_that_is_of_use_is_loaded_when_it_is_asked_for(self):
        for module in (SIMULATED, "simulated"):
            lines = run(PROGRAM, module).stdout.splitlines()
            self.assertEqual(lines[2:], ["loaded before it is asked for: 0", "absent: ", "there: 3", "loaded: 1", "cpu: 14"])

    def test_a_lesson_is_skipped_with_a_message(self):
        if LESSON is None:
            self.skipTest("no lessons in this build")
        for file, sentence in self.each():
            for device in ("cuda", "simulated"):
                result = run(LESSON, file, f"--device={device}", "--plain", "--width=1000")
                self.assertEqual((result.returncode, result.stderr), (77, ""))
                self.assertIn("no CUDA device: ", result.stdout)
                self.assertIn(sentence, result.stdout)
            self.assertEqual(run(LESSON, file, "--plain").returncode, 0)
            self.assertEqual(run(LESSON, file, "--plain", "--device=auto").returncode, 0)

    def test_a_lesson_names_the_simulated_device(self):
        if LESSON is None:
            self.skipTest("no lessons in this build")
        for module, words in ((SIMULATED, ["--device=cuda"]), ("", ["--device=simulated"])):
            result = run(LESSON, module, *words, "--plain")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(" simulated  seed 0 ", result.stdout)
            self.assertIn("A simulated device: the host computes what a GPU would.", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
