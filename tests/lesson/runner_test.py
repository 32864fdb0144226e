"""Tests the runner behind ./learn with folders of fake lessons. Usage: runner_test.py LESSON_SAMPLE"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from terminal_driver import RUNNER, Terminal, clean_environment, have_terminals, run_tests

# The program of a fake lesson, which reports a result, and its page.
STAND_IN = """#!/bin/sh
for word in "$@"; do
    case $word in --report=*) report=${word#*=} ;; esac
done
echo "$@" > "$0.words"
if [ -n "$report" ]; then
    printf '%%b' '%(asked)s' >&$report
    printf '%%s\\n' '{"v":1,"lesson":%(number)d,"slug":"%(slug)s","event":"end","outcome":"%(outcome)s","steps":2,"checks":1,"failed":%(failed)d,"detail":"%(detail)s","file":"lessons/x.cpp","line":58,"failed_step":2}' >&$report
fi
echo "this is %(slug)s"
exit %(code)d
"""
PAGE = """# Lesson %d: %s

5 minutes alone, 25 in class · Before it: [forgot-to-divide](06.md)
· Exercise: `./learn check divide`

```
## Remember
```

## Remember

Divide each
`micro-loss`.

In PyTorch: the same.
Try it: find the line in your own code. `./learn check divide`

## Read next
"""
SAMPLE_PAGE = Path(__file__).resolve().parent / "sample/99_sample.md"


HEADING = "what\tof\tnumber\thow\twhich\tgiven\tsentence\tquestion"


def line(*fields):
    return "\t".join(fields + ("",) * (8 - len(fields)))


class Course:
    """Has fake lessons in a temporary folder. A lesson is given as (number, slug, outcome)."""

    def __init__(self, *lessons):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        os.makedirs(self.root + "/lessons")
        os.makedirs(self.root + "/build/lessons")
        self.work = self.root + "/work"
        self.environment = {"TALLY_ROOT": self.root, "TALLY_BUILD": self.root + "/build", "TALLY_WORK": self.work}
        for number, slug, outcome in lessons:
            self.set(number, slug, outcome)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def set(self, number, slug, outcome, *asked):
        """Writes a fake lesson. `asked` lists its answers as (number, how, option, sentence)."""
        path, stem = self.program(number, slug), f"{self.root}/lessons/{number:02}_{slug.replace('-', '_')}"
        with open(stem + ".md", "w", encoding="utf-8") as page, open(stem + ".cpp", "w", encoding="utf-8") as source:
            page.write(PAGE % (number, slug))
            source.write('LESSON() {\n    step("One.");\n    ask("two");\n}\n')
        code, detail = {"ok": (0, ""), "FAIL": (1, "peak 9 tensors, expected <= 4"), "skip": (77, "no CUDA device"),
                        "quit": (0, "")}[outcome]
        with open(path, "w", encoding="utf-8") as file:
            file.write(STAND_IN % {"number": number, "slug": slug, "outcome": outcome, "code": code, "detail": detail,
                                   "failed": int(outcome == "FAIL"),
                                   "asked": "".join(line("question", slug, *one[:3], one[2] and "text", one[3], "Which?") + "\\n" for one in asked)
                                   .replace("\t", "\\t")})
        os.chmod(path, 0o755)

    def program(self, number, slug):
        return f"{self.root}/build/lessons/lesson_{number:02}_{slug.replace('-', '_')}"

    def words_of(self, number, slug):
        with open(self.program(number, slug) + ".words", encoding="utf-8") as file:
            return file.read().split()

    def run(self, *arguments, stdout=subprocess.PIPE, **environment):
        return subprocess.run([*RUNNER, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                              text=True, check=False, timeout=60, env=clean_environment(**self.environment, **environment))

    def terminal(self, *arguments, under=(), **environment):
        return Terminal([*under, *RUNNER, *arguments], **self.environment, **environment)

    def at_terminal(self, *arguments, expected=0, key=None):
        """Returns the output. `key` is the answer to the question for the next lesson."""
        with self.terminal(*arguments) as t:
            if key:
                t.expect("SPACE next lesson")
                t.type(key)
            code = t.wait()
            assert code == expected, (code, t.seen)
            return t.seen

    def answers(self):
        """Returns the lines of the file of answers as lists of fields."""
        try:
            with open(self.work + "/answers", encoding="utf-8") as file:
                lines = file.read().split("\n")
        except FileNotFoundError:
            return []
        assert lines[0] == HEADING and lines[-1] == "" and all(each.count("\t") == 7 for each in lines[1:-1]), lines
        return [each.split("\t") for each in lines[1:-1]]

    def write_answers(self, *lines):
        os.makedirs(self.work, exist_ok=True)
        with open(self.work + "/answers", "w", encoding="utf-8") as file:
            file.write("".join(each + "\n" for each in (HEADING, *lines)))

    def done(self):
        return sorted(e["slug"] for e in map(json.loads, self.run("list", "--json").stdout.splitlines()) if e["status"] == "done")


THREE = ((7, "divide", "ok"), (20, "checkpointing", "FAIL"), (22, "on-the-gpu", "skip"))


def test_list(sample):
    with Course(*THREE) as course:
        course.write_answers(line("lesson", "divide", "", "done"))
        *lines, exercises = course.run("list").stdout.splitlines()
        assert exercises == "./learn score lists the exercises."
        assert [each.split()[:2] for each in lines] == [["7", "divide"], ["20", "checkpointing"], ["22", "on-the-gpu"]]
        assert [re.search("done|next|open|begun", each).group() for each in lines] == ["done", "next", "open"]
        assert "5 min, in class  25" in lines[0] and lines[0].endswith("after forgot-to-divide"), lines
        as_json = [json.loads(each) for each in course.run("list", "--json").stdout.splitlines()]
        assert [e["status"] for e in as_json] == ["done", "next", "open"]
        course.write_answers(line("question", "on-the-gpu", "1", "skipped"))
        assert [json.loads(each)["status"] for each in course.run("list", "--json").stdout.splitlines()] == ["next", "open", "begun"]


def test_the_order_is_that_of_the_numbers(sample):
    with Course((3, "arrays", "ok"), (5, "full-batch", "ok"), (99, "of-ones-own", "ok"), (11, "the-tail", "ok")) as course:
        assert [each.split()[1] for each in course.run("list").stdout.splitlines()[:-1]] == ["arrays", "full-batch", "the-tail", "of-ones-own"]
        assert "this is arrays" in course.at_terminal(key="q") and "this is full-batch" in course.at_terminal(key="q")
        assert "3 to 99" in course.run("run", "100").stderr


def test_log_of_many(sample):
    with Course(*THREE) as course:
        result = course.run("run", "all")
        assert result.returncode == 1, result
        assert "this is divide" in result.stdout, "all lessons are shown as plain text"
        log = result.stdout.split("\n\n")[-1].splitlines()
        assert re.fullmatch(r"lesson 07 divide +2 steps +1 checks  \[ok\]    \d+\.\d\d s", log[0]), log
        assert re.fullmatch(r"lesson 20 checkpointing +2 steps +1 checks  \[FAIL\]  peak 9 tensors, expected <= 4", log[1]), log
        assert log[2] == "  lessons/x.cpp:58   again: ./learn run checkpointing --from 2"
        assert re.fullmatch(r"lesson 22 on-the-gpu +2 steps +1 checks  \[skip\]  no CUDA device", log[3]), log
        assert log[4] == "summary: 3 lessons  1 ok  1 FAIL  1 skip   seed 0   exit 1"
        assert course.run("run", "all", "--quiet", "--seed", "5").stdout.splitlines()[-1].endswith("seed 5   exit 1")


def test_without_a_terminal_all_of_them(sample):
    with Course(*THREE) as course:
        assert course.run().stdout.count("this is") == 3
        assert "\x1b" not in course.run().stdout


def test_exit_codes_are_combined(sample):
    for lessons, code in (((THREE[0], THREE[2]), 0), ((THREE[2],), 77), ((THREE[0],), 0), ((THREE[1], THREE[2]), 1)):
        with Course(*lessons) as course:
            assert course.run("run", "all").returncode == code, lessons
    with Course(*THREE) as course:
        for which, code in (("divide", 0), ("7", 0), ("07", 0), ("checkpointing", 1), ("on-the-gpu", 77), ("22", 77)):
            assert course.run("run", which).returncode == code, which


def test_an_unknown_lesson_suggests_the_most_similar(sample):
    with Course(*THREE) as course:
        for arguments, words in ((("run", "divde"), "'divide'"), (("run", "check-pointing"), "'checkpointing'"),
                                 (("graph", "dvide", "-o", "x.svg"), "'divide'"), (("run", "8"), "7 to 22"), (("run", "-7"), "-7"),
                                 (("run", "i"), "'i' could be divide, checkpointing (./learn list)")):
            result = course.run(*arguments)
            assert result.returncode == 2 and words in result.stderr and result.stdout == "", result


def test_closed_output_ends_silently(sample):
    with with_sample(sample) as course:
        for arguments in (["list"], ["doctor"], ["run", "sample"], ["run", "all"], ["run", "all", "--json"], ["--help"]):
            reader, writer = os.pipe()
            os.close(reader)
            result = course.run(*arguments, stdout=writer)
            os.close(writer)
            assert result.returncode == 141 and result.stderr == "", (arguments, result)
        piped = subprocess.run(["sh", "-c", '"$@" run all | head -n 1', "sh", *RUNNER], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, check=True, timeout=60, env=clean_environment(**course.environment))
        assert piped.stderr == "" and piped.stdout.count("\n") == 1, piped


def test_usage(sample):
    with Course(*THREE) as course:
        for arguments in (["frobnicate"], ["run"], ["graph", "divide"], ["--device=gpu"], ["run", "divide", "--threads=0"],
                          ["bench", "--wach"], ["web", "7"], ["reset"], ["check", "--wach"], ["list", "--watch"], ["list", "7"],
                          ["run", "divide", "--present", "--no-step"]):
            result = course.run(*arguments)
            assert result.returncode == 2 and result.stdout == "" and result.stderr.count("\n") == 1, (arguments, result)
        for empty in (["--micro", ""], ["--micro="], ["--values=", "--quiet"]):
            result = course.run("run", "divide", *empty)
            assert result.returncode == 2 and "missing" in result.stderr, (empty, result)
        help_text = course.run("--help")
        assert help_text.returncode == 0 and all(w in help_text.stdout for w in ("list", "run", "graph", "doctor", "check", "reset", "handout", "--threads", "--present"))
        assert course.run("help").stdout == help_text.stdout


def test_at_a_dumb_terminal_one_lesson_is_run(sample):
    with Course((5, "full-batch", "ok"), (7, "divide", "ok")) as course:
        with course.terminal(TERM="dumb") as t:
            assert t.wait() == 0, t.seen
        assert "TERM is dumb: one lesson" in t.seen and "this is full-batch" in t.seen and "this is divide" not in t.seen, t.seen


def test_answers_with_present_are_not_recorded(sample):
    with Course(*THREE) as course:
        course.set(7, "divide", "ok", ("1", "right", "a", ""))
        with course.terminal("run", "divide", "--present") as t:
            assert t.wait() == 0 and "this is divide" in t.seen, t.seen
        assert "--present" in course.words_of(7, "divide") and not os.path.exists(course.work + "/answers")
        with course.terminal("run", "divide") as t:
            assert t.wait() == 0
        assert os.path.exists(course.work + "/answers")


def test_a_lesson_with_changed_parameters_is_not_recorded(sample):
    with Course(*THREE) as course:
        course.set(7, "divide", "ok", ("1", "right", "a", ""))
        with course.terminal("run", "divide", "--micro", "6") as t:
            assert t.wait() == 0 and "this is divide" in t.seen, t.seen
        assert not os.path.exists(course.work + "/answers")


def test_an_open_viewer_does_not_block_the_runner(sample):
    with with_sample(sample) as course:
        closed = course.root + "/closed"
        os.mkfifo(closed)
        with open(course.root + "/xdg-open", "w", encoding="utf-8") as program:
            program.write(f"#!/bin/sh\nread line <{closed}\n")
        os.chmod(course.root + "/xdg-open", 0o755)
        with course.terminal("run", "sample", DISPLAY=":0", PATH=f"{course.root}:{os.environ['PATH']}") as t:
            t.expect("q quit")
            t.type("g")
            t.expect("sample.svg")
            t.expect("q quit")
            t.type("q")
            t.wait()
        with open(closed, "w", encoding="utf-8") as viewer:  # the fake viewer runs until now
            viewer.write("closed\n")


def test_run_help_prints_the_help_of_the_lesson(sample):
    with Course(*THREE) as course:
        told = course.run("run", "divide", "--help")
        assert told.returncode == 0 and told.stdout == "this is divide\n" and "--help" in course.words_of(7, "divide"), told
        assert course.run("run", "nothing-so-called", "--help").returncode == 2
        assert "./learn run WHICH" in course.run("run", "all", "--help").stdout


def test_flags_before_and_after_the_command_reach_the_lesson(sample):
    with Course(*THREE) as course:
        for arguments in (("--seed", "3", "run", "divide", "--ascii"), ("run", "divide", "--ascii", "--seed=3")):
            course.run(*arguments)
            words = course.words_of(7, "divide")
            assert "--seed=3" in words and "--ascii" in words, words
            assert not any(word.startswith("--device") for word in words), "each lesson has its own default"
        course.run("run", "divide", "--device", "cuda", "--micro", "6")
        words = course.words_of(7, "divide")
        assert "--device=cuda" in words and "--micro=6" in words and not any(word.startswith(("--rate", "--values")) for word in words), words


def test_done_requires_answers_and_checks(sample):
    with Course(*THREE) as course:
        course.run("run", "all")
        course.run("run", "divide", "--plain")
        assert course.answers() == [], "a lesson without a learner is not recorded"
        course.set(7, "divide", "quit", ("1", "wrong", "b", "You do not divide the losses."))
        course.at_terminal("run", "7")
        assert course.done() == [], "a lesson left early is not done"
        course.set(7, "divide", "ok", ("1", "right", "a", ""), ("2", "skipped", "", ""))
        assert "Questions were skipped" in " ".join(course.at_terminal("run", "7").split())
        assert course.done() == []
        course.set(7, "divide", "ok", ("2", "wrong", "c", "That is the mean."), ("2", "right", "a", ""))
        course.at_terminal("run", "7")
        assert course.done() == ["divide"]
        course.at_terminal("run", "20", expected=1)
        course.set(20, "checkpointing", "ok")
        course.at_terminal("run", "20", "--from", "2")  # the questions are before step 2
        assert course.done() == ["divide"]
        course.at_terminal("run", "20")
        assert course.done() == ["checkpointing", "divide"]
        course.set(7, "divide", "FAIL")
        course.at_terminal("run", "7", expected=1)
        assert course.done() == ["checkpointing"]
        course.write_answers(line("exercise", "divide", "", "passed"))
        assert course.done() == [], "a solved exercise does not replace its lesson"


def test_answers_are_written_as_they_are_documented(sample):
    with Course(THREE[0]) as course:
        course.set(7, "divide", "ok", ("1", "wrong", "b", "You do not divide the losses."), ("1", "right", "a", ""), ("2", "skipped", "", ""))
        course.at_terminal("run", "7")
        assert course.answers() == [["question", "divide", "1", "wrong", "b", "text", "You do not divide the losses.", "Which?"],
                                    ["question", "divide", "1", "right", "a", "text", "", "Which?"],
                                    ["question", "divide", "2", "skipped", "", "", "", "Which?"]]
        course.set(7, "divide", "ok", ("2", "right", "a", ""))
        course.at_terminal("run", "7")
        assert course.answers()[-1] == ["lesson", "divide", "", "done", "", "", "", ""]


def test_end_card(sample):
    with Course((6, "forgot-to-divide", "ok"), *THREE) as course:
        course.set(7, "divide", "ok", ("1", "right", "a", ""), ("2", "wrong", "b", "No."), ("2", "right", "a", ""), ("3", "wrong", "b", "No."),
                   ("3", "wrong", "c", "No."), ("4", "skipped", "", ""))
        said = " ".join(course.at_terminal("run", "7").split())
        for words in ("The rule Divide each micro-loss", "Predicted 1 of 4 at once, 1 more at the second try, 1 skipped", "Try Find the line in your own code. ./learn check divide",
                      "Next ./learn run checkpointing (5 min, in class 25)"):
            assert words in said, (words, said)
        plain = course.run("run", "divide").stdout
        assert "The rule" in plain and "Predicted" not in plain, plain
        for arguments in (["run", "all"], ["run", "divide", "--quiet"], ["run", "divide", "--json"]):
            assert "The rule" not in course.run(*arguments).stdout, arguments
        course.write_answers(*(line("lesson", slug, "", "done") for slug in ("forgot-to-divide", "checkpointing", "on-the-gpu")))
        assert "That was the last lesson" in course.at_terminal("run", "7")


def test_unwritable_answers_are_exit_5_before_the_first_question(sample):
    with Course(THREE[0]) as course:
        open(course.work, "w").close()  # a file in the place of the folder
        said = course.at_terminal("run", "divide", expected=5)
        assert course.work in said and "this is divide" not in said, said
        os.remove(course.work)
        os.makedirs(course.work + "/answers")
        said = course.at_terminal("run", "divide", expected=5)
        assert "cannot read" in said and "this is divide" not in said, said


def test_broken_answers_are_reported(sample):
    with Course(THREE[0]) as course:
        course.write_answers(line("lesson", "divide", "", "done"), "rub\tbish")
        with open(course.work + "/answers", "rb") as answers:
            before = answers.read()
        result = course.run("list")
        assert "done" in result.stdout and "'rub bish'" in result.stderr, result
        with open(course.work + "/answers", "rb") as answers:
            assert answers.read() == before


def test_write_errors_are_exit_5(sample):
    with with_sample(sample, THREE[0]) as course, open("/dev/full", "w") as full:
        for arguments in (["list"], ["doctor"], ["run", "sample"], ["run", "all"], ["--help"]):
            result = course.run(*arguments, stdout=full)
            assert result.returncode == 5 and "No space left" in result.stderr, (arguments, result)


def test_no_lessons(sample):
    with Course() as course:
        result = course.run("list")
        assert result.returncode == 5 and "no lessons in" in result.stderr, result
        assert course.run("doctor").returncode == 0


def test_no_exercises(sample):
    with Course(THREE[0]) as course:
        for words in (["check"], ["score"], ["hint", "divide"]):
            result = course.run(*words)
            assert result.returncode == 5 and "no exercises in" in result.stderr and result.stdout == "", result


def test_doctor(sample):
    with Course(*THREE) as course:
        report = course.run("doctor", PATH="/nonexistent").stdout
        assert re.search(r"cpu +yes", report) and "step mode" in report
        assert re.search(r"cuda +(yes|no: this (build|machine) has no CUDA)", report), report
        assert "apt-get install --no-install-recommends graphviz" in report
        assert re.search(r"OpenBLAS +\w+ kernels", report), report
        for line in course.run("doctor", "--json").stdout.splitlines():
            assert json.loads(line)["event"] == "finding"


def with_sample(sample, *lessons):
    course = Course(*lessons)
    shutil.copy(sample, course.root + "/build/lessons/lesson_99_sample")
    for ending in (".md", ".cpp"):
        shutil.copy(SAMPLE_PAGE.with_suffix(ending), course.root + "/lessons")
    return course


def test_json_is_nothing_but_json(sample):
    with with_sample(sample) as course:
        for arguments in (["run", "all", "--json"], ["--json"], ["run", "sample", "--json", "--quiet"]):
            for line in course.run(*arguments).stdout.splitlines():
                assert json.loads(line)["v"] == 1


def test_graph(sample):
    with with_sample(sample) as course:
        path = course.root + "/out.svg"
        result = course.run("graph", "sample", "-o", path)
        assert result.returncode == 0 and os.path.getsize(path) > 0, result
        for name, code in (("nowhere/out.svg", 5), ("out.png", 2)):
            result = course.run("graph", "sample", "-o", f"{course.root}/{name}")
            assert result.returncode == code and result.stderr.count("\n") == 1, result
        assert not any(name.startswith("out.svg.") for name in os.listdir(course.root))


def test_a_lesson_that_crashes_is_a_failure(sample):
    with with_sample(sample) as course:
        result = course.run("run", "sample", SAMPLE_LESSON="abort")  # sanitizers do not handle this signal
        assert result.returncode == 1 and "signal 6" in result.stderr, result
        assert course.answers() == []


def test_step_mode_through_the_runner(sample):
    with with_sample(sample) as course, course.terminal() as t:
        for step in range(1, 6):
            t.expect(f"[{step}/5]")
            t.expect("skip) > " if step == 3 else "q quit")
            t.type("5" if step == 3 else " ")
            if step == 3:
                t.expect("q quit")
                t.type(" ")
        assert t.wait() == 0 and t.restored()
        assert course.done() == ["sample"]
        with course.terminal() as again:
            assert again.wait() == 0 and "All 1 lessons are done" in again.seen


def test_a_key_begins_the_next_lesson(sample):
    with Course((5, "full-batch", "ok"), (7, "divide", "ok")) as course:
        seen = course.at_terminal(key=" ")
        assert "this is full-batch" in seen and "this is divide" in seen and course.done() == ["divide", "full-batch"]


def test_the_next_lesson_goes_on_at_the_step_that_was_left(sample):
    with Course((5, "full-batch", "quit"), (7, "divide", "ok")) as course:
        course.at_terminal()
        assert course.answers()[-1][:4] == ["lesson", "full-batch", "2", "begun"]
        seen = course.at_terminal()
        assert "full-batch goes on at step 2. ./learn run full-batch begins at step 1." in " ".join(seen.split())
        assert "--from=2" in course.words_of(5, "full-batch")
        assert "You left this lesson at step 2: --from 2 goes on there." in course.at_terminal("run", "full-batch")
        assert "--from=2" not in course.words_of(5, "full-batch")


def test_next_goes_on_after_a_skipped_lesson(sample):
    with Course((22, "on-the-gpu", "skip"), (23, "across-processes", "ok")) as course:
        for shown in ("this is across-processes", "this is on-the-gpu"):  # in the second round no other lesson is left
            with course.terminal() as t:
                if "across" in shown:
                    t.expect("SPACE next lesson")
                    t.type("q")
                code = t.wait()
                assert shown in t.seen and code == (0 if "across" in shown else 77), (code, t.seen)
        assert course.done() == ["across-processes"]


if __name__ == "__main__":
    if not have_terminals():
        print("no pseudo-terminals on this machine")
        sys.exit(77)
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]))
