"""Reads the command line of ./learn and starts the command."""
import argparse
import contextlib
import signal
import sys

from common import PARAMETERS, WORK, Exit, Problem, out, say_error

HELP = """\
./learn                the next unfinished lesson, from the step that you left (without a terminal: all lessons, as plain text)
./learn list           all lessons in the recommended order: number, slug, minutes alone and in class, status, prerequisites
./learn run WHICH      slug, a part of one, number or "all"; ./learn 7 is ./learn run 7
     --step | --no-step    wait for a key after each step (default: only at a terminal)
     --present             for a class: one step per screen, a clicker shows the next step, answers are shown on request
     --from K              start at step K
     --micro N, --rate N, --items N, --steps N, --ranks N, --values A,B,...
                           set a parameter of the lesson; ./learn 6 --help lists the parameters
     --device cpu|cuda|simulated|auto   (simulated: the CPU runs the kernels of the GPU)
./learn graph WHICH -o F.svg|F.dot
./learn check [SLUG]   check your answer to an exercise (without a name: the next one); your file is in work/exercises/
     --watch               check again whenever you save, and then the next exercise
./learn hint SLUG      the next hint: a question, a pointer, almost the code
./learn reset SLUG     begin an exercise again (asks first; your text is kept)
./learn solution SLUG  an answer, after yours has passed (or with --yes)
./learn score          your results in lessons and exercises
./learn class FOLDER   the mistakes of a class, from a folder with the learners' files work/answers
     -o F.svg              the picture (default: work/class.svg)
./learn handout [LESSONS]  two sheets to print, for all lessons or some: the questions, and the lessons with answers
     -o F.html             the first sheet (default: in work/handouts); the second is F.answers.html
./learn web            open docs/classroom.html, the page for a class (or print its path)
     --build               build the page again with emscripten
./learn test [-- ARGS] build and run the checks (ARGS go to ctest)
     --all                 also the slow tests: compilation, kills, exercises, simulated devices
     --gpu                 in build/gpu, with the GPU's kernels; fails without a GPU
./learn bench          measure tally, lower bounds and other libraries: a table, bench.json, bench.md and curves
     --quick               within two minutes
     --processor-time      CPU time instead of wall time for rows with one thread: for a machine with other users
     --only TEXT           only rows and curves with this text in their names
     --peers FOLDER        with JAX and PyTorch from FOLDER, made by tools/bench-peers FOLDER (LibTorch is used if installed)
     -o FOLDER             the output folder (default: build/bench)
./learn dev-check [SLUG]  check that each exercise recognises its answer and its mistakes
./learn doctor         versions, devices, terminal, missing optional packages
all commands except test and bench:
      --json --plain --ascii --color=auto|always|never --width N --seed N --digits D
      --threads N --products ordered|blas --quiet --yes

exit codes: 0 good, 1 a check failed, 2 usage, 3 something is missing (nothing was changed),
            4 the build failed, 5 reading or writing failed, 77 skipped, 130 Ctrl-C,
            128 + n ended by signal n
environment: CXX (the compiler; a change builds everything again), CUDACXX (nvcc), TALLY_NO_INSTALL=1 (never install a package)
"""
# How many words may follow a command?
COMMANDS = {"": (0, 0), "list": (0, 0), "run": (1, 1), "graph": (1, 1), "check": (0, 1), "hint": (0, 1), "reset": (1, 1),
            "solution": (1, 1), "score": (0, 0), "class": (1, 1), "handout": (0, 99), "web": (0, 0), "test": (0, 0), "bench": (0, 0),
            "doctor": (0, 0), "dev-check": (0, 1), "help": (0, 1)}
OWN_OPTIONS = ("test", "bench", "web")  # build.py reads their options


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Problem(f"{message} (--help lists the options)", Exit.usage)


def between(least, most):
    def parse(text):
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} to {most}")
        return int(text)
    return parse


def value(text):
    if not text or text.startswith("--") and text[2:3].islower():
        raise argparse.ArgumentTypeError("its value is missing")
    return text


