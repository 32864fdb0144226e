"""Builds what a command needs with CMake and Ninja, and builds the next lessons in the background."""
import contextlib
import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from common import BUILD, FIRST, ROOT, Exit, Problem, say

LOG, LOCK = ROOT / "build/learn.log", ROOT / "build/learn.lock"


def jobs():
    """The number of compilers at once: one for each processor, and a gigabyte for each of them."""
    with open("/proc/meminfo", encoding="ascii") as file:
        gigabytes = int(re.search(r"MemAvailable: *(\d+)", file.read())[1]) // 10**6
    return int(os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", max(1, min(len(os.sched_getaffinity(0)), gigabytes))))


def taken(lock):
    """Whether this process now has the lock. The programs that it starts inherit the lock, so that compilers which outlive a killed
    runner keep others from building. A launcher such as sccache would start a server, which would never release the lock."""
    launcher = "CMAKE_CXX_COMPILER_LAUNCHER"
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    lock.truncate(0)
    os.set_inheritable(lock.fileno(), not (os.environ.get(launcher) or cached(BUILD, launcher)))
    return True


@contextlib.contextmanager
def locked():
    """Keeps other ./learn from building. A build in the background stops, and any other build is waited for."""
    with open(LOCK, "a+", encoding="ascii") as file:
        told = False
        while not taken(file):
            file.seek(0)
            if background := file.read().strip():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(background), signal.SIGTERM)
            elif not told:
                say("another ./learn is working in this checkout: waiting")
                told = True
            time.sleep(0.1)
        yield


def cached(folder, name):
    """The value of a variable in CMake's cache, or None."""
    with contextlib.suppress(OSError):
        found = re.search(rf"^{name}:\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.M)
        return found and found[1]


def same_program(one, other):
    return os.path.realpath(shutil.which(one) or one) == os.path.realpath(shutil.which(other) or other)


def configure(folder, options, again, preset="release"):
    """Calls CMake if the folder is new, was moved, or has another compiler than CXX. `again`: calls CMake in any case."""
    home, compiler, built_by = cached(folder, "CMAKE_HOME_DIRECTORY"), os.environ.get("CXX"), cached(folder, "CMAKE_CXX_COMPILER")
    if home and os.path.realpath(home) != os.path.realpath(ROOT):  # moved or copied with its build folder
        if folder.parent.parent != ROOT:
            raise Problem(f"{folder} was built from {home}; TALLY_BUILD names a folder of another checkout", Exit.build)
        shutil.rmtree(folder)
    elif compiler and built_by and not same_program(compiler, built_by):
        say(f"CXX is {compiler}, and {folder} was built by {built_by}: building from scratch")
        shutil.rmtree(folder)
    elif (generator := cached(folder, "CMAKE_GENERATOR")) not in (None, "Ninja"):  # CMake would reject another one
        say(f"{folder} was configured for {generator}, and ./learn uses Ninja: building from scratch")
        shutil.rmtree(folder)
    if again or not home or not (folder / "build.ninja").exists():
        run_logged(cmake(folder, options, preset))


def cmake(folder, options=(), preset="release"):
    if folder == BUILD and not options and not any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))):  # the second is a GPU under WSL
        options = ["-DTALLY_CUDA=OFF"]
    return ["cmake", "-G", "Ninja", "--preset", "first" if folder == FIRST else preset, "-B", str(folder), *options]


def run_logged(command, on_line=lambda line: None):
    """Runs a command in the repository, and appends its output to the log. A failure shows the end of the log."""
    with open(LOG, "a", encoding="utf-8") as log, subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", env={**os.environ, "NINJA_STATUS": "[%f/%t] "}, close_fds=False) as process:
        try:
            for line in process.stdout:
                log.write(line)
                on_line(line)
        except BaseException:  # Ctrl-C, SIGTERM or SIGHUP
            process.terminate()  # Ninja ends the compilers and removes unfinished files
            process.wait()
            with contextlib.suppress(OSError):
                say("")
            raise
    if process.returncode:
        for line in LOG.read_text(errors="replace").splitlines()[-20:]:
            say(line)
        raise Problem("the build failed; the whole log is build/learn.log", Exit.build)


