"""Runs ./learn in a temporary checkout with fake tools. Only python3 and the tools of the shell are real."""
import contextlib
import fcntl
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHELLS = [words for words in (["dash"], ["bash", "--posix"], ["busybox", "sh"]) if shutil.which(words[0])]
LESSONS = ["lesson_01_does_not_fit", "lesson_02_one_number", "lesson_03_the_diamond"]
OTHER_UID = 65534
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # another user can start the first

# Each fake tool writes its calls to $calls. Files in $fakes are its state.
FAKES = {
    "c++": "exit 0",
    "cmake": """
        echo "cmake $*" >>"$calls"
        mkdir -p "$6"
        if [ -e "$6/CMakeCache.txt" ]; then
            grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$6/CMakeCache.txt" || { echo "the source does not match"; exit 1; }
            grep -qx "CMAKE_GENERATOR:INTERNAL=Ninja" "$6/CMakeCache.txt" || { echo "the generator does not match"; exit 1; }
        else
            printf '%s\\n' "CMAKE_GENERATOR:INTERNAL=Ninja" "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "CMAKE_CXX_COMPILER:STRING=$(command -v "${CXX:-c++}")" >"$6/new"
            mv "$6/new" "$6/CMakeCache.txt"
        fi
        touch "$6/new"
        mv "$6/new" "$6/build.ninja"
    """,
    "apt-get": """
        case "$*" in
            *--print-uris*) [ ! -e "$fakes/lists" ] || echo "'http://x/a.deb' a.deb 2500000 SHA256:0" ;;
            *update*) echo "apt-get update" >>"$calls"
                [ ! -e "$fakes/offline" ] || exit 100
                touch "$fakes/lists" "$fakes/fresh" ;;
            *install*) echo "apt-get install" >>"$calls"
                [ -e "$fakes/fresh" ] && [ ! -e "$fakes/offline" ] || exit 100
                [ -e "$fakes/unusable" ] || printf installed >"$fakes/installed"
                for tool in "$fakes/removed"/*; do [ ! -e "$tool" ] || mv "$tool" "${0%/*}"; done ;;
        esac
    """,
    "dpkg-query": """
        shift 3
        [ -e "$fakes/installed" ] || exit 1
        for package; do printf "$package=%s " "$(cat "$fakes/installed")"; done
    """,
    "nvcc": """
        echo nvcc >>"$calls"
        answer="exit 0"
        [ ! -e "$fakes/no device" ] || answer="echo no device is detected; exit 1"
        printf '#!/bin/sh\\n%s\\n' "$answer" >"$2"
        chmod +x "$2"
    """,
    "ctest": """
        echo "ctest required=${TALLY_REQUIRE_GPU:-} $*" >>"$calls"
        [ ! -p "$fakes/gate ctest" ] || { echo waiting; read -r _ <"$fakes/gate ctest"; }
        printf '    Start 1: a\\n1/2 Test #1: a ....   Passed    0.01 sec\\n2/2 Test #2: b ....   Passed    0.01 sec\\nsummary\\n'
        [ ! -e "$fakes/test fails" ]
    """,
    "id": 'cat "$fakes/uid"',
    **dict.fromkeys(("pkg-config", "em++", "node"), "exit 0"),
}
# Ninja starts a compiler for each file. Each compiler has a process group, and inherits descriptors. A signal makes Ninja end the compiler
# and remove its file. After SIGKILL an unfinished file remains, which the next Ninja does not find in its log and builds again.
NINJA = '''#!/usr/bin/env -S python3 -I
import fcntl, os, pathlib, signal, subprocess, sys
def note(line):
    with open(os.environ["calls"], "a") as file:
        file.write(line + "\\n")
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
folder, targets, fakes = pathlib.Path(sys.argv[2]), sys.argv[5:], pathlib.Path(os.environ["fakes"])
note(" ".join(["ninja", folder.name, *targets]))
inside = os.open(fakes / "inside", os.O_RDWR | os.O_CREAT, 0o666)
os.set_inheritable(inside, True)
try:
    fcntl.flock(inside, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    note("overlap")
if (fakes / "broken").exists():
    print(*range(1, 101), sep="\\n")
    sys.exit(1)
lessons = LESSONS
files = {**{each: ["lessons/" + each] for each in lessons}, "tally_modules": ["tally/tally.so"], "bench_table": ["bench/bench_table"],
         "tally_exercises": ["exercises/exercise-checks"], "tally_course": ["lessons/" + each for each in lessons], "engine": ["web/engine"]}
if not targets:
    targets = [*lessons, "tally_modules", "tally_exercises"]
log = folder / ".ninja_log"
known = log.read_text().splitlines() if log.exists() else []
def finished(path):
    return f"{path} {path.stat().st_mtime_ns}" if path.exists() else "missing"
todo = [folder / file for each in targets if each not in ("-k", "0") for file in files[each] if finished(folder / file) not in known]
for number, path in enumerate(todo, 1):
    path.parent.mkdir(exist_ok=True)
    note(f"compiler {path.name}")
    compiler = subprocess.Popen(["sh", fakes / "compiler", path], stdin=subprocess.DEVNULL, close_fds=False,
                                preexec_fn=lambda: (os.setpgrp(), signal.pthread_sigmask(signal.SIG_SETMASK, [])))
    while compiler.poll() is None:
        if signal.sigtimedwait(ENDING, 0.005):
            os.killpg(compiler.pid, signal.SIGTERM)
            compiler.wait()
            path.unlink(missing_ok=True)
            sys.exit(130)
    if compiler.returncode:
        path.unlink(missing_ok=True)
        sys.exit(1)
    with open(log, "a") as file:
        file.write(finished(path) + "\\n")
    print(f"[{number}/{len(todo)}] Building {path.name}", flush=True)
'''
# Waits at a gate, which is a FIFO, until the test opens it.
COMPILER = """
    echo "#!/bin/sh" >"$1"
    sleep "${pace:-0}"
    gate="$fakes/gate ${1##*/}"
    [ ! -p "$gate" ] || read -r _ <"$gate"
    cat "$fakes/program" >>"$1"
    chmod +x "$1"
"""
# A lesson program that reports its end. It waits at a gate as a lesson waits for a key.
PROGRAM = """
    for word; do case $word in --report=*) report=${word#*=} ;; esac; done
    echo "${0##*/}: $*"
    [ ! -p "$fakes/gate key" ] || read -r _ <"$fakes/gate key"
    [ -z "${report:-}" ] || echo '{"outcome": "ok", "steps": 2, "checks": 1}' >"/proc/self/fd/$report" # whole
"""
SUDO = {
    "free": '[ "$1" != -n ] || shift; echo sudo >>"$calls"; exec "$@"',
    "password": '[ "$1" != -n ] || exit 1; echo sudo >>"$calls"; exec "$@"',
}
REAL = "sh env awk cat chmod grep ls mkdir mv python3 sleep touch true".split()


