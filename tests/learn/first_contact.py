#!/usr/bin/env python3
# Tests with fake tools how ./learn installs packages, what it builds for each command, and how it tests and measures.
import os
import shutil

from faked import LESSONS, SUDO, Faked, main



class FirstContact(Faked):
    def assertChangedNothing(self, result, code=3):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn("nothing was changed", result.stderr)
        self.assertEqual(self.calls("apt-get"), [])

    def installs(self, *words, **environment):
        self.assertGood(self.learn(*(words or ["list"]), **environment))
        return self.calls("apt-get")

    # ---- the command line ----

    def test_help_needs_only_python(self):
        self.state(installed=None)
        self.remove("c++", "cmake", "ninja")
        for words in (["--help"], ["-h"], ["--plain", "-h"], ["help"], ["test", "--gpu", "-h"]):
            result = self.learn(*words)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("./learn run WHICH", result.stdout)
        self.assertEqual(self.calls(), [])
        self.assertFalse({"build", "work"} & set(os.listdir(self.tree)))

    def test_usage_errors_build_nothing(self):
        for words, named in ((["lst"], "'lst'"), (["7x"], "'7x'"), (["99"], "no lesson 99"), (["run", "1", "--from", "0"], "'0'"),
                             (["--width", "60", "test"], "test: the command"), (["test", "toy"], "'toy'"), (["bench", "--fast"], "'--fast'"),
                             (["bench", "-o"], "-o needs"), (["bench", "--peers", "/a"], "tools/bench-peers"), (["web", "x"], "'x'")):
            result = self.learn(*words)
            self.assertEqual(result.returncode, 2, (words, result.stderr))
            self.assertIn(named, result.stderr)
        self.assertEqual(self.calls(), [])
        self.assertFalse((self.tree / "build").exists())

    def test_an_option_value_is_not_a_command(self):
        self.assertIn("one-number", self.learn("--width", "60", "list").stdout)
        self.assertIn(f"{LESSONS[1]}: --from=2 --color=auto --width=60", self.learn("--width", "60", "2", "--from", "2").stdout)

    # ---- packages ----

    def test_root_installs_and_continues(self):
        self.state(installed="config-files")  # as dpkg names removed packages
        result = self.learn("run", "one-number")
        self.assertGood(result)
        self.assertIn("2.5 MB to download", result.stderr)
        self.assertIn("apt-get install --no-install-recommends libxtensor-dev libxsimd-dev", result.stderr)
        self.assertIn(LESSONS[1], result.stdout)
        self.assertEqual(self.calls("apt-get"), ["apt-get install"])
        self.assertEqual(self.installs(), [])

    def test_missing_package_lists_are_updated_first_and_stale_lists_after_a_failure(self):
        self.state(installed=None, lists=None, fresh=None)
        self.assertEqual(self.installs(), ["apt-get update", "apt-get install"])
        self.state(installed=None, fresh=None)
        self.assertEqual(self.installs(), ["apt-get install", "apt-get update", "apt-get install"])

    def test_missing_programs_are_installed(self):
        self.remove("c++", "cmake", "ninja")
        result = self.learn("list", TALLY_NO_INSTALL="1")
        self.assertChangedNothing(result)
        self.assertIn("missing: g++ cmake ninja-build\n", result.stderr)
        self.assertIn("missing: g++\n", self.learn("list", TALLY_NO_INSTALL="1", CXX="absent++").stderr.replace(" cmake ninja-build", ""))
        self.assertEqual(self.installs(), ["apt-get install"])

    def test_without_network(self):
        self.state(installed=None, offline="")
        result = self.learn("list")
        self.assertEqual(result.returncode, 3)
        self.assertIn("apt-get failed", result.stderr)

    def test_without_root(self):
        self.state(installed=None, uid="1000")
        result = self.learn("list")
        self.assertChangedNothing(result)
        self.assertIn("  sudo apt-get install --no-install-recommends libxtensor-dev", result.stderr)
        self.fake("sudo", SUDO["password"])
        self.assertChangedNothing(self.learn("list", "--yes"))
        self.assertEqual(self.learn_at_terminal("y\n", "list")[0], 0)  # at a terminal, sudo can ask for the password
        self.assertEqual(self.calls("sudo"), ["sudo"])
        self.state(installed=None)
        self.fake("sudo", SUDO["free"])
        self.assertEqual(self.installs(), ["apt-get install"])

    def test_asks_at_a_terminal(self):
        self.state(installed=None)
        for keys, expected in (("n\n", 3), ("\x03", 130), ("\n", 0)):
            code, seen = self.learn_at_terminal(keys, "list", when="Install now? [Y/n]")
            self.assertEqual((code, self.calls("apt-get")), (expected, [] if expected else ["apt-get install"]), seen)
        for words, environment in ((["--yes"], {}), (["--plain"], {}), (["--json"], {}), ([], {"CI": "true"})):
            self.state(installed=None)
            code, seen = self.learn_at_terminal("", "list", *words, **environment)
            self.assertEqual((code, "[Y/n]" in seen), (0, False), seen)

    def test_another_system(self):
        (self.bin / "apt-get").unlink()
        (self.bin / "dpkg-query").unlink()
        self.assertGood(self.learn("list"))  # CMake reports missing libraries
        self.remove("ninja")
        result = self.learn("list")
        self.assertChangedNothing(result)
        self.assertIn("missing: ninja-build\n", result.stderr)

    def test_installed_but_unusable(self):
        self.state(installed=None, unusable="")
        result = self.learn("list")
        self.assertEqual(result.returncode, 3)
        self.assertIn("still not usable: libxtensor-dev", result.stderr)

    def test_packages_of_test_and_web_are_required_only_there(self):
        (self.tree / "web").mkdir()
        (self.tree / "web/build.py").write_text("import sys; print('page of', *sys.argv[1:])")
        self.remove("pkg-config", "em++", "node")
        self.assertEqual(self.installs("list"), [])
        result = self.learn("web")
        self.assertEqual(result.stdout, f"open this in a browser: file://{self.tree}/docs/classroom.html\n")
        self.assertIn("missing: emscripten node-acorn\n", self.learn("web", "--build", TALLY_NO_INSTALL="1").stderr)
        result = self.learn("test", TALLY_NO_INSTALL="1")
        self.assertChangedNothing(result)
        self.assertIn("missing: pkg-config\n", result.stderr)
        self.assertEqual(self.installs("test"), ["apt-get install"])
        release, web = self.tree / "build/release/lessons", self.tree / "build/web"
        for tree in (self.tree, self.tree.with_name("moved")):
            self.tree = self.tree.rename(tree)
            self.assertIn(f"page of {tree}/build/web/web {tree}/build/release/lessons\n", self.learn("web", "--build").stdout, (release, web))
            self.assertEqual(self.calls("ninja"), ["ninja release tally_course", "ninja web engine"])

    # ---- builds ----

    def test_a_command_builds_only_what_it_needs(self):
        first, one, two = f"ninja first {LESSONS[0]}", *(f"ninja release {each} tally_modules" for each in LESSONS[:2])
        lessons = f"ninja release {' '.join(LESSONS)} tally_modules"
        for words, expected in (("list", []), ("hint set-or-add", []), ("score", []), (f"class {self.fakes}", []), ("doctor", []), ("1", [first]),
                                ("graph 1 -o x.svg", [first]), ("run 1 --help", [first]), ("2", [two]), ("run 1 --device auto", [one]), ("check", ["ninja release tally_exercises"]),
                                ("run all", [lessons]), ("", [lessons]), ("test", ["ninja release"])):
            self.learn(*words.split())
            self.assertEqual(self.calls("ninja"), expected, words)

    def test_a_failed_build_shows_its_last_twenty_lines(self):
        self.state(broken="")
        result = self.learn("1")
        self.assertEqual(result.returncode, 4)
        self.assertEqual([line for line in result.stderr.splitlines() if line.isdigit()], [str(n) for n in range(81, 101)])
        self.assertIn("the whole log is build/learn.log", result.stderr)
        self.assertIn("\n1\n2\n", "\n" + (self.tree / "build/learn.log").read_text())
        self.state(broken=None)
        self.assertGood(self.learn("1"))

    def test_progress(self):
        self.assertNotIn("building", self.learn("run", "all", "--quiet").stderr)
        shutil.rmtree(self.tree / "build")
        shown = self.learn("run", "all").stderr
        self.assertIn("building the lessons for the first time: about 6 minutes; log: build/learn.log\n", shown)
        self.assertEqual(shown.splitlines()[1:], [f"building the lessons{part}" for part in (" 20 %", " 50 %", " 70 %", " 100 %", ", done")])

    def test_ctrl_c_ends_the_build(self):
        self.close_gate(LESSONS[1])
        code, seen = self.learn_at_terminal("\x03", "run", "all", when="25 %")
        self.assertEqual(code, 130)
        self.assertTrue(seen.endswith("\n"), seen)

    # ---- test and bench ----

    def test_tests_run_in_the_build_folder(self):
        for words, leaves_out in ([], "-LE ^long$"), (["--all"], "-LE ^$"), (["--", "-R", "toy"], "-R toy"):
            result = self.learn("test", *words)
            self.assertGood(result)
            calls = self.calls()
            self.assertIn(f"cmake -G Ninja --preset release -B {self.tree}/build/release -DTALLY_CUDA=AUTO", calls)
            self.assertTrue(calls[-1].startswith(f"ctest required= --test-dir {self.tree}/build/release "), calls)
            self.assertTrue(calls[-1].endswith(" " + leaves_out), calls)
            self.assertEqual("./learn test --all" in result.stderr, not words)
            if not words:
                self.assertEqual((result.stdout, "testing 50 %\ntesting 100 %\n" in result.stderr), ("summary\n", True))
        self.state(**{"test fails": ""})
        self.assertEqual((self.learn("test").returncode, self.learn("test", "--", "-R", "toy").returncode), (1, 1))
        self.close_gate("ctest")
        self.assertEqual(self.learn_at_terminal("\x03", "test", when="waiting")[0], 130)

    def test_gpu_builds_in_its_own_folder_and_requires_a_device(self):
        self.assertGood(self.learn("test", "--gpu", "--", "-L", "cuda"))
        calls = self.calls()
        self.assertIn(f"cmake -G Ninja --preset release -B {self.tree}/build/gpu -DTALLY_CUDA=ON", calls)
        self.assertTrue(calls[-1].startswith(f"ctest required=1 --test-dir {self.tree}/build/gpu "), calls)
        self.assertTrue(calls[-1].endswith(" -L cuda"), calls)
        self.assertFalse((self.tree / "build/release").exists())
        (self.top / "cuda/bin").mkdir(parents=True)
        (self.bin / "nvcc").rename(self.top / "cuda/bin/nvcc")
        self.assertGood(self.learn("test", "--gpu", CUDA_HOME=str(self.top / "cuda")))
        self.assertGood(self.learn("test", "--gpu", CUDACXX=str(self.top / "cuda/bin/nvcc")))

    def test_gpu_without_a_device_or_without_the_toolkit_builds_nothing(self):
        self.state(**{"no device": ""})
        result = self.learn("test", "--gpu")
        self.assertEqual(result.returncode, 1)
        self.assertIn("this machine has no CUDA device (no device is detected)", result.stderr)
        self.assertEqual((self.calls(), os.listdir(self.tree / "build")), (["nvcc"], ["learn.log"]))
        shutil.rmtree(self.tree / "build")
        (self.bin / "nvcc").unlink()
        result = self.learn("test", "--gpu", CUDA_HOME="/nonexistent")
        self.assertChangedNothing(result)
        self.assertIn("CUDACXX", result.stderr)
        self.assertFalse((self.tree / "build").exists())

    def test_bench_is_built_in_its_own_folder_and_runs_in_the_current_folder(self):
        peers = self.top / "two words"
        peers.mkdir()
        (peers / "pyvenv.cfg").touch()
        result = self.learn("bench", "--quick", "--peers", "two words", "-o", "here")
        self.assertEqual(result.stdout, f"bench_table: --quick --only  --frameworks {peers} -o here\n", result.stderr)
        options = " ".join(f"-DTALLY_{name}" for name in ("BENCH=ON", "CUDA=OFF", "COURSE=OFF", "EXAMPLES=OFF", "TESTS=OFF"))
        self.assertEqual(self.calls("cmake"), [f"cmake -G Ninja --preset release -B {self.tree}/build/bench {options}"])
        self.assertFalse((self.tree / "build/release").exists())
        self.assertGood(self.learn("bench", TALLY_ARCH="x86-64-v3"))
        self.assertTrue(self.calls("cmake")[-1].endswith("-DTALLY_TESTS=OFF -DTALLY_ARCH=x86-64-v3"))


if __name__ == "__main__":
    main(FirstContact)