class Percent:
    """Shows progress: rewrites a line at a terminal, and prints a line for each 10 % elsewhere."""

    def __init__(self, what):
        self.what, self.shown = what, None
        self.quiet = "--quiet" in sys.argv
        self.rewrites = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def show(self, percent):
        if self.quiet or (not self.rewrites and self.shown is not None and percent < self.shown + 10):
            return
        self.shown = percent if self.rewrites else percent // 10 * 10
        print(f"\r{self.what} {percent:3} %" if self.rewrites else f"{self.what} {self.shown} %",
              end="" if self.rewrites else "\n", file=sys.stderr, flush=True)

    def of_ninja(self, line):
        if found := re.match(r"\[(\d+)/(\d+)\]", line):
            if int(found[2]) > 2:  # else Ninja only looks for new files
                self.show(int(found[1]) * 100 // int(found[2]))

    def end(self):
        if self.shown is not None:
            print(f"\r{self.what}, done " if self.rewrites else f"{self.what}, done", file=sys.stderr)


def ninja(folder, targets):
    return ["ninja", "-C", str(folder), "-j", str(jobs()), *targets]


def require_writable(what, owner="./learn test"):
    try:
        LOG.parent.mkdir(exist_ok=True)
        with open(LOG, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise Problem(f"cannot write in {LOG.parent}: {what} cannot be built in this checkout; ask its owner to run {owner}, or use "
                      "your own copy", Exit.io) from error


def targets(names, what, folder=BUILD, options=(), again=False, duration="", owner="./learn test"):
    """Builds targets. Nothing is built in a folder without CMakeLists.txt, where the programs are given."""
    if not (ROOT / "CMakeLists.txt").exists():
        return
    require_writable(what, owner)
    with locked():
        LOG.write_text("")
        if duration and not folder.exists() and "--quiet" not in sys.argv:
            say(f"building {what} for the first time: about {duration}; log: build/learn.log")
        configure(folder, options, again)
        percent = Percent(f"building {what}")
        run_logged(ninja(folder, names), percent.of_ninja)
        percent.end()


def writable():
    return os.access(LOG.parent if LOG.parent.exists() else ROOT, os.W_OK)


def lessons(chosen, device=None):
    """Builds the programs of lessons. A checkout that cannot be written is used as its owner has built it.

    A learner should not wait for the whole library before lesson 1, which is therefore compiled in build/first in less time.
    """
    if all(each.program.exists() for each in chosen) and not writable():
        return
    if [each.number for each in chosen] == [1] and device in (None, "cpu") and not (BUILD / "lessons" / chosen[0].name).exists():
        return targets([chosen[0].name], f"lesson {chosen[0].slug}", FIRST, duration="a minute", owner="./learn run all")
    what = f"lesson {chosen[0].slug}" if len(chosen) == 1 else "the lessons"
    targets([each.name for each in chosen] + ["tally_modules"], what, duration=f"{4 if len(chosen) == 1 else 6} minutes",
            owner="./learn run all")


def exercises():
    if (BUILD / "exercises/exercise-checks").exists() and not writable():
        return
    targets(["tally_exercises"], "the exercises", duration="7 minutes", owner="./learn check")


@contextlib.contextmanager
def in_background(following):
    """Builds the lessons that follow while the learner reads, at low priority. The end of this program stops the build."""
    if not following or not (ROOT / "CMakeLists.txt").exists() or not writable():
        yield
        return
    command = [sys.executable, __file__, *(each.name for each in following)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as builder:
        try:
            yield
        finally:
            builder.stdin.close()


def background(names):
    """The program that in_background() starts. It ends with its standard input, which a killed runner closes, too."""
    os.nice(19)
    with open(LOCK, "a+", encoding="ascii") as lock:
        if not taken(lock):
            return
        for command in ([] if (BUILD / "build.ninja").exists() else [cmake(BUILD)]) + [ninja(BUILD, ["-k", "0", *names])]:
            with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, close_fds=False) as process:
                signal.signal(signal.SIGTERM, lambda *_: process.terminate())
                lock.truncate(0)
                lock.write(str(process.pid))  # another ./learn stops this program
                lock.flush()
                while process.poll() is None:
                    if select.select([sys.stdin], [], [], 0.2)[0]:
                        process.terminate()  # Ninja removes unfinished files
                        process.wait()
            if process.returncode:
                break
        lock.truncate(0)


# ---- the commands test, bench and web ----

def rejected(command, word):
    return Problem(f"{command}: no option '{word}' (./learn --help)", Exit.usage)


def nvcc():
    """CMake looks for nvcc only in CUDACXX and PATH, which often do not name an installed toolkit."""
    usual = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin/nvcc"
    compiler = os.environ.get("CUDACXX") or shutil.which("nvcc") or usual
    if not shutil.which(compiler):
        raise Problem(f"nothing was changed: test --gpu needs the CUDA toolkit, and {compiler} does not exist; name its nvcc "
                      "in CUDACXX", Exit.missing)
    os.environ["CUDACXX"] = compiler
    return compiler


def require_device(compiler):
    """Looks for a device before anything is built, because tests without a device would be skipped and seem to pass."""
    probe = LOG.parent / "probe.program"
    probe.with_suffix(".cu").write_text("""#include <cstdio>
int main() {
    int count = 0;
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result == cudaSuccess && count > 0) return 0;
    std::puts(result == cudaSuccess ? "none was found" : cudaGetErrorString(result));
    return 1;
}
""")
    try:
        run_logged([compiler, "-o", str(probe), str(probe.with_suffix(".cu"))])
        found = subprocess.run([str(probe)], capture_output=True, text=True, check=False)
    finally:
        for file in (probe, probe.with_suffix(".cu")):
            file.unlink(missing_ok=True)
    if found.returncode:
        raise Problem(f"test --gpu: this machine has no CUDA device ({found.stdout.strip()})", Exit.failed)


def test(args):
    options, for_ctest = (args[:args.index("--")], args[args.index("--") + 1:]) if "--" in args else (args, [])
    for word in options:
        if word not in ("--gpu", "--all", "--plain", "--quiet", "--yes", "--ascii") and not word.startswith("--color="):
            raise Problem(f"test: no option '{word}' (arguments for ctest go after --)", Exit.usage)
    folder, cuda = (ROOT / "build/gpu", ["-DTALLY_CUDA=ON"]) if "--gpu" in options else (BUILD, ["-DTALLY_CUDA=AUTO"])  # needs no GPU
    if "--gpu" in options:
        compiler = nvcc()
        require_writable("everything")
        require_device(compiler)
        os.environ["TALLY_REQUIRE_GPU"] = "1"  # tests fail instead of skipping without a device
    targets([], "everything", folder, cuda, again=True, duration="10 minutes")
    command = ["ctest", "--test-dir", str(folder), "--output-on-failure", "--no-tests=error", "--parallel", str(jobs() + 1)]
    if for_ctest:  # prints all its output
        return Exit.failed if subprocess.run([*command, *for_ctest], check=False).returncode else Exit.good
    percent = Percent("testing")
    with subprocess.Popen([*command, "-LE", "^$" if "--all" in options else "^long$"], stdout=subprocess.PIPE, text=True,
                          errors="replace") as process:
        for line in process.stdout:
            if found := re.match(r" *(\d+)/(\d+) Test +#\d+: .* Passed ", line):
                percent.show(int(found[1]) * 100 // int(found[2]))
            elif not re.match(r" +Start +\d+: ", line):
                print(line, end="", flush=True)
    percent.end()
    if process.returncode:
        return Exit.failed
    if "--all" not in options:
        say("left out: the slow tests of compilation, kills, lesson parameters, simulated devices, the exercises and the page in a "
            "browser (./learn test --all)")
    return Exit.good


def bench(args):
    folder, words, only, peers, args = str(ROOT / "build/bench"), [], "", [], list(args)
    while args:
        word = args.pop(0)
        if word in ("--only", "--peers", "-o") and not args:
            raise Problem(f"bench: {word} needs a value", Exit.usage)
        if word in ("--quick", "--processor-time"):
            words.append(word)
        elif word == "--only":
            only = args.pop(0)
        elif word == "--peers":
            peers = ["--frameworks", os.path.abspath(args.pop(0))]
        elif word == "-o":
            folder = args.pop(0)
        elif word not in ("--plain", "--quiet", "--yes"):
            raise rejected("bench", word)
    if peers and not Path(peers[1], "pyvenv.cfg").is_file():
        raise Problem(f"bench: {peers[1]} was not made by tools/bench-peers, which installs JAX and PyTorch", Exit.usage)
    build = ROOT / "build/bench"
    options = ["-DTALLY_BENCH=ON", *(f"-DTALLY_{part}=OFF" for part in ("CUDA", "COURSE", "EXAMPLES", "TESTS"))]
    options += [f"-DTALLY_ARCH={os.environ['TALLY_ARCH']}"] if os.environ.get("TALLY_ARCH") else []
    targets(["bench_table"], "the benchmarks", build, options, again=True, duration="4 minutes")
    commit = ""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):  # without git, or not in a clone
        commit = subprocess.check_output(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], text=True, stderr=subprocess.DEVNULL)
    # Idle threads of LibTorch and OpenBLAS (2^28 ticks: a tenth of a second) would spin on a core that the next measurement needs.
    environment = {"OMP_WAIT_POLICY": "passive", "OPENBLAS_THREAD_TIMEOUT": "24", **os.environ, "TALLY_COMMIT": commit.strip()}
    program = str(build / "bench/bench_table")
    os.execve(program, [program, *words, "--only", only, *peers, "-o", folder], environment)


def web(args):
    for word in args:
        if word not in ("--build", "--yes", "--plain", "--quiet"):
            raise rejected("web", word)
    page = ROOT / "docs/classroom.html"
    if "--build" in args:
        targets(["tally_course"], "the lessons", duration="6 minutes")
        with locked():
            folder, percent = ROOT / "build/web", Percent("building the engine of the page")
            for name in ("CMAKE_CXX_COMPILER_LAUNCHER", "CXX"):
                os.environ.pop(name, None)
            configure(folder, [], True, "web")
            run_logged(ninja(folder, ["engine"]), percent.of_ninja)
            percent.end()
            made = [sys.executable, str(ROOT / "web/build.py"), str(folder / "web"), str(BUILD / "lessons")]
            if subprocess.run(made, check=False).returncode:
                raise Problem("the page was not made", Exit.io)
    if sys.stdout.isatty() and any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))) and shutil.which("xdg-open"):
        subprocess.run(["xdg-open", str(page)], check=False)
    else:
        print(f"open this in a browser: file://{page}")
    return Exit.good


if __name__ == "__main__":
    background(sys.argv[1:])
