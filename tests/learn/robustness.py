#!/usr/bin/env python3
# Tests ./learn in read-only checkouts, through links, in parallel, and with kills at random times. Usage: robustness.py [--seed S] [--rounds N]
import contextlib
import fcntl
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from faked import Faked, main

# Builds like make: existing files are kept, a kill may leave an incomplete file, and other signals remove the incomplete file.
MAKE = """
    echo "cmake $*" >>"$calls"
    case $1 in
        --version) echo "cmake version 3.25.1" ;;
        --preset)
            mkdir -p build/release
            printf 'CMAKE_HOME_DIRECTORY:INTERNAL=%s\\nCMAKE_CXX_COMPILER:STRING=%s\\n' "$PWD" "$CXX" >build/release/CMakeCache.txt
            touch build/release/Makefile ;;
        --build)
            exec 8>"$fakes/inside"
            test_flock -n 8 || echo overlap >>"$calls"
            trap 'rm -f "$target"; exit 143' INT TERM HUP
            sleep 0.02 # a real build needs as long before it writes
            mkdir -p "$2/lessons" "$2/exercises"
            parts="one.o two.o libtally.a lessons/lesson_07_divide learn-runner"
            case "$*" in *tally_practice*) parts="$parts exercises/exercise-checks" ;; esac
            for part in $parts; do
                target=$2/$part
                [ -e "$target" ] && [ ! "$2/../../src/x" -nt "$target" ] && continue
                echo "[ 50%] Building CXX object $part"
                printf '#!/bin/sh\\n' >"$target"
                chmod +x "$target"
                sleep "${pace:-0.02}"
                printf 'echo "runner: $*, work in $TALLY_WORK"; exit 77 # whole\\n' >>"$target"
                target=
                [ ! -e "$fakes/broken" ] || exit 2
            done
            [ ! -e "$fakes/edited" ] || echo newer >"$2/../../src/x" ;;
    esac
"""
RUNNER = "runner: list, work in "
OTHER_UID = 65534


