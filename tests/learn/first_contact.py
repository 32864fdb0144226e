#!/usr/bin/env python3
# Tests with fake tools how ./learn installs packages, builds the lessons and starts the runner.
import os
import shutil
from pathlib import Path

from faked import SUDO, Faked, main


class FirstContact(Faked):
    def assertChangedNothing(self, result, code=3):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn("nothing was changed", result.stderr)
        self.assertNotIn("apt-get install", self.calls())

    def test_help_needs_nothing(self):
        for words in (["--help"], ["-h"], ["--plain", "-h"]):
            result = self.learn(*words)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("./learn run WHICH", result.stdout)
            self.assertIn("./learn handout [LESSONS]", result.stdout)
            self.assertIn("--present", result.stdout)
        self.assertEqual(self.calls(), [])
        self.assertFalse((self.tree / "build").exists())

    def test_an_unknown_command_is_a_usage_error(self):
        result = self.learn("lst")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'lst'", result.stderr)
        self.assertFalse((self.tree / "build").exists())

    def test_a_number_runs_that_lesson(self):
        result = self.learn("7x")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'7x'", result.stderr)
        self.assertFalse((self.tree / "build").exists())
        self.state(installed="")
        for words, run in ((["7"], "run 7"), (["07", "--from", "2"], "run 07 --from 2"), (["--width", "60", "99"], "run --width 60 99")):
            result = self.learn(*words)
            self.assertEqual((result.returncode, result.stdout), (77, f"runner in {self.top}: {run}\n"))

    def test_an_option_value_is_not_a_command(self):
        self.state(installed="")
        self.assertIn("--width 60 list", self.learn("--width", "60", "list").stdout)

    def test_root_installs_and_continues(self):
        result = self.learn("run", "divide", "-o", "x y")
        self.assertEqual(result.returncode, 77, result.stderr)  # the exit code of the runner
        self.assertEqual(result.stdout, f"runner in {self.top}: run divide -o x y\n")
        self.assertIn("2.5 MB to download", result.stderr)
        self.assertIn("apt-get install --no-install-recommends g++ libxtensor-dev", result.stderr)
        self.assertIn("building the lessons 50 %", result.stderr)
        calls = self.calls()
        self.assertEqual(calls.count("apt-get install"), 1)
        self.assertNotIn("apt-get update", calls)

    def test_installed_packages_are_probed_once_and_silently(self):
        self.state(installed="")
        first = self.learn("list")
        self.assertNotIn("missing", first.stderr)
        calls = self.calls()
        self.assertGreater(calls.count("c++"), 7)
        self.assertFalse([call for call in calls if call.startswith("apt-get")])
        self.learn("list")
        self.assertEqual(self.calls().count("c++"), 0)

    def test_missing_package_lists_are_updated_first(self):
        self.state(lists=None, fresh=None)
        self.assertEqual(self.learn("list").returncode, 77)
        apt = [call for call in self.calls() if call.startswith("apt-get")]
        self.assertEqual(apt, ["apt-get update", "apt-get install"])

    def test_stale_package_lists_are_updated(self):
        self.state(fresh=None)
        self.assertEqual(self.learn("list").returncode, 77)
        apt = [call for call in self.calls() if call.startswith("apt-get")]
        self.assertEqual(apt, ["apt-get install", "apt-get update", "apt-get install"])

    def test_no_install_changes_nothing(self):
        self.assertChangedNothing(self.learn("list", TALLY_NO_INSTALL="1"))

    def test_not_root_without_sudo(self):
        self.state(uid="1000")
        result = self.learn("list")
        self.assertChangedNothing(result)
        self.assertIn("sudo apt-get install --no-install-recommends", result.stderr)

    def test_not_root_and_sudo_requires_a_password(self):
        self.state(uid="1000")
        self.fake("sudo", SUDO["password"])
        self.assertChangedNothing(self.learn("list", "--yes"))

    def test_sudo_without_password(self):
        self.state(uid="1000")
        self.fake("sudo", SUDO["free"])
        self.assertEqual(self.learn("list").returncode, 77)
        self.assertIn("sudo", self.calls())

    def test_asks_at_a_terminal(self):
        code, seen = self.learn_at_terminal("n\n", "list")
        self.assertEqual(code, 3)
        self.assertIn("Install now? [Y/n]", seen)
        self.assertNotIn("apt-get install", self.calls())
        code, seen = self.learn_at_terminal("\n", "list")
        self.assertEqual(code, 77)
        self.assertIn("apt-get install", self.calls())

    def test_at_a_terminal_sudo_may_ask_for_its_password(self):
        self.state(uid="1000")
        self.fake("sudo", SUDO["password"])
        code, _ = self.learn_at_terminal("y\n", "list")
        self.assertEqual(code, 77)
        self.assertIn("sudo", self.calls())

    def test_yes_skips_the_question(self):
        code, seen = self.learn_at_terminal("", "list", "--yes")
        self.assertEqual(code, 77)
        self.assertNotIn("[Y/n]", seen)

    def test_the_command_of_another_package_manager_is_printed(self):
        (self.bin / "apt-get").unlink()
        self.fake("dnf", "exit 1")
        result = self.learn("list")
        self.assertChangedNothing(result)
        self.assertIn("dnf install gcc-c++", result.stderr)
        self.assertIn("(untested)", result.stderr)

    def test_ninja_is_used_if_installed_and_make_otherwise(self):
        self.state(installed="")
        for ninja, make, asked, by in ((False, True, None, None), (True, True, None, "Ninja"), (True, False, None, "Ninja"),
                                       (True, True, "Unix Makefiles", "Unix Makefiles")):
            with self.subTest(ninja=ninja, make=make, asked=asked):
                for name, there in (("ninja", ninja), ("make", make)):
                    (self.bin / name).unlink(missing_ok=True)
                    if there:
                        self.fake(name, "exit 0")
                shutil.rmtree(self.tree / "build", ignore_errors=True)
                self.calls()
                self.assertEqual(self.learn("list", **({"CMAKE_GENERATOR": asked} if asked else {})).returncode, 77)
                self.assertEqual([call[3:] for call in self.calls() if call.startswith("by ")], [by] if by else [])
        for name in ("ninja", "make"):
            (self.bin / name).unlink()
        shutil.rmtree(self.tree / "build")
        result = self.learn("list", TALLY_NO_INSTALL="1")
        self.assertChangedNothing(result)
        self.assertIn("missing: Ninja or make\n", result.stderr)
        self.assertIn("apt-get install --no-install-recommends ninja-build\n", result.stderr)

    def test_installed_but_unusable(self):
        self.fake("c++", 'echo "this compiler is broken"; exit 1')
        result = self.learn("list")
        self.assertEqual(result.returncode, 3)
        self.assertIn("still not usable: a C++20 compiler", result.stderr)
        self.assertIn("this compiler is broken", result.stderr)

    def test_a_failed_build_shows_its_last_twenty_lines(self):
        self.state(installed="", broken="")
        result = self.learn("list")
        self.assertEqual(result.returncode, 4)
        shown = [line for line in result.stderr.splitlines() if line.isdigit()]
        self.assertEqual(shown, [str(n) for n in range(81, 101)])
        self.state(broken=None)
        self.calls()
        self.assertEqual(self.learn("list").returncode, 77)
        self.assertGreater(self.calls().count("c++"), 7)  # packages may have been removed, so they are probed again

    def test_ctrl_c_ends_the_build(self):
        self.state(installed="", endless="")
        code, seen = self.learn_at_terminal("\x03", "list", when="7 %")
        self.assertEqual(code, 130)
        self.assertTrue(seen.endswith("\n"), seen)

    def test_tests_run_in_the_build_folder(self):
        self.state(installed="")
        self.assertEqual(self.learn("test", "--", "-R", "toy").returncode, 0)
        calls = self.calls()
        gpu = any(os.path.exists(device) for device in ("/dev/nvidiactl", "/dev/dxg"))
        self.assertIn("cmake --preset release" if gpu else "cmake --preset release -DTALLY_CUDA=OFF", calls)
        tested = [call for call in calls if call.startswith("ctest")]
        self.assertEqual(len(tested), 1)
        self.assertTrue(tested[0].startswith(f"ctest required= --test-dir {self.tree}/build/release "), tested)
        self.assertTrue(tested[0].endswith(" -R toy"), tested)
        self.assertNotIn("nvcc", calls)
        self.state(**{"test fails": ""})
        self.assertEqual(self.learn("test").returncode, 1)

    def test_slow_tests_run_with_all(self):
        self.state(installed="")
        for words, leaves_out in ([], "-LE ^long$"), (["--all"], "-LE ^$"):
            self.calls()
            result = self.learn("test", *words)
            self.assertEqual((result.returncode, "./learn test --all" in result.stderr), (0, not words))
            self.assertTrue([call for call in self.calls() if call.startswith("ctest")][0].endswith(leaves_out))

    def test_packages_for_tests_are_required_only_by_test(self):
        self.state(installed="")
        for tool in ("python3", "pkg-config"):
            (self.bin / tool).unlink()
        self.assertEqual(self.learn("list").returncode, 77)
        result = self.learn("test", TALLY_NO_INSTALL="1")
        self.assertChangedNothing(result)
        self.assertIn("missing: python3, pkg-config\n", result.stderr)
        self.assertIn("apt-get install --no-install-recommends python3 pkg-config\n", result.stderr)
        code, seen = self.learn_at_terminal("n\n", "test")
        self.assertEqual((code, "Install now? [Y/n]" in seen), (3, True))
        self.calls()
        self.assertEqual(self.learn("test").returncode, 0)
        calls = self.calls()
        self.assertEqual(calls.count("apt-get install"), 1)
        self.assertIn(f"cmake {self.tree}/build/release", calls)  # CMake must run again to find them
        self.assertEqual(self.learn("test").returncode, 0)
        self.assertNotIn("apt-get install", self.calls())

    def test_bench_is_built_in_its_own_folder_and_runs_in_the_current_folder(self):
        self.state(installed="")
        result = self.learn("bench", "--quick", "-o", "here")
        self.assertEqual(result.returncode, 77, result.stderr)  # the exit code of the program
        self.assertEqual(result.stdout, f"runner in {self.top}: --quick --only  -o here\n")
        configured = [call for call in self.calls() if call.startswith("cmake --preset")]
        self.assertEqual(len(configured), 1)
        self.assertIn(f"-B {self.tree}/build/bench -DTALLY_BENCH=ON -DTALLY_CUDA=OFF", configured[0])
        self.assertFalse((self.tree / "build/release").exists())
        self.learn("bench")
        self.assertEqual(len([call for call in self.calls() if "--preset" in call]), 1)  # configures again

    def test_bench_passes_a_folder_with_a_python_to_the_program(self):
        self.state(installed="")
        folder = Path(self.top, "two words")
        folder.mkdir()
        (folder / "pyvenv.cfg").touch()
        result = self.learn("bench", "--peers", folder)
        self.assertIn(f" --frameworks {folder} -o ", result.stdout)
        result = self.learn("bench", "--peers", "/a")
        self.assertEqual(result.returncode, 2)
        self.assertIn("bench: /a was not made by tools/bench-peers", result.stderr)

    def test_bench_rejects_invalid_options_before_it_builds(self):
        for words, named in ((["bench", "--fast"], "'--fast'"), (["bench", "-o"], "-o needs"), (["bench", "toy"], "'toy'")):
            result = self.learn(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(named, result.stderr)
        self.assertFalse((self.tree / "build").exists())

    def test_gpu_builds_in_its_own_folder_and_requires_a_device(self):
        self.state(installed="")
        result = self.learn("test", "--gpu", "--", "-L", "cuda")
        self.assertEqual(result.returncode, 0, result.stderr)
        calls = self.calls()
        self.assertIn(f"cmake --preset release -B {self.tree}/build/gpu -DTALLY_CUDA=ON", calls)
        tested = [call for call in calls if call.startswith("ctest")]
        self.assertEqual(len(tested), 1)
        self.assertTrue(tested[0].startswith(f"ctest required=1 --test-dir {self.tree}/build/gpu "), tested)
        self.assertTrue(tested[0].endswith(" -L cuda"), tested)
        self.assertFalse((self.tree / "build/release").exists())
        self.state(**{"test fails": ""})
        self.assertEqual(self.learn("test", "--gpu").returncode, 1)

    def test_gpu_without_a_device_fails_before_it_builds(self):
        self.state(installed="", **{"no device": ""})
        result = self.learn("test", "--gpu")
        self.assertEqual(result.returncode, 1)
        self.assertIn("this machine has no CUDA device (no device is detected)", result.stderr)
        self.assertNotIn("skipped", result.stderr)
        self.assertFalse([call for call in self.calls() if call.startswith("cmake --") and "version" not in call])
        self.assertEqual([path.name for path in (self.tree / "build").glob("probe.program*")], [])

    def test_gpu_without_the_toolkit_changes_nothing(self):
        (self.bin / "nvcc").unlink()
        result = self.learn("test", "--gpu", CUDA_HOME="/nonexistent")
        self.assertChangedNothing(result)
        self.assertIn("CUDACXX", result.stderr)
        self.assertFalse((self.tree / "build").exists())

    def test_nvcc_is_found_by_name_or_in_its_usual_folder(self):
        self.state(installed="")
        (self.top / "cuda/bin").mkdir(parents=True)
        (self.bin / "nvcc").rename(self.top / "cuda/bin/nvcc")
        self.assertEqual(self.learn("test", "--gpu", CUDA_HOME=str(self.top / "cuda")).returncode, 0)
        self.assertEqual(self.learn("test", "--gpu", CUDACXX=str(self.top / "cuda/bin/nvcc")).returncode, 0)


if __name__ == "__main__":
    main(FirstContact)
