#!/usr/bin/env python3
"""Tests lessons on several ranks: invalid numbers, and ranks that cannot start, die, or are interrupted.

    lesson_test.py LESSON [MPIEXEC]     without MPIEXEC, tally was built without MPI
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lesson"))
from terminal_driver import Terminal, clean_environment, have_terminals, run_tests  # noqa: E402

IN_TIME = 10  # seconds until all processes have ended


class Stage:
    """Has a folder for temporary files, and an environment variable that marks all processes that this test starts."""

    def __init__(self, lesson):
        self.lesson, self.folder = lesson, tempfile.TemporaryDirectory(prefix="tally-on-ranks-")
        self.path = Path(self.folder.name)
        (self.path / "tmp").mkdir()
        self.environment = {"TMPDIR": str(self.path / "tmp"), "TALLY_MARK": self.folder.name}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running():
            os.kill(process, signal.SIGKILL)
        self.folder.cleanup()

    def launcher(self, script):
        """Replaces mpiexec by a script, in which $MPIEXEC is the real program."""
        program = self.path / "launcher"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        self.environment |= {"TALLY_MPIEXEC": str(program), "MPIEXEC": MPIEXEC or "/bin/false"}

    def each_rank(self, script):
        """Lets each rank run a script instead of the lesson. In the script, "$@" is the lesson's command, and $rank is the number of the rank."""
        program = self.path / "rank"
        program.write_text('#!/bin/sh\nrank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\nfor file; do :; done; file=${file#--rank-says=}\n' + script)
        program.chmod(0o755)
        self.launcher(f'number=$2; shift 2; exec "$MPIEXEC" -n "$number" {program} "$@"\n')

    def run(self, *words):
        return subprocess.run([self.lesson, "--plain", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=60, env=clean_environment(**self.environment))

    def start(self):
        return subprocess.Popen([self.lesson, "--plain"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=clean_environment(**self.environment))

    def running(self):
        """Returns the processes that this test has started and that still run, without zombies."""
        mark, found = f"TALLY_MARK={self.folder.name}".encode(), []
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def wait_for(self, what):
        until = time.monotonic() + IN_TIME
        while not (result := what()):
            assert time.monotonic() < until, f"not within {IN_TIME} s; alive: {self.running()}"
            time.sleep(0.02)
        return result

    def expect_nothing_left(self):
        self.wait_for(lambda: not self.running())
        assert not list((self.path / "tmp").glob("tally-ranks-*")), "a file has not been removed"


def in_one_line(text):
    return " ".join(text.split())


def test_invalid_numbers_of_ranks(lesson):
    with Stage(lesson) as stage:
        for number in ("0", "1", "7", "-1", "2.5", "three", "1,2", ""):
            done = stage.run(f"--ranks={number}")
            assert done.returncode == 2 and done.stdout == "", (number, done)
            assert f"--ranks {number}" in done.stderr and "it must be a whole number from 2 to 6" in done.stderr or number == "", done.stderr


def test_a_missing_launcher_skips(lesson):
    with Stage(lesson) as stage:
        for launcher, words in (("/nowhere/mpirun", "/nowhere/mpirun, which would start them, cannot be run"), ("", "built without an MPI")):
            stage.environment["TALLY_MPIEXEC"] = launcher
            done = stage.run()
            assert done.returncode == 77 and "[skip]" in done.stdout and words in in_one_line(done.stdout), done
            assert done.stderr == "", done.stderr


def test_a_launcher_that_fails_is_quoted(lesson):
    with Stage(lesson) as stage:
        stage.launcher('echo "------"; echo "there are not enough slots" >&2; exit 3\n')
        done = stage.run()
        assert done.returncode == 1 and "[FAIL]" in done.stdout, done
        assert "ended with exit code 3: there are not enough slots" in in_one_line(done.stdout), done.stdout
        stage.expect_nothing_left()


def test_every_number_of_ranks(lesson):
    if not MPIEXEC:
        return
    with Stage(lesson) as stage:
        for ranks in (2, 3, 5):
            done = stage.run("--json", f"--ranks={ranks}")
            events = [json.loads(line) for line in done.stdout.splitlines()]  # only the program that shows the lesson prints events
            assert done.returncode == 0 and done.stderr == "" and events[-1]["outcome"] == "ok", done
        stage.expect_nothing_left()


def test_a_rank_that_never_begins(lesson):
    if not MPIEXEC:
        return
    with Stage(lesson) as stage:
        stage.each_rank('if [ "$rank" = 1 ]; then kill -9 $$; fi\nexec "$@"\n')
        done = stage.run()
        assert done.returncode == 1 and "[FAIL]" in done.stdout and "ended with" in done.stdout, done
        stage.expect_nothing_left()


def test_a_rank_that_is_killed_in_the_middle(lesson):
    """Kills a rank when the first results are written, so that some steps are shown before the error message."""
    if not MPIEXEC:
        return
    with Stage(lesson) as stage:
        stage.each_rank('if [ "$rank" != 1 ]; then exec "$@"; fi\n"$@" &\nuntil [ -s "$file" ]; do :; done\nkill -9 $!\nwait $!\n')
        done = stage.run()
        assert done.returncode == 1 and "[FAIL]" in done.stdout and "ended with" in in_one_line(done.stdout), done
        stage.expect_nothing_left()


def test_an_error_of_the_ranks_is_quoted(lesson):
    if not MPIEXEC:
        return
    with Stage(lesson) as stage:
        # The last argument is the file for the results of a rank. No rank can write this file, so each of them throws.
        stage.each_rank('n=$#; for word; do shift; n=$((n - 1)); [ $n -gt 0 ] || word=--rank-says=/nowhere/file; set -- "$@" "$word"; done\n'
                        'exec "$@"\n')
        done = stage.run()
        assert done.returncode == 1 and "/nowhere/file" in in_one_line(done.stdout), done
        stage.expect_nothing_left()


def test_a_signal_ends_all_ranks(lesson):
    if not MPIEXEC:
        return
    for sent, code in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)):
        with Stage(lesson) as stage:
            stage.each_rank('echo >>"$0.here"\nexec sleep 1000\n')
            shown = stage.start()
            stage.wait_for(lambda: (stage.path / "rank.here").exists() and len((stage.path / "rank.here").read_text()) == 3)
            shown.send_signal(sent)
            out, _ = shown.communicate(timeout=IN_TIME)
            assert shown.returncode == code, (sent, shown.returncode, out)
            if sent == signal.SIGKILL:
                stage.wait_for(lambda: not stage.running())
            else:
                stage.expect_nothing_left()


def test_ranks_end_before_the_first_key(lesson):
    """Tests that at a terminal all ranks have ended when the first step waits for a key."""
    if not MPIEXEC or not have_terminals():
        return
    with Stage(lesson) as stage, Terminal([lesson], **stage.environment) as terminal:
        terminal.expect("[1/")
        terminal.expect("q quit")
        assert stage.running() == [terminal.process.pid], stage.running()
        terminal.type(" ")
        terminal.expect("[2/")
        terminal.expect("skip) > ")
        terminal.type("384\r")
        terminal.expect("Right")
        terminal.expect("q quit")
        terminal.type("q")
        assert terminal.wait() == 0
        stage.expect_nothing_left()


if __name__ == "__main__":
    MPIEXEC = sys.argv[2] if len(sys.argv) > 2 else None
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]))