class Robustness(Faked):
    draw = random.Random(0)
    rounds = 6

    def setUp(self):
        super().setUp()
        self.fake("cmake", MAKE)
        if shutil.which("flock"):
            (self.bin / "test_flock").symlink_to(shutil.which("flock"))
        else:
            self.fake("test_flock", "exit 0")
        for folder in ("src", "course", "lessons", "exercises", "cmake"):
            (self.tree / folder).mkdir()
        for file in ("src/x", "CMakeLists.txt", "CMakePresets.json"):
            (self.tree / file).write_text("")
        self.state(installed="")
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", self.top])

    def start(self, *words, program=None, **environment):
        command = [shutil.which(self.shell[0]), *self.shell[1:], str(program or self.tree / "learn"), *words]
        return subprocess.Popen(command, cwd=self.top, env=self.environment(**environment), text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def ended(self, process):
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def assertRuns(self, result):
        self.assertEqual(result.returncode, 77, result.stderr)  # the exit code of the runner
        self.assertTrue(result.stdout.startswith(RUNNER), result.stdout)

    def built(self):
        """Checks that all files in build/ are complete, and returns their names."""
        release = self.tree / "build/release"
        for part in ("one.o", "two.o", "libtally.a", "lessons/lesson_07_divide", "learn-runner"):
            self.assertIn("whole", (release / part).read_text(), part)
        return sorted(str(path.relative_to(self.tree)) for path in (self.tree / "build").rglob("*"))

    def other_user(self, *words, **environment):
        """Runs ./learn as a user who may read the checkout and not write to it."""
        subprocess.run(["chmod", "-R", "a+rX,a-w", self.tree], check=True)
        for folder in (self.top, self.fakes):
            folder.chmod(0o777)
        for file in (self.top / "calls", self.fakes / "inside"):
            file.touch()
            file.chmod(0o666)
        os_id = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups"] if os.geteuid() == 0 else []
        if os_id and not shutil.which("setpriv"):
            self.skipTest("root needs setpriv to become another user")
        command = [*os_id, shutil.which(self.shell[0]), *self.shell[1:], str(self.tree / "learn"), *words]
        path = self.environment(**environment)
        return subprocess.run([shutil.which(command[0]), *command[1:]], cwd="/", env=path, text=True, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60)

    # ---- when a build is started ----

    def asks(self, *words, **environment):
        """Returns whether a build was started. Without a build no other tool may be called."""
        self.calls()
        result = self.learn(*(words or ["list"]), **environment)
        self.assertEqual(result.returncode, 77, result.stderr)
        calls = self.calls()
        built = any(call.startswith("cmake --build") for call in calls)
        self.assertTrue(built or not calls, calls)
        return built

    def test_unchanged_sources_are_not_built(self):
        self.assertTrue(self.asks())
        for words in (["list"], ["run", "divide"], ["7"], [], ["graph", "7", "-o", "x.svg"], ["class", "pupils", "-o", "x.svg"], ["doctor"]):
            self.assertFalse(self.asks(*words), words)
        (self.tree / "README.md").write_text("not built from")
        self.assertFalse(self.asks())

    def test_unchanged_sources_start_quickly(self):
        self.assertTrue(self.asks())
        spent = []
        for _ in range(3):  # CPU time does not depend on other work of the machine
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.learn("run", "divide")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        self.assertLess(min(spent), 0.2, spent)

    def test_exercises_are_built_on_request_and_kept_up_to_date(self):
        checks = self.tree / "build/release/exercises/exercise-checks"
        self.assertTrue(self.asks())
        self.assertFalse(checks.exists())
        self.assertTrue(self.asks("check", "divide"))
        self.assertTrue(checks.exists())
        for words in (["check"], ["hint", "divide"], ["reset", "divide"], ["solution", "divide"], ["score"], ["dev-check"], ["list"]):
            self.assertFalse(self.asks(*words), words)
        before = checks.stat().st_mtime_ns
        (self.tree / "src/x").write_text("newer")
        self.assertTrue(self.asks("list"))
        self.assertGreater(checks.stat().st_mtime_ns, before)
        (self.tree / "exercises/new.cpp").write_text("")
        self.assertTrue(self.asks("check"))
        checks.unlink()
        self.assertTrue(self.asks("score"))

    def test_changed_sources_are_built_once(self):
        release = self.tree / "build/release"

        def moved():
            (self.top / "elsewhere").mkdir()
            self.tree = self.tree.rename(self.top / "elsewhere/a tree")

        def text(name):
            return lambda: (self.tree / name).write_text("#!/bin/sh\n")

        self.assertTrue(self.asks())
        for number, change in enumerate((
                text("src/x"), text("src/added"), (self.tree / "src/added").unlink, text("lessons/new.cpp"), text("cmake/y"),
                text("CMakeLists.txt"), text("CMakePresets.json"), lambda: os.utime(self.tree / "learn"),
                lambda: self.state(status="a package came"), (release / "lessons/lesson_07_divide").unlink,
                text("build/release/lessons/lesson_07_divide"), text("build/release/lessons/lesson_99_by_hand"),
                lambda: os.truncate(release / "learn-runner", 10), (release / "learn-runner").unlink, (release / "CMakeCache.txt").unlink, lambda: shutil.rmtree(release),
                lambda: shutil.rmtree(self.tree / "build"), (self.tree / "build/release.built").unlink, moved)):
            change()
            self.assertEqual((self.asks(), self.asks()), (True, False), f"change {number}")
            self.built()

    def test_a_source_changed_during_a_build_is_built_again(self):
        self.state(edited="")
        self.assertTrue(self.asks())
        self.state(edited=None)
        self.assertTrue(self.asks())
        self.assertFalse(self.asks())

    def test_a_failed_build_leaves_no_mark(self):
        self.assertTrue(self.asks())
        before = (self.tree / "src/x").stat()
        (self.tree / "src/x").write_text("newer")
        self.state(broken="")
        self.assertEqual(self.learn("list").returncode, 4)
        self.assertFalse((self.tree / "build/release.built").exists())
        self.state(broken=None)
        os.utime(self.tree / "src/x", ns=(before.st_atime_ns, before.st_mtime_ns))  # files built from the newer source still exist
        self.assertTrue(self.asks())
        self.assertFalse(self.asks())

    # ---- a checkout of another user ----

    def test_read_only_and_never_built(self):
        for command in (["list"], ["run", "divide"], [], ["test"], ["bench"]):
            result = self.other_user(*command)
            self.assertEqual(result.returncode, 5, result)
            self.assertIn(f"cannot write in {self.tree}/build", result.stderr)

    def test_read_only_and_built_by_its_owner(self):
        self.assertRuns(self.learn("list"))
        result = self.other_user("list", HOME="/home/student")
        self.assertRuns(result)
        self.assertIn("your progress is kept in /home/student/.local/share/tally", result.stderr)
        self.assertIn("work in /home/student/.local/share/tally", result.stdout)
        self.assertEqual(self.other_user("list", "--quiet").stderr, "")
        self.state(status="a package came")  # only the owner has to build again
        self.assertRuns(self.other_user("list"))
        (self.tree / "lessons").chmod(0o755)
        (self.tree / "lessons/new.cpp").write_text("")
        result = self.other_user("list")
        self.assertEqual(result.returncode, 5, result)
        self.assertIn("not built from the present sources", result.stderr)

    def test_read_only_without_built_exercises(self):
        self.assertRuns(self.learn("list"))
        for words in (["check"], ["hint", "divide"], ["score"]):
            result = self.other_user(*words)
            self.assertEqual(result.returncode, 5, result)
            self.assertIn("the exercises are not built there: ask the owner of this checkout to run ./learn score in it", result.stderr)
        self.assertRuns(self.other_user("list"))
        subprocess.run(["chmod", "-R", "u+w", self.top], check=True)
        self.assertTrue(self.asks("score"))  # as the message requests
        self.assertEqual(self.other_user("check").returncode, 77)

    # ---- links and folder names ----

    def test_through_links(self):
        far = self.top / "far -> away"
        far.mkdir()
        (far / "absolute").symlink_to(self.tree / "learn")
        (far / "relative").symlink_to("../a tree/learn")
        (far / "of a link").symlink_to("relative")
        (self.top / "folder").symlink_to("a tree")
        for way in (far / "absolute", far / "relative", far / "of a link", self.top / "folder/learn"):
            self.assertRuns(self.ended(self.start("list", program=way)))
        self.assertEqual(sorted(os.listdir(far)), ["absolute", "of a link", "relative"])

    def test_folder_names_that_cmake_rejects(self):
        for name in ("a;b", 'a"b', "a#b", "a\\b", "a\nb", "ab\n"):
            tree = self.top / name
            tree.mkdir()
            shutil.copy(self.tree / "learn", tree)
            result = self.ended(self.start("list", program=tree / "learn"))
            self.assertEqual(result.returncode, 4, (name, result.stderr))
            self.assertIn("move or rename", result.stderr)
            self.assertEqual(os.listdir(tree), ["learn"])
        for name in ("a b", "a'b", "ä$HOME", "a(b)"):
            shutil.copytree(self.tree, self.top / name)
            self.assertRuns(self.ended(self.start("list", program=self.top / name / "learn")))

    # ---- another compiler ----

    def test_a_requested_compiler_is_used(self):
        self.assertRuns(self.learn("list"))
        self.fake("other++", (self.bin / "c++").read_text())
        (self.bin / "same++").symlink_to("c++")

        def configured(**environment):
            self.calls()
            result = self.learn("list", **environment)
            self.assertRuns(result)
            return any(call.startswith("cmake --preset release") for call in self.calls()), "building from scratch" in result.stderr

        self.assertEqual(configured(CXX="same++"), (False, False))
        self.assertEqual(configured(CXX="other++"), (True, True))
        self.assertEqual(configured(CXX="other++"), (False, False))
        self.assertEqual(configured(), (False, False))  # no compiler is requested
        self.assertEqual(configured(CXX="c++"), (True, True))
        self.assertIn("STRING=c++", (self.tree / "build/release/CMakeCache.txt").read_text())

    # ---- in parallel ----

    def many_at_once(self):
        self.calls()
        results = [self.ended(process) for process in [self.start("list", pace="0.1") for _ in range(5)]]
        for result in results:
            self.assertRuns(result)
        calls = self.calls()
        self.assertNotIn("overlap", calls)
        self.assertEqual(sum(call.startswith("cmake --build") for call in calls), 1)
        self.assertEqual(sum("another ./learn is working" in result.stderr for result in results), 4)
        self.built()

    def test_many_at_once(self):
        self.many_at_once()

    def test_many_at_once_without_flock(self):
        (self.bin / "flock").unlink(missing_ok=True)
        self.many_at_once()
        (self.tree / "build/learn.lock.held").symlink_to("999999999")  # a process that has ended
        (self.tree / "src/x").write_text("newer")
        self.many_at_once()
        self.assertFalse([path for path in self.built() if "lock." in path])

    def test_no_waiting_without_a_build(self):
        self.assertRuns(self.learn("list"))
        with open(self.tree / "build/learn.lock", "a", encoding="utf-8") as lock:
            if not shutil.which("flock"):
                self.skipTest("no flock")
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.calls()
            result = self.learn("list")
            self.assertRuns(result)
            self.assertNotIn("waiting", result.stderr)
            (self.tree / "src/x").write_text("newer")
            waits = self.start("list")
            self.assertIn("another ./learn is working", waits.stderr.readline())
            self.assertEqual(self.calls(), [])
        self.assertRuns(self.ended(waits))

    # ---- signals ----

    def test_a_killed_builder_is_waited_for(self):
        first = self.start("list", pace="0.2")
        self.until(lambda: (self.tree / "build/release/one.o").exists())
        first.kill()  # only the script, not its children
        first.wait()
        result = self.learn("list")
        first.communicate()
        self.assertRuns(result)
        if shutil.which("flock"):
            self.assertIn("another ./learn is working", result.stderr)
            self.assertNotIn("overlap", self.calls())
            self.assertNotIn("was killed", result.stderr)  # the build was completed
        self.built()

    def test_signals_keep_complete_files(self):
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            (self.tree / "src/x").write_text("newer")
            begun = self.start("list", pace="0.2")
            one, two = (self.tree / "build/release" / name for name in ("one.o", "two.o"))
            self.until(lambda: one.exists() and "whole" in one.read_text() and two.exists() and "whole" not in two.read_text())
            made = one.stat().st_mtime_ns
            os.killpg(begun.pid, sent)
            self.assertIn(begun.wait(), (-sent, 128 + sent))
            self.assertFalse((self.tree / "build/release.built").exists())
            result = self.learn("list")
            self.assertRuns(result)
            self.assertNotIn("was killed", result.stderr)
            self.assertEqual(one.stat().st_mtime_ns, made, "a complete file was built again")
            self.built()

    def until(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline)

    def test_the_next_run_repairs_a_killed_build(self):
        self.assertRuns(self.learn("list"))
        expected = self.built()
        for _ in range(self.rounds):
            if self.draw.random() < 0.4:
                shutil.rmtree(self.tree / "build")  # begins with the first probe
            (self.tree / "src/x").write_text("newer")
            self.calls()
            sent = self.draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
            whole_group = sent == signal.SIGINT or self.draw.random() < 0.7
            delay = self.draw.uniform(0, 0.5)
            process = self.start("list", pace="0.04")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if whole_group else os.kill)(process.pid, sent)
            code = process.wait()
            result = self.learn("list")
            what = f"{sent.name} to {'all' if whole_group else 'the script'} after {delay:.3f} s ({code})"
            with self.subTest(what):
                self.assertIn(code, (-sent, 128 + sent, 77), what)
                self.assertRuns(result)
                self.assertEqual(self.built(), expected)
                self.assertNotIn("overlap", self.calls())
                process.communicate(timeout=30)  # no child may write after this
                Robustness.killed += code != 77
        self.assertRuns(self.learn("list"))

    killed = 0


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
