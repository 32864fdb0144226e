"""Runs a program at a pseudo-terminal: types keys, waits for text, and checks that the terminal was restored."""

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ROOT = Path(__file__).resolve().parents[2]
RUNNER = [sys.executable, "-B", str(ROOT / "course/runner")]
TIMEOUT = float(os.environ.get("TERMINAL_TIMEOUT", "20"))  # seconds to wait for a text


def have_terminals():
    try:
        for end in os.openpty():
            os.close(end)
        return True
    except OSError:
        return False


def clean_environment(**more):
    """Returns an environment that does not depend on the settings of the machine."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("CI", "NO_COLOR", "TALLY_WORK", "TALLY_ROOT", "SAMPLE_LESSON")}
    env.update(TERM="xterm", LC_ALL="C.UTF-8")
    env.update(more)
    return {k: v for k, v in env.items() if v is not None}


def given_build(build):
    """Returns a temporary folder, and an environment in which the runner uses the programs of a build and builds nothing.

    The runner builds only where a CMakeLists.txt is, and removes a build of another checkout, so its root is a folder of links.
    """
    root = tempfile.TemporaryDirectory()
    for name in ("lessons", "exercises", "src"):
        os.symlink(ROOT / name, Path(root.name, name))
    return root, {"TALLY_ROOT": root.name, "TALLY_BUILD": os.path.abspath(build)}


class Terminal:
    def __init__(self, command, columns=80, stdin=None, **environment):
        self.master, self.slave = os.openpty()
        self.resize(columns)
        self.before = termios.tcgetattr(self.slave)
        slave = self.slave
        self.process = subprocess.Popen(
            command, stdin=slave if stdin is None else stdin, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0), env=clean_environment(**environment))
        self.seen = ""    # all output so far
        self.unread = ""  # the output after the last expected text, without colours

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys.encode())

    def _read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        data = os.read(self.master, 65536).decode(errors="replace")
        self.seen += data
        self.unread = COLOUR.sub("", self.unread + data)
        return True

    def expect(self, text):
        """Reads until the text appears. Returns the unread output before the text."""
        deadline = time.monotonic() + TIMEOUT
        while text not in self.unread:
            if time.monotonic() > deadline:
                raise AssertionError(f"timeout while waiting for {text!r}; the last output was:\n{self.unread[-2000:]!r}")
            if not self._read(0.2) and self.process.poll() is not None and not self._read(0):
                raise AssertionError(f"ended ({self.process.returncode}) before {text!r}:\n{self.unread[-2000:]!r}")
        before, self.unread = self.unread.split(text, 1)
        return before

    def wait(self):
        """Waits for the end of the program and reads all output. Returns the exit code."""
        deadline = time.monotonic() + TIMEOUT
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"the program does not end; the last output was:\n{self.unread[-2000:]!r}")
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def lines(self):
        """Returns all lines that were on the screen, without colours, including rewritten lines."""
        return re.split(r"[\r\n]+", COLOUR.sub("", self.seen))


def skip_where_it_does(lesson, *arguments):
    """Skips this test with the lesson's message if the lesson cannot run."""
    result = subprocess.run([lesson, *arguments, "--plain"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            check=False, env=clean_environment())
    if result.returncode == 77:
        print(result.stdout)
        sys.exit(77)


def run_tests(module, *arguments):
    """Runs every function test_* of a module and exits with 0 or 1."""
    failed = 0
    for name, test in sorted(vars(module).items()):
        if not name.startswith("test_"):
            continue
        try:
            test(*arguments)
            print(f"[ok] {name}")
        except Exception as error:  # noqa: BLE001  a test may fail in any way
            failed += 1
            print(f"[FAIL] {name}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)
