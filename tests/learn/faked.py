"""Runs ./learn in a temporary checkout with fake tools."""
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LEARN = Path(__file__).resolve().parents[2] / "learn"
SHELLS = [words for words in (["dash"], ["bash", "--posix"]) if shutil.which(words[0])]
SHELLS += [["busybox", "sh"]] if shutil.which("busybox") else []

# Each fake tool writes its calls to $calls. Files in $fakes are its state.
FAKES = {
    "c++": """
        case $1 in --version) echo "c++ 12.0"; exit 0 ;; esac
        echo "c++" >>"$calls"
        [ -e "$fakes/installed" ] || { echo "fatal error: no such header" >&2; exit 1; }
    """,
    "cmake": """
        echo "cmake $*" >>"$calls"
        case $1 in
            --version) echo "cmake version 3.25.1" ;;
            --preset)
                folder=build/release
                [ "${3:-}" != -B ] || folder=$4
                [ -z "${CMAKE_GENERATOR:-}" ] || echo "by $CMAKE_GENERATOR" >>"$calls"
                mkdir -p "$folder" && touch "$folder/Makefile"
                echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"$folder/CMakeCache.txt" ;;
            --build)
                if [ -e "$fakes/broken" ]; then seq 100; exit 2; fi
                if [ -e "$fakes/endless" ]; then echo "[  7%] Building CXX object x.o"; exec sleep 60; fi
                for p in 10 50 100; do echo "[ $p%] Building CXX object x.o"; done
                printf '#!/bin/sh\\necho "runner in $PWD: $*"; exit 77\\n' >"$2/learn-runner"
                chmod +x "$2/learn-runner"
                mkdir -p "$2/bench" && cp "$2/learn-runner" "$2/bench/bench_table"
                ;;
        esac
    """,
    "apt-get": """
        case "$*" in
            *--print-uris*) [ ! -e "$fakes/lists" ] || echo "'http://x/a.deb' a.deb 2500000 SHA256:0" ;;
            *update*) echo "apt-get update" >>"$calls"; touch "$fakes/lists" "$fakes/fresh" ;;
            *install*) echo "apt-get install" >>"$calls"
                [ -e "$fakes/fresh" ] || exit 100
                touch "$fakes/installed"
                for tool in python3 pkg-config; do
                    case " $* " in *" $tool "*) cp "$0" "${0%/*}/$tool" ;; esac
                done ;;
        esac
    """,
    "nvcc": """
        case $1 in -o) ;; *) exit 1 ;; esac
        echo "nvcc" >>"$calls"
        if [ -e "$fakes/no device" ]; then echo "echo no device is detected; exit 1" >"$2"; else echo "exit 0" >"$2"; fi
        chmod +x "$2"
    """,
    "ctest": 'echo "ctest required=${TALLY_REQUIRE_GPU:-} $*" >>"$calls"; [ ! -e "$fakes/test fails" ]',
    "id": 'cat "$fakes/uid"',
    "make": "exit 0",
    "python3": "exit 0",
    "pkg-config": "exit 0",
}
SUDO = {
    "free": '[ "$1" != -n ] || shift; echo sudo >>"$calls"; exec "$@"',
    "password": '[ "$1" != -n ] || exit 1; echo sudo >>"$calls"; exec "$@"',
}
REAL = "sh env awk sed grep head tail cut cat mkdir rm touch dirname chmod seq sleep true nproc getconf uname cp mv ls ln find wc readlink \
flock ps".split()


class Faked(unittest.TestCase):
    shell = SHELLS[0]

    def setUp(self):
        self.top = Path(tempfile.mkdtemp(prefix="first contact "))
        self.addCleanup(shutil.rmtree, self.top)
        self.tree, self.fakes, self.bin = self.top / "a tree", self.top / "fakes", self.top / "bin"
        for folder in (self.tree, self.fakes, self.bin):
            folder.mkdir()
        shutil.copy(LEARN, self.tree / "learn")
        for name, body in FAKES.items():
            self.fake(name, body)
        for name in filter(shutil.which, REAL):
            (self.bin / name).symlink_to(shutil.which(name))
        self.state(uid="0", lists="", fresh="")

    def fake(self, name, body):
        (self.bin / name).write_text("#!/bin/sh\n" + body)
        (self.bin / name).chmod(0o755)

    def state(self, **files):
        for name, text in files.items():
            path = self.fakes / name
            path.unlink(missing_ok=True) if text is None else path.write_text(text)

    def calls(self):
        path = self.top / "calls"
        text = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return text

    def environment(self, **more):
        quiet_home = {"HOME": "/nonexistent", "TERM": "xterm", "PATH": str(self.bin), "DPKG_ADMINDIR": str(self.fakes)}
        return quiet_home | {"calls": str(self.top / "calls"), "fakes": str(self.fakes)} | more

    def learn(self, *words, **environment):
        command = [shutil.which(self.shell[0]), *self.shell[1:], str(self.tree / "learn"), *words]
        return subprocess.run(command, cwd=self.top, env=self.environment(**environment), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def learn_at_terminal(self, keys, *words, when=""):  # presses the keys once `when` has been shown
        command = [shutil.which(self.shell[0]), *self.shell[1:], str(self.tree / "learn"), *words]
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.top)
            os.execve(command[0], command, self.environment())
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
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()


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
