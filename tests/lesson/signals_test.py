"""Tests that the terminal is restored after signals to the lesson or the runner, at a question and during work. Usage: signals_test.py LESSON_SAMPLE"""

import contextlib
import os
import signal
import sys
import time

from runner_test import with_sample
from terminal_driver import TIMEOUT, have_terminals, run_tests

# The signal, the process that gets it, and the exit codes of the runner.
CASES = [(signal.SIGINT, "both", 130), (signal.SIGTERM, "runner", 143), (signal.SIGHUP, "runner", 129), (signal.SIGKILL, "runner", -9),
         (signal.SIGTERM, "lesson", 143), (signal.SIGKILL, "lesson", 1)]


def soon(what, condition):
    deadline = time.monotonic() + TIMEOUT
    while not (result := condition()):
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.01)
    return result


def child_of(pid):
    """Returns the lesson that the runner with this process id started, or None."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == pid and "lesson_" in os.readlink(f"/proc/{entry}/exe"):
                    return int(entry)
    return None


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def at_a_place(sample, words, text, **environment):
    faults = []
    for sent, target, code in CASES:
        with with_sample(sample) as course, course.terminal("run", "sample", *words, **environment) as t:
            t.expect(text)
            lesson = soon("the lesson", lambda: child_of(t.process.pid))
            assert not t.restored(), "keys come one by one"
            if target == "both":
                t.type("\x03")  # Ctrl-C
            else:
                os.kill(t.process.pid if target == "runner" else lesson, sent)
            ended, case = t.wait(), f"{sent.name} to {target}"
            with contextlib.suppress(AssertionError):
                soon("the end of the lesson", lambda: gone(lesson))
                soon("the terminal", t.restored)
            if ended != code or not t.restored() or not gone(lesson):
                faults.append(f"{case}: {ended}, terminal restored: {t.restored()}, lesson ended: {gone(lesson)}, {t.seen[-200:]!r}")
            if sent == signal.SIGKILL and target == "lesson" and "lesson sample was ended by signal 9 (Killed)" not in t.seen:
                faults.append(f"{case}: no message, {t.seen[-200:]!r}")
    assert not faults, "\n".join(faults)


def test_at_a_question(sample):
    at_a_place(sample, ["--from", "3"], "skip) > ")


def test_in_a_step(sample):
    at_a_place(sample, ["--from", "4"], "[4/5]", SAMPLE_LESSON="slow")


def test_between_two_lessons(sample):
    for sent, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        with with_sample(sample, (5, "full-batch", "ok")) as course, course.terminal() as t:
            t.expect("q leave")
            soon("keys one by one", lambda: not t.restored())
            os.kill(t.process.pid, sent)
            assert t.wait() == code and t.restored(), (sent, t.process.returncode, t.seen)


def test_ctrl_z(sample):
    shell = 'set -m; "$@"; echo "STOPPED $?."; read word; fg >/dev/null; echo "AT LAST $?."'
    with with_sample(sample) as course, course.terminal("run", "sample", under=["bash", "-c", shell, "bash"]) as t:
        t.expect("q quit")
        t.type("\x1a")
        t.expect("STOPPED ")
        soon("the terminal", t.restored)
        t.type("fg\n")
        soon("keys one by one", lambda: (t._read(0.01), not t.restored())[1])
        t.expect("q quit")
        t.type("q")
        t.expect("AT LAST 0.")
        t.wait()
        assert t.restored()


if __name__ == "__main__":
    if not have_terminals() or not os.path.exists("/proc/self/exe"):
        print("skipped: no pseudo-terminals or no /proc on this machine")
        sys.exit(77)
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]))
