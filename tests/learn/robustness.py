#!/usr/bin/env python3
# Tests ./learn in changed and read-only checkouts, through links, in parallel, and with kills at random times.
# Usage: robustness.py [--seed S] [--rounds N]
import contextlib
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile

from faked import LESSONS, Faked, main


class Robustness(Faked):
    draw = random.Random(0)
    rounds = 6
    killed = 0

    def setUp(self):
        super().setUp()
        self.release, self.inside = self.tree / "build/release", self.fakes / "inside"
        self.programs = [self.release / "lessons" / each for each in LESSONS]

    def assertComplete(self):
        """Checks that all programs are complete and that no two builds overlapped. Returns the names in build/."""
        for program in [*LESSONS, "../tally/tally.so"]:
            self.assertIn("whole", (self.tree / "build/release/lessons" / program).read_text(), program)
        self.assertNotIn("overlap", self.calls())
        return sorted(str(path.relative_to(self.tree)) for path in (self.tree / "build").rglob("*"))

    def configured(self, **more):
        """Runs all lessons, and returns whether CMake was called and whether a message says that the build is from scratch."""
        self.calls()
        result = self.learn("run", "all", **more)
        self.assertGood(result)
        return bool(self.calls("cmake")), "building from scratch" in result.stderr

    # ---- another compiler, other places ----

    def test_another_compiler_builds_from_scratch(self):
        self.fake("other++", "exit 0")
        (self.bin / "same++").symlink_to("c++")
        for environment, expected in (({}, (True, False)), ({"CXX": "same++"}, (False, False)), ({"CXX": "other++"}, (True, True)),
                                      ({"CXX": "other++"}, (False, False)), ({}, (False, False)), ({"CXX": "c++"}, (True, True))):
            self.assertEqual(self.configured(**environment), expected, environment)

    def test_another_generator_builds_from_scratch(self):
        self.configured()
        cache = self.release / "CMakeCache.txt"
        cache.write_text(cache.read_text().replace("=Ninja", "=Unix Makefiles"))
        self.assertEqual([self.configured(), self.configured()], [(True, True), (False, False)])

    def test_a_moved_checkout_is_built_again(self):
        self.assertEqual([self.configured(), self.configured()], [(True, False), (False, False)])
        self.tree = self.tree.rename(self.top / "moved")
        self.assertEqual([self.configured(), self.configured()], [(True, False), (False, False)])
        (self.tree / "build/release/CMakeCache.txt").unlink()  # as after a kill while the folder was removed
        self.assertEqual(self.configured(), (True, False))

    def test_a_build_folder_of_another_checkout_is_kept(self):
        shutil.copytree(self.tree, self.top / "other")
        self.configured()
        for environment in ({}, {"CXX": shutil.copy(self.bin / "c++", self.bin / "other++")}):
            result = self.learn("1", program=self.top / "other/learn", TALLY_BUILD=str(self.release), **environment)
            self.assertEqual(result.returncode, 4, result.stderr)
            self.assertIn("TALLY_BUILD names a folder of another checkout", result.stderr)
            self.assertComplete()

    def test_through_links(self):
        far = self.top / "far -> away"
        far.mkdir()
        (far / "absolute").symlink_to(self.tree / "learn")
        (far / "relative").symlink_to("../a tree/learn")
        (far / "of a link").symlink_to("relative")
        (self.top / "folder").symlink_to("a tree")
        self.assertEqual(self.configured(cwd=self.top / "folder", PWD=str(self.top / "folder")), (True, False))
        for program in (far / "absolute", far / "relative", far / "of a link", self.top / "folder/learn"):
            self.assertEqual(self.configured(program=program), (False, False))
        self.assertEqual(sorted(os.listdir(far)), ["absolute", "of a link", "relative"])

    def test_folder_names(self):
        for name in ("a;b", 'a"b', "a#b", "a\\b", "a\nb", "ab\n"):
            (self.top / name).mkdir()
            shutil.copy(self.tree / "learn", self.top / name)
            result = self.learn("list", program=self.top / name / "learn")
            self.assertEqual((result.returncode, os.listdir(self.top / name)), (4, ["learn"]), result.stderr)
            self.assertIn("move or rename", result.stderr)
        for name in ("a b", "a'b", "ä$HOME", "a(b)"):
            shutil.copytree(self.tree, self.top / name)
            self.assertEqual(self.configured(program=self.top / name / "learn"), (True, False))

    # ---- a checkout of another user ----

    def test_read_only_and_never_built(self):
        for words in (["1"], [], ["check"], ["test"], ["test", "--gpu"], ["bench"]):
            result = self.other_user(*words, TALLY_WORK=str(self.top / "work"))
            self.assertEqual(result.returncode, 5, result)
            self.assertIn(f"cannot write in {self.tree}/build", result.stderr)
            self.assertNotIn("Traceback", result.stderr)
        self.assertEqual(self.calls(), [])

    def test_read_only_and_built_by_its_owner(self):
        self.configured()
        self.learn("check")
        home = self.top / "home"
        home.mkdir(mode=0o777)
        home.chmod(0o777)
        for words, code in (["run", "all"], 0), (["hint", "set-or-add"], 0), (["check"], 77):
            result = self.other_user(*words, HOME=str(home))
            self.assertEqual(result.returncode, code, result)
            self.assertEqual(result.stderr, f"this checkout cannot be written: your progress is kept in {home}/.local/share/tally\n")
        self.assertEqual(sorted(os.listdir(home / ".local/share/tally")), ["answers", "exercises"])
        self.assertEqual(self.other_user("run", "all", "--quiet").stderr, "")

    # ---- in parallel ----

    def assertWaits(self, process):
        self.until(lambda: select.select([process.stderr], [], [], 0)[0])
        self.assertEqual(process.stderr.readline(), "another ./learn is working in this checkout: waiting\n")

    def test_one_build_at_a_time(self):
        self.close_gate(LESSONS[1])
        first = self.start("2")
        self.until(self.programs[1].exists)
        others = [self.start("run", "all") for _ in range(4)]
        for each in others:
            self.assertWaits(each)
        self.open_gate(LESSONS[1])
        for each in (first, *others):
            self.assertGood(self.ended(each))
        calls = self.calls("compiler")
        self.assertEqual(len(calls), len(set(calls)))
        self.assertComplete()

    def test_the_compilers_of_a_killed_runner_are_waited_for(self):
        for kill in (os.kill, os.killpg):
            self.close_gate(LESSONS[0])
            first = self.start("run", "all")
            self.until(self.programs[0].exists)
            kill(first.pid, signal.SIGKILL)
            first.wait()
            second = self.start("run", "all")
            self.assertWaits(second)
            self.open_gate(LESSONS[0])
            self.assertGood(self.ended(second))
            self.assertComplete()
            shutil.rmtree(self.tree / "build")

    def test_a_server_of_a_compiler_launcher_does_not_keep_the_lock(self):
        self.close_gate(LESSONS[1])
        first = self.start("2", CMAKE_CXX_COMPILER_LAUNCHER="sccache")
        self.until(self.programs[1].exists)
        self.assertTrue(self.locked(self.tree / "build/learn.lock"))
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        self.assertFalse(self.locked(self.tree / "build/learn.lock"))
        self.open_gate(LESSONS[1])

    def reading(self):
        """Starts lesson 1 at a terminal, where it waits for a key, and waits until a compiler in the background builds lesson 2."""
        self.close_gate("key")
        self.close_gate(LESSONS[1])
        mine, theirs = pty.openpty()
        for each in (mine, theirs):
            self.addCleanup(os.close, each)
        process = self.start("1", terminal=theirs)
        seen = b""
        while f"{LESSONS[0]}: ".encode() not in seen:
            seen += os.read(mine, 4096)
        self.until(self.programs[1].exists)
        return process

    def test_a_build_in_the_background_ends_with_the_runner(self):
        self.assertGood(self.learn("1"))
        for kill in (False, True):
            process = self.reading()
            if kill:
                process.kill()
            else:
                self.open_gate("key")
            self.assertEqual(process.wait(60), -signal.SIGKILL if kill else 0)
            self.until(lambda: not self.programs[1].exists() and not self.locked(self.inside))
            (self.fakes / f"gate {LESSONS[1]}").unlink()

    def test_a_build_in_the_background_makes_way_for_another_runner(self):
        self.assertGood(self.learn("1"))
        process = self.reading()
        other = self.start("2")
        self.until(lambda: not self.locked(self.inside) or self.programs[1].stat().st_size)
        (self.fakes / "gate key").rename(self.fakes / "gate reader")
        self.open_gate(LESSONS[1])
        result = self.ended(other)
        self.assertGood(result)
        self.assertNotIn("waiting", result.stderr)
        self.open_gate("reader")
        self.assertEqual(process.wait(60), 0)
        self.assertNotIn("overlap", self.calls())

    # ---- signals ----

    def test_signals_keep_complete_files(self):
        for sent, kill in ((signal.SIGINT, os.killpg), *((sent, kill) for sent in (signal.SIGTERM, signal.SIGHUP) for kill in (os.kill, os.killpg))):
            self.close_gate(LESSONS[1])
            begun = self.start("run", "all")
            self.until(self.programs[1].exists)
            made = self.programs[0].stat().st_mtime_ns
            kill(begun.pid, sent)
            self.assertEqual(begun.wait(60), 128 + sent)
            self.assertFalse(self.programs[1].exists() or self.locked(self.inside))
            (self.fakes / f"gate {LESSONS[1]}").unlink()
            self.assertGood(self.learn("run", "all"))
            self.assertEqual(self.programs[0].stat().st_mtime_ns, made, "a complete file was built again")
            self.assertComplete()
            shutil.rmtree(self.tree / "build")

    def test_the_next_run_repairs_a_killed_build(self):
        self.fake("other++", "exit 0")
        compilers = ["c++", "other++"]
        self.assertGood(self.learn("run", "all", CXX=compilers[0]))
        expected = self.assertComplete()
        for _ in range(self.rounds):
            change = self.draw.choice(["removed", "moved", "compiler", "program"])
            if change == "removed":
                shutil.rmtree(self.tree / "build")
            elif change == "moved":
                self.tree = self.tree.rename(self.tree.with_name({"a tree": "moved"}.get(self.tree.name, "a tree")))
            elif change == "compiler":
                compilers.reverse()
            else:
                (self.tree / "build/release/lessons" / LESSONS[1]).unlink()
            sent = self.draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
            whole_group = sent == signal.SIGINT or self.draw.random() < 0.6
            delay = self.draw.uniform(0, 0.6)
            process = self.start("run", "all", pace="0.05", CXX=compilers[0])
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if whole_group else os.kill)(process.pid, sent)
            code = process.wait(60)
            result = self.learn("run", "all", CXX=compilers[0])
            with self.subTest(f"{change}, {sent.name} to {'all' if whole_group else 'the runner'} after {delay:.3f} s ({code})"):
                # The start of Python ends with 1 after Ctrl-C.
                self.assertIn(code, (-sent, 128 + sent, 0, *([1] if sent == signal.SIGINT else [])))
                self.assertGood(result)
                self.assertEqual(self.assertComplete(), expected)
                Robustness.killed += code != 0


if __name__ == "__main__":
    words = sys.argv[1:]
    seed = int(words[words.index("--seed") + 1]) if "--seed" in words else random.randrange(10**6)
    if "--rounds" in words:
        Robustness.rounds = int(words[words.index("--rounds") + 1])
    Robustness.draw = random.Random(seed)
    tempfile.tempdir = os.path.realpath(tempfile.gettempdir())
    print(f"seed {seed}", file=sys.stderr)
    try:
        main(Robustness)
    finally:
        print(f"{Robustness.killed} runs were killed", file=sys.stderr)
