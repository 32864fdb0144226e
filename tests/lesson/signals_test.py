"""Tests that the terminal is restored after signals to the lesson, the runner or both: at a prompt, during work and at the start.

Usage: signals_test.py LEARN_RUNNER LESSON_SAMPLE [--seed S] [--random N]
Sends one signal of each kind once in each combination, or with --random N random signals. A shell with job control starts the runner.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time

from terminal_driver import TIMEOUT, Terminal, have_terminals

HANDLED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}  # signals that end a program
STOPS = {signal.SIGTSTP}
NOTHING = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGPIPE}
UNCATCHABLE = {signal.SIGKILL, signal.SIGSTOP}
ALL = sorted(set(signal.Signals) - {signal.SIGTTIN, signal.SIGTTOU} | {signal.SIGRTMIN + 1})
ONE_OF_EACH_KIND = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGSEGV, signal.SIGTSTP, signal.SIGSTOP, signal.SIGKILL,
                    signal.SIGPIPE, signal.SIGWINCH]

# This shell prints how the job ended or stopped, and continues the job in the foreground after the word fg. The trap keeps dash alive, because dash
# sends SIGINT to itself after a job that SIGINT has ended. If the lesson stopped before it read a q, the q is at the beginning of the next word.
SHELL = """trap : INT; set -m; '{0}' run sample {1}; echo "ENDED $?."
while read word; do case $word in *fg) fg >/dev/null; echo "AT LAST $?." ;; *) exit ;; esac; done"""
BAR = "q quit"

# AddressSanitizer would report a sent SIGSEGV as an error of the program while other threads continue, or hang if the signal interrupts
# AddressSanitizer. These options leave the signals to the kernel, as in other builds.
FAULTS_ARE_FAULTS = ":".join([*filter(None, [os.environ.get("ASAN_OPTIONS")]), "handle_segv=0:handle_sigbus=0:handle_sigfpe=0"])


def cases(signals):
    for sent, target, state in itertools.product(signals, ("lesson", "lesson twice", "runner", "group"), ("prompt", "output", "start")):
        if state == "start" and target.startswith("lesson"):
            continue  # the lesson has not started yet
        if target == "lesson twice" and (sent in STOPS or sent in UNCATCHABLE):
            continue
        if target == "group" and sent not in HANDLED | STOPS | NOTHING | UNCATCHABLE - {signal.SIGKILL}:
            continue  # no process is left to restore the terminal
        if sent == signal.SIGSTOP and target != "lesson":
            continue  # the shell takes the terminal before another process could restore it
        yield sent, target, state


def child_of(pid, named):
    """Returns the child of pid that runs this program, or None."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            if parent == pid and os.path.basename(os.readlink(f"/proc/{entry}/exe")) == named:
                return int(entry)
        except OSError:
            continue
    return None


def soon(what, condition):
    deadline = time.monotonic() + TIMEOUT
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited for {what}")
        time.sleep(0.001)
    return result


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def expected_codes(sent, target, state):
    """Returns the exit codes that a shell may see."""
    died = 128 + sent
    if target.startswith("lesson"):
        return {died} if sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) else {1}
    return {died}


def quits(t, end, group_stopped=False):
    """Presses q until the program quits. A key pressed before the line of keys is shown again is discarded.

    A lesson gets SIGTSTP twice, from the group and from the runner. The lesson may stop twice if a thread of BLAS got the second signal."""
    deadline = time.monotonic() + TIMEOUT
    again = ["fg\n"] if group_stopped else []
    while end not in t.unread:
        assert time.monotonic() < deadline, f"does not quit: {t.unread[-300:]!r}"
        if again and "AT LAST 147." in t.unread:
            t.type(again.pop())
        elif not t.restored():
            t.type("q")
        t._read(0.05)
    assert t.restored(), "left as in step mode after q"