def parser():
    parser = Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("-h", "--help", action="store_true")
    waiting = parser.add_mutually_exclusive_group()
    waiting.add_argument("--step", action="store_true")
    waiting.add_argument("--no-step", action="store_true")
    for name in ("--present", "--json", "--plain", "--ascii", "--quiet", "--yes", "--watch"):
        parser.add_argument(name, action="store_true")
    parser.add_argument("--from", dest="start", type=between(1, 99))
    parser.add_argument("--device", choices=("cpu", "cuda", "simulated", "auto"))
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--width", type=between(20, 1000))
    parser.add_argument("--seed", type=between(0, 2**64 - 1), default=0)
    parser.add_argument("--digits", type=between(0, 20), default=4)
    parser.add_argument("--threads", type=between(1, 1024), default=1)
    parser.add_argument("--products", choices=("ordered", "blas"))
    parser.add_argument("-o", dest="file")
    for name in PARAMETERS:
        parser.add_argument(f"--{name}", type=value)
    return parser


def parsed(arguments):
    """The command, its words and the options."""
    options = parser().parse_intermixed_args(arguments)
    command, words = (options.words + [""])[0], options.words[1:]
    if command.isdecimal():
        command, words = "run", [command]
    if options.present and options.no_step:
        raise Problem("argument --no-step: not allowed with argument --present (--help lists the options)", Exit.usage)
    if command not in COMMANDS:
        names = " ".join(name for name in COMMANDS if name not in ("", "dev-check", "help"))
        raise Problem(f"no command '{command}'; there are: {names} (./learn --help)", Exit.usage)
    least, most = COMMANDS[command]
    if options.help or command == "help":
        return ("run help", words, options) if command == "run" and words[:1] not in ([], ["all"]) else ("help", [], options)
    if command in OWN_OPTIONS:
        raise Problem(f"{command}: the command must be before its options: ./learn {command} ...", Exit.usage)
    if len(words) < least:
        raise Problem(f"{command}: a name is missing (./learn list shows the lessons, ./learn score the exercises)", Exit.usage)
    if len(words) > most or options.watch and command != "check" or options.file and command not in ("graph", "class", "handout"):
        rejected = words[most] if len(words) > most else "--watch" if options.watch else "-o"
        raise Problem(f"{command or 'learn'}: '{rejected}' is not expected (--help lists the options)", Exit.usage)
    if command == "graph" and not options.file:
        raise Problem("graph: -o F.svg or -o F.dot is missing (--help lists the options)", Exit.usage)
    return command, words, options


def dispatch(arguments):
    first = next((word for word in arguments if not word.startswith("-")), "")
    if first in OWN_OPTIONS and not {"-h", "--help"} & set(arguments):
        import build
        arguments.remove(first)
        return getattr(build, first)(arguments)
    command, words, options = parsed(["help"] if first in OWN_OPTIONS else arguments)
    if command == "help":
        out(HELP.rstrip())
        return Exit.good
    if command in ("check", "hint", "reset", "solution", "score", "dev-check"):
        import practice
        return practice.run(command, words[0] if words else "", options)
    if command == "class":
        import class_report
        return class_report.show(words[0], options.file or f"{WORK}/class.svg", options)
    if command == "doctor":
        import doctor
        return doctor.show(options)
    import lessons
    course = lessons.Course(options)
    if command == "handout":
        import handout
        return handout.write(course, words, options.file)
    if command == "run":
        return course.run(course.lessons if words == ["all"] else [lessons.named(course.lessons, words[0])])
    return {"list": course.list, "run help": course.help, "graph": course.graph, "": course.next_or_all}[command](*words)


def start():
    def end(number, _):
        sys.exit(128 + number)

    for each in (signal.SIGTERM, signal.SIGHUP):  # with an exception, so that the terminal is restored
        if signal.getsignal(each) != signal.SIG_IGN:
            signal.signal(each, end)
    try:
        code = dispatch(sys.argv[1:])
    except Problem as problem:
        code = problem.code
        with contextlib.suppress(OSError):
            if problem.message:
                say_error(problem.message)
    except KeyboardInterrupt:
        code = Exit.interrupted
    sys.exit(int(code))