class Faked(unittest.TestCase):
    shell = SHELLS[0]

    def setUp(self):
        self.top = Path(tempfile.mkdtemp(prefix="first contact "))
        self.addCleanup(shutil.rmtree, self.top)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+w", self.top])
        self.addCleanup(self.open_gates)
        self.tree, self.fakes, self.bin = self.top / "a tree", self.top / "fakes", self.top / "bin"
        for folder in (self.tree / "lessons", self.tree / "course", self.fakes / "removed", self.bin):
            folder.mkdir(parents=True)
        shutil.copy(ROOT / "learn", self.tree)
        shutil.copytree(ROOT / "course/runner", self.tree / "course/runner", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "exercises/01_set_or_add", self.tree / "exercises/01_set_or_add")
        for lesson in LESSONS:
            for page in (ROOT / "lessons").glob(lesson.removeprefix("lesson_") + ".*"):
                shutil.copy(page, self.tree / "lessons")
        (self.tree / "CMakeLists.txt").touch()
        for name, body in FAKES.items():
            self.fake(name, body)
        (self.bin / "ninja").write_text(NINJA.replace("LESSONS", repr(LESSONS)))
        (self.bin / "ninja").chmod(0o755)
        for name in REAL:
            (self.bin / name).symlink_to(PYTHON if name == "python3" else shutil.which(name))
        self.state(uid="0", lists="", fresh="", installed="installed", compiler=COMPILER, program=PROGRAM)

    def fake(self, name, body):
        (self.bin / name).write_text("#!/bin/sh\n" + body)
        (self.bin / name).chmod(0o755)

    def remove(self, *tools):
        """Removes tools, which apt-get install brings back."""
        for name in tools:
            (self.bin / name).rename(self.fakes / "removed" / name)

    def state(self, **files):
        for name, text in files.items():
            path = self.fakes / name
            path.unlink(missing_ok=True) if text is None else path.write_text(text)

    def calls(self, of=""):
        """Returns the calls of a tool since the last call of this function."""
        path = self.top / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [line for line in lines if line.startswith(of)]

    def close_gate(self, name):
        """From now on, the fake tool of this name waits."""
        os.mkfifo(self.fakes / f"gate {name}", 0o666)

    def open_gate(self, name):
        """Waits until the tool is at the gate, removes the gate, and lets the tool continue."""
        path, opened = self.fakes / f"gate {name}", []

        def is_read():
            with contextlib.suppress(OSError):  # not read yet
                opened.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            return opened

        self.until(is_read)
        path.unlink()
        os.close(opened[0])

    def open_gates(self):
        """Lets all tools continue that a failed test has left at gates."""
        for path in self.fakes.glob("gate *"):
            os.close(os.open(path, os.O_RDWR))

    def until(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def locked(self, path):
        with open(path, "a", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def environment(self, **more):
        quiet_home = {"HOME": "/nonexistent", "TERM": "xterm", "PATH": str(self.bin)}
        return quiet_home | {"calls": str(self.top / "calls"), "fakes": str(self.fakes)} | more

    def command(self, *words, program=None):
        return [shutil.which(self.shell[0]), *self.shell[1:], str(program or self.tree / "learn"), *words]

    def start(self, *words, program=None, cwd=None, terminal=None, **environment):
        """Starts ./learn in a process group. `terminal` replaces the standard input and output."""
        process = subprocess.Popen(self.command(*words, program=program), cwd=cwd or self.top, env=self.environment(**environment),
                                   text=True, stdin=terminal or subprocess.DEVNULL, stdout=terminal or subprocess.PIPE,
                                   stderr=terminal or subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        """Ends a process group that a failed test has left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def ended(self, process):
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def learn(self, *words, **more):
        return self.ended(self.start(*words, **more))

    def learn_at_terminal(self, keys, *words, when="", **environment):
        """Presses the keys once `when` has been shown."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.top)
            command = self.command(*words)
            os.execve(command[0], command, self.environment(**environment))
        seen = b""
        try:
            if not when:
                os.write(terminal, keys.encode())
            while chunk := os.read(terminal, 4096):
                seen += chunk
                if when and when.encode() in seen:
                    os.write(terminal, keys.encode())
                    when = ""
        except OSError:  # Linux reports the closed other end as an error
            pass
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()

    def other_user(self, *words, **environment):
        """Runs ./learn as a user who may read the checkout and not write to it."""
        subprocess.run(["chmod", "-R", "a+rX,a-w", self.tree], check=True)
        for path in (self.top, self.fakes):
            path.chmod(0o777)
        for path in (self.top / "calls", self.fakes / "inside"):
            path.touch()
            path.chmod(0o666)
        other = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups"] if os.geteuid() == 0 else []
        if other and not shutil.which("setpriv"):
            self.skipTest("root needs setpriv to become another user")
        command = [*other, *self.command(*words)]
        return subprocess.run([shutil.which(command[0]), *command[1:]], cwd="/", env=self.environment(**environment), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def assertGood(self, result):
        self.assertEqual(result.returncode, 0, f"{result.args}\n{result.stdout}{result.stderr}")


def main(tests):
    """Runs all tests with each installed shell."""
    for ignored in signal.valid_signals():  # ./learn keeps ignored signals ignored, as under nohup
        if signal.getsignal(ignored) == signal.SIG_IGN and ignored != signal.SIGPIPE:
            signal.signal(ignored, signal.SIG_DFL)
    failed = False
    for tests.shell in SHELLS:
        print("---", *tests.shell, file=sys.stderr)
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(tests)
        failed |= not unittest.TextTestRunner().run(suite).wasSuccessful()
    sys.exit(1 if failed else 0)