def one(case, seen):
    runner, work, sent, target, state, delay = case
    words = "--from 4" if state == "output" else ""
    behaviour = "slow" if state == "output" else ""
    with Terminal(["sh", "-c", SHELL.format(runner, words)], TALLY_WORK=work, SAMPLE_LESSON=behaviour,
                  ASAN_OPTIONS=FAULTS_ARE_FAULTS) as t:
        seen.append(t)
        runner_pid = soon("the runner", lambda: (t._read(0), child_of(t.process.pid, "learn-runner"))[1])
        lesson_pid = None
        if state != "start":
            t.expect(BAR if state == "prompt" else "[4/5]")
            lesson_pid = soon("the lesson", lambda: child_of(runner_pid, "lesson_99_sample"))
            assert not t.restored(), "keys come one by one"
        time.sleep(delay)  # a random instant
        if target == "group":
            os.killpg(runner_pid, sent)
        else:
            os.kill(runner_pid if target == "runner" else lesson_pid, sent)
        if target == "lesson twice":
            with contextlib.suppress(ProcessLookupError):
                os.kill(lesson_pid, sent)

        if sent in NOTHING and not (sent == signal.SIGPIPE and state == "start"):
            quits(t, "ENDED 0.")
            t.type("\n")
        elif sent in STOPS or sent == signal.SIGSTOP:
            t.expect("ENDED ")
            assert t.restored(), "stopped, and left as in step mode"
            t.type("fg\n")
            quits(t, "AT LAST 0.", group_stopped=target == "group")
            t.type("\n")
        elif sent == signal.SIGPIPE:  # ends a program silently, unless the program ignores SIGPIPE already
            soon("an end or a prompt", lambda: (t._read(0.01), BAR in t.unread or "ENDED" in t.unread)[1])
            if BAR in t.unread:
                quits(t, "ENDED 0.")
            t.type("\n")
        else:
            t.expect("ENDED ")
            restored = t.restored()
            code = int(t.expect("."))
            assert code in expected_codes(sent, target, state), f"ended with {code}"
            if target == "runner" and sent not in HANDLED:  # the kernel signals the lesson after the runner's end
                soon("the restored terminal", t.restored)
            else:
                assert restored, "left as in step mode"
            if lesson_pid:
                soon("the lesson's end", lambda: gone(lesson_pid))
            t.type("\n")
        t.wait()
        assert t.restored(), "left as in step mode at last"


def tried(case):
    seen = []
    try:
        one(case, seen)
        return case, ""
    except Exception as error:  # noqa: BLE001  a case may fail in any way
        return case, f"{type(error).__name__}: {error}; on the terminal: {''.join(t.seen for t in seen)[-600:]!r}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("runner")
    options.add_argument("sample")
    options.add_argument("--seed", type=int, default=random.randrange(10**6))
    options.add_argument("--random", type=int)
    chosen = options.parse_args()
    if not have_terminals() or not os.path.exists("/proc/self/exe"):
        print("skipped: no pseudo-terminals or no /proc on this machine")
        return 77
    for ignored in signal.valid_signals():  # nohup ignores SIGHUP, and ./learn keeps ignored signals ignored
        if signal.getsignal(ignored) == signal.SIG_IGN and ignored != signal.SIGPIPE:
            signal.signal(ignored, signal.SIG_DFL)
    draw = random.Random(chosen.seed)
    print(f"seed {chosen.seed}", flush=True)
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(root + "/lessons")
        runner = shutil.copy(chosen.runner, root + "/learn-runner")
        shutil.copy(chosen.sample, root + "/lessons/lesson_99_sample")
        picked = draw.choices(list(cases(ALL)), k=chosen.random) if chosen.random else list(cases(ONE_OF_EACH_KIND))
        todo = [(runner, root + "/work", *case, draw.uniform(0, 0.2)) for case in picked]
        failed = 0
        with multiprocessing.Pool(6) as pool:  # most of the time is spent waiting
            for (_, _, sent, target, state, delay), fault in pool.imap_unordered(tried, todo):
                if fault:
                    failed += 1
                    print(f"[FAIL] {signal.Signals(sent).name if sent < 32 else sent} to {target}, {state} + {delay:.4f} s: {fault}", flush=True)
        with contextlib.suppress(AssertionError):  # a lesson whose runner was killed at the start may not have ended yet
            soon("the last one's end", lambda: not running_below(root))
        left = running_below(root)
        for pid, words in left.items():
            print(f"[FAIL] still running: {words}", flush=True)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        print(f"{len(todo)} signals, {failed} failed, {len(left)} processes left")
        return 1 if failed or left else 0


def running_below(root):
    """Returns the processes whose program is in the folder, with their command lines."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe").startswith(root):
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    found[int(pid)] = file.read().replace("\0", " ")
    return found


if __name__ == "__main__":
    sys.exit(main())
