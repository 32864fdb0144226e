"""Runs a lesson or another program as a child, reads its output or its report, and restores the terminal."""
import os
import signal
import subprocess
import termios
from typing import NamedTuple

from common import Problem

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Result(NamedTuple):
    code: int    # the exit code of the child
    signal: int  # the signal that ended the child, or 0
    asked: int   # the signal that asked this program to end while the child ran, or 0
    text: str    # the captured output


def settings():
    """The settings of the terminal, or None without a terminal."""
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def restore(before):
    """Restores the terminal if the child could not, for example after SIGKILL."""
    if before and settings() not in (None, before) and os.tcgetpgrp(0) == os.getpgrp():
        termios.tcsetattr(0, termios.TCSANOW, before)
        os.write(2, b"\n")  # the child may have stopped in the middle of a line


def run(command, capture="", **more):
    """Runs a program. `capture`: "stdout" or "stderr" captures this output, "report" captures the lines that a lesson writes to
    --report=DESCRIPTOR, and "3" the output on descriptor 3, on which exercise-checks reports.

    The terminal sends SIGINT to the child, too. SIGTERM and SIGHUP are passed on to the child. After such a signal run() ends this
    program; with "report" the caller does so (Result.asked), because the report has answers to store.
    """
    asked, process, text = [], None, ""

    def ask(number, _):
        asked.append(number)
        if process and number != signal.SIGINT:
            process.send_signal(number)

    before = settings()
    handlers = {each: signal.signal(each, ask) for each in ENDING if signal.getsignal(each) != signal.SIG_IGN}
    try:
        if capture:
            reader, writer = os.pipe()
            if capture == "report":
                command, more["pass_fds"] = [*command, f"--report={writer}"], [writer]
            elif capture == "3":
                command, more["pass_fds"] = ["/bin/sh", "-c", f'exec "$@" 3>&{writer}', "sh", *command], [writer]
            else:
                more[capture] = writer
        process = subprocess.Popen(command, **more)
        if asked and asked[0] != signal.SIGINT:  # during Popen()
            process.send_signal(asked[0])
        if capture:
            os.close(writer)
            with open(reader, encoding="utf-8", errors="replace") as file:
                text = file.read()
        code = process.wait()
    except OSError as error:
        raise Problem(f"cannot start {command[0]}: {error.strerror}") from None
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        restore(before)
    if asked and capture != "report":
        raise Problem("", 128 + asked[0])
    return Result(max(code, 0), max(-code, 0), asked[0] if asked else 0, text)
