"""Tests exercises: wrong, broken and right answers, hints, and beginning again. Usage: practice_test.py BUILD"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from terminal_driver import RUNNER, Terminal, clean_environment, given_build, have_terminals, run_tests

ANSWER = re.compile(r"^(?:void|int|double|std::|Tensor|Numbers).*?^}$", re.M | re.S)

FULL_DISK = ("import os, resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
             "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); os.execv(sys.argv[2], sys.argv[2:])")

ROOT = Path(__file__).resolve().parents[2]
LESSONS = len(list(ROOT.glob("lessons/[0-9]*.md")))
EXERCISES = len(list(ROOT.glob("exercises/[0-9]*")))


class Learner:
    """Runs ./learn for a learner with a folder for this test."""

    def __init__(self, build):
        self.folder, (self.root, self.environment) = tempfile.TemporaryDirectory(), given_build(build)
        self.work = self.folder.name + "/work"
        self.environment["TALLY_WORK"] = self.work

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()
        self.root.cleanup()

    def run(self, *words, stdout=subprocess.PIPE, no_file_over=None, **environment):
        """Runs the runner. no_file_over limits the size of files in bytes, which simulates a full disk."""
        full = [] if no_file_over is None else [sys.executable, "-c", FULL_DISK, str(no_file_over)]
        return subprocess.run([*full, *RUNNER, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=300, cwd=self.folder.name, env=clean_environment(**self.environment, **environment))

    def path(self, stem):
        return f"{self.work}/exercises/{stem}.cpp"

    def read(self, stem):
        with open(self.path(stem), encoding="utf-8") as file:
            return file.read()

    def write(self, stem, text):
        os.makedirs(self.work + "/exercises", exist_ok=True)
        with open(self.path(stem), "w", encoding="utf-8") as file:
            file.write(text)

    def log(self):
        """Returns the entries for exercises in the file of answers: "divide wrong not_divided"."""
        with open(self.work + "/answers", encoding="utf-8") as file:
            lines = [line.split("\t") for line in file.read().split("\n")[1:-1]]
        return [" ".join(filter(None, (of, how, which))) for what, of, _, how, which, *_ in (line for line in lines if len(line) == 8) if what == "exercise"]

    def answer(self, slug):
        """Returns the code that ./learn solution prints, without the explanation below."""
        shown = self.run("solution", slug, "--yes").stdout
        return "\n".join(ANSWER.findall(shown)) + "\n"


def head(learner, stem):
    return learner.read(stem).split('#include "given.hpp"\n')[0] + '#include "given.hpp"\n'


def words_of(text):
    return " ".join(text.split())


def check_divide(learner, body, before="", after=""):
    """Checks the exercise divide with this body of accumulate()."""
    learner.write("divide", '#include "given.hpp"\n' + before + "void accumulate(const Tensor& x, const Tensor& w, int size) {\n" + body + "\n}\n" + after)
    result = learner.run("check", "divide")
    assert "kit/" not in result.stdout and "given.hpp" not in result.stdout, result.stdout
    return result


def test_the_first_check_writes_the_file(build):
    with Learner(build) as learner:
        first = learner.run("check")
        assert first.returncode == 77 and "work/exercises/set_or_add.cpp is your file" in words_of(first.stdout), first
        again = learner.run("check")
        assert again.returncode == 77 and "[todo]" in again.stdout and "./learn hint set-or-add" in again.stdout, again
        assert not os.path.exists(learner.work + "/answers"), "the first check is not a try"


def test_a_known_mistake_is_explained(build):
    with Learner(build) as learner:
        learner.run("check", "divide")
        result = learner.run("check", "divide")
        assert result.returncode == 1, result
        said = words_of(result.stdout)
        assert "You do not divide the losses" in said and "[-1.0608 0.0620 -1.8375]" in said and "[-0.3536 0.0207 -0.6125]" in said, said
        assert "3 times too large" in said and "1 of 8 cases is right (seed 0)" in said, said
        assert learner.log() == ["divide wrong not_divided"]
        as_json = json.loads(learner.run("check", "divide", "--json").stdout)
        assert (as_json["judged"], as_json["mistake"]) == ("wrong", "not_divided")
        assert "(seed 7)" in learner.run("check", "divide", "--seed", "7").stdout


def test_an_unknown_mistake_shows_the_numbers(build):
    with Learner(build) as learner:
        result = check_divide(learner, "    for (const Tensor& m : split(x, size)) (mean(matmul(m, w)) * 0.7).backward();")
        assert result.returncode == 1 and "not a mistake that this exercise knows" in words_of(result.stdout) and "2.1 times too large" in result.stdout, result
        assert learner.log() == ["divide wrong"]


def test_other_right_answers_pass(build):
    with Learner(build) as learner:
        result = check_divide(learner, "    const auto all = static_cast<double>(x.shape()[0]);\n"
                                       "    for (const Tensor& m : split(x, size)) (sum(matmul(m, w)) / all).backward();")
        assert result.returncode == 0 and "[ok] divide: 8 cases" in result.stdout and "Next: ./learn check set-or-add" in result.stdout, result
        for slug, stem in (("set-or-add", "set_or_add"), ("two-segments", "two_segments")):
            learner.run("check", slug)
            learner.write(stem, head(learner, stem) + learner.answer(slug))
            result = learner.run("check", slug)
            assert result.returncode == 0 and "[ok]" in result.stdout, result
        score = learner.run("score").stdout
        assert f"3 of {EXERCISES} passed" in score and re.search(r"5  divide .* passed  1 try$", score, re.M), score
        assert re.search(r"21  two-segments .* passed  1 try, answer shown$", score, re.M), score
        states = {line["slug"]: line["state"] for line in map(json.loads, learner.run("score", "--json").stdout.splitlines()[1:])}
        assert len(states) == EXERCISES and states["divide"] == "passed" and states["ring"] == "open", states
        learner.run("check")
        assert os.path.exists(learner.path("newest_first")), "the next exercise that has not passed"


def test_compiler_errors_are_shown_in_the_learners_file(build):
    with Learner(build) as learner:
        for body, line, sentence in (("    Tensor loss = mean(x)\n    loss.backward();", 4, "end of the line before"), ("    losss.backward();", 3, "nothing of this name"),
                                     ("    Tensor loss = w.bakward();", 3, "A tensor has no member bakward"), ("    int n = std::string(\"a\");", 3, "not the type that is required"),
                                     ("    matmul(3, w);", 3, "takes such arguments"), ("    for (;;) {", 4, "brace"),
                                     ("    const int n = 1;\n    n = 2;", 4, "declared const is changed here"),
                                     ("    std::cuot << size;", 3, "nothing of this name, or its header is not included"),
                                     ("    void constant(int, double); void constant(double, int); constant(1, 1);", 3, "Several functions")):
            result = check_divide(learner, body)
            assert result.returncode == 1 and sentence in words_of(result.stdout), (body, result.stdout)
            assert re.search(rf"divide.cpp, line {line}$", result.stdout, re.M), (body, result.stdout)
            assert len(result.stdout.splitlines()) < 12, result.stdout
        assert learner.log() == ["divide error"] * 9
        learner.write("tokens", '#include "given.hpp"\n' + learner.answer("tokens").replace("return ", "if (false) return "))
        nothing = learner.run("check", "tokens")
        assert nothing.returncode == 1 and "can end without returning anything" in words_of(nothing.stdout), nothing
        in_ours = check_divide(learner, "    Tensor y = checkpoint([](const Tensor& h) { return 3; }, x);")
        assert ", line 3" in in_ours.stdout and "checkpoint([]" in in_ours.stdout, in_ours.stdout


def test_members_of_a_given_type_are_listed(build):
    with Learner(build) as learner:
        for slug, wrong, sentence in (("sixteen-bits", "void add(Sum& to, float x) { to.summe = x; }", "The members of Sum are sum and lost."),
                                      ("scalar-engine", "void backward(const Value& y) { y->grad = 1; }", "The members of Node are value, gradient, inputs, backward and id."),
                                      ("scalar-engine", "void backward(const Value& y) { y.gradient = 1; }", "A Value is a pointer. Write -> instead of the dot.")):
            learner.write(slug.replace("-", "_"), '#include "given.hpp"\n' + wrong + "\n")
            result = learner.run("check", slug)
            assert result.returncode == 1 and sentence in words_of(result.stdout), (slug, wrong, result.stdout)


def test_a_training_with_the_learners_code_is_reported(build):
    with Learner(build) as learner:
        for slug, sentence in (("scalar-engine", "Your engine has trained"), ("window", "Your window has trained"), ("chain", "Your chain has trained")):
            learner.write(slug.replace("-", "_"), '#include "given.hpp"\n' + learner.run("solution", slug, "--yes").stdout.rpartition("}\n")[0] + "}\n")
            result = learner.run("check", slug)
            assert result.returncode == 0 and sentence in words_of(result.stdout), (slug, result)
            assert sentence in json.loads(learner.run("check", slug, "--json").stdout)["trained"][0], slug


def test_the_functions_of_find_it_are_judged_separately(build):
    with Learner(build) as learner:
        learner.run("check", "find-it")
        everything = learner.run("check", "find-it").stdout
        assert "Wrong: loss_in_the_log, updates_of, token_mean, rate_at and clipped." in words_of(everything), everything
        text = learner.read("find_it")
        log, rate = "std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0)", "std::pow(decay, micro)"
        assert log + " /" in text and rate in text, text
        learner.write("find_it", text.replace(log + " /", log + " + 0 *").replace(rate, "std::pow(decay, micro / micro_batches)"))
        two = learner.run("check", "find-it").stdout
        assert "Right: loss_in_the_log and rate_at (2 of 5). Still wrong: updates_of, token_mean and clipped." in words_of(two), two
        assert "updates_of rounds down" in words_of(two) and "updates_of(10, 4)" in two, two


def test_memory_of_the_compiler_is_limited(build):
    with Learner(build) as learner:
        if "clang" in learner.run("doctor").stdout:
            return  # clang includes only regular files
        learner.write("divide", '#include "/dev/zero"\n')
        result = learner.run("check", "divide")
        assert result.returncode == 1 and "more memory than it is given (4 GiB)" in words_of(result.stdout), result
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 3 << 20, "KiB"  # the buffer doubles: 2 GiB are in use when 4 GiB are rejected


def test_other_endings_are_explained(build):
    with Learner(build) as learner:
        for body, sentence in (("    int* nowhere = nullptr;\n    *nowhere = 1;", "crashed"), ("    accumulate(x, w, size + 1);", "without end"),
                               ("    std::abort();", "ended itself"), ("    std::exit(0);", "exit?"), ("    volatile int zero = 0;\n    zero = 7 / zero;", "by zero"),
                               ("    std::vector<std::vector<double>> all;\n    while (true) all.emplace_back(1 << 20);", "more memory"),
                               ("    while (true) {\n    }", "never ends"),
                               ("    std::vector<int> three(3);\n    three[std::size_t(size) + 7] = 1;", "An index out of range"), ("    throw std::runtime_error(\"no idea\");", "no idea"), ("    throw 3;", "not a std::exception"),
                               ("    ::pause();", "in which it mostly waited"),
                               ("    mean(matmul(w, x)).backward();", "[matmul]")):
            result = check_divide(learner, body)
            assert result.returncode == 1 and sentence in words_of(result.stdout), (body, result.stdout)
            assert "six rows, 2 in a micro-batch" in words_of(result.stdout) or "exit" in body, result.stdout


def test_a_missing_function_is_named(build):
    with Learner(build) as learner:
        for text, sentence in (("", "accumulate"), ("// nothing\n", "accumulate"), ('#include "given.hpp"\n', "void accumulate(const Tensor& x, const Tensor& w, int size)"),
                               ('#include "given.hpp"\nvoid accumulate(const Tensor& x, const Tensor& w) {}\n', "Keep its first line"),
                               ('#include "given.hpp"\nint accumulate(const Tensor& x, const Tensor& w, int size) { return 1; }\n', "what it returns is part"),
                               ('#include "given.hpp"\nint help(int);\nvoid accumulate(const Tensor&, const Tensor&, int n) { help(n); }\n', "declared and used, but not defined")):
            learner.write("divide", text)
            result = learner.run("check", "divide")
            assert result.returncode == 1 and sentence in words_of(result.stdout), (text, result)


def test_output_of_an_answer_is_shown(build):
    with Learner(build) as learner:
        learner.write("divide", '#include "given.hpp"\nvoid accumulate(const Tensor&, const Tensor&, int n) { std::cout << "size " << n << std::endl; }\n')
        assert "size 2\n" in learner.run("check", "divide").stdout


def test_hints_come_one_by_one(build):
    with Learner(build) as learner:
        said = [words_of(learner.run("hint", "divide").stdout) for _ in range(4)]
        assert [text.split(":")[0] for text in said] == [f"Hint {number} of 3 for divide" for number in (1, 2, 3, 3)], said
        assert "?" in said[0] and "last one" in said[3] and learner.log() == ["divide hint"] * 3


def test_solution_requires_a_pass_or_yes(build):
    with Learner(build) as learner:
        refused = learner.run("solution", "divide")
        assert refused.returncode == 2 and refused.stdout == "" and "--yes" in refused.stderr, refused
        assert "parts" in learner.run("solution", "divide", "--yes").stdout and learner.log() == ["divide shown"]


def test_reset_keeps_the_learners_file(build):
    with Learner(build) as learner:
        learner.run("check", "divide")
        start = learner.read("divide")
        for number, text in ((1, "mine\n"), (2, "mine, too\n")):
            learner.write("divide", text)
            refused = learner.run("reset", "divide")
            assert refused.returncode == 2 and "--yes" in refused.stderr and learner.read("divide") == text, refused
            result = learner.run("reset", "divide", "--yes")
            assert result.returncode == 0 and f"kept/divide.{number}.cpp" in result.stdout, result
            assert learner.read("divide") == start and learner.read(f"kept/divide.{number}") == text


def test_an_unknown_exercise_suggests_the_most_similar(build):
    with Learner(build) as learner:
        for words, part in ((("check", "devide"), "'divide'"), (("hint", "99"), f"1 to {EXERCISES}"), (("reset", "enigne"), "'engine'"), (("solution", "t"), "'t' could be the-tail, tokens, two-passes, two-segments (./learn score)"), (("hint", "xyzzy"), "no exercise 'xyzzy' (./learn score)"), (("check", "NaN"), "no exercise 'NaN' (./learn score)"),
                            (("check", "9" * 30), f"there are 1 to {EXERCISES}"), (("reset",), "./learn score the exercises"), (("check", "--micro", "3"), "exercises have no parameters"),
                            (("check", "--seed", "18446744073709551616"), "0 to 18446744073709551615")):
            result = learner.run(*words)
            assert result.returncode == 2 and part in result.stderr and result.stdout == "", result
        for which in ("5", "05", "div", "05_divide"):
            assert learner.run("hint", which).returncode == 0, which


def line(slug, how):
    return f"exercise\t{slug}\t\t{how}\t\t\t\t\n"


def test_a_broken_line_is_reported_and_the_others_count(build):
    with Learner(build) as learner:
        learner.run("hint", "divide")
        broken = line("divide", "passed") + "\x00\x01 rubbish\n\n" + line("ring", "hint") + "exercise\tring\twro"
        with open(learner.work + "/answers", "a", encoding="utf-8") as answers:
            answers.write(broken)
        result = learner.run("score")
        assert result.returncode == 0 and "is not an answer" in result.stderr and f"1 of {EXERCISES} passed" in result.stdout, result
        assert "Hint 2 " in learner.run("hint", "ring").stdout
        assert learner.log() == ["divide hint", "divide passed", "ring hint", "ring hint"]


def test_a_full_disk_or_a_kill_does_not_damage_other_lines(build):
    with Learner(build) as learner:
        answers, one = learner.work + "/answers", line("divide", "hint")
        learner.run("hint", "divide")
        with open(answers, encoding="utf-8") as file:
            start = file.read()
        for part in range(1, len(one)):
            with open(answers, "w", encoding="utf-8") as file:
                file.write(start)
            full = learner.run("hint", "divide", no_file_over=len(start) + part)
            with open(answers, encoding="utf-8") as file:
                assert full.returncode == 5 and file.read() == start, (part, full)
            with open(answers, "a", encoding="utf-8") as file:
                file.write(one[:part])
            result = learner.run("hint", "ring")
            whole = 2 if part == len(one) - 1 else 1
            assert result.returncode == 0 and learner.log() == ["divide hint"] * whole + ["ring hint"], (part, result)
            with open(answers, "w", encoding="utf-8") as file:
                file.write(start)


def test_a_hint_without_a_name_is_for_the_exercise_that_was_begun(build):
    with Learner(build) as learner:
        nothing = learner.run("hint")
        assert nothing.returncode == 2 and "you have not begun an exercise" in nothing.stderr and not os.path.exists(learner.work + "/answers"), nothing
        learner.run("check", "divide")
        assert learner.run("hint").stdout.startswith("Hint 1 of 3 for divide: ") and learner.log() == ["divide hint"]


def test_score_includes_lessons(build):
    with Learner(build) as learner:
        os.makedirs(learner.work)
        with open(learner.work + "/answers", "w", encoding="utf-8") as file:
            file.write("what\tof\tnumber\thow\twhich\tgiven\tsentence\tquestion\n")
            for number, how in ((1, "right"), (2, "wrong"), (2, "right"), (3, "skipped")):
                file.write(f"question\tdivide\t{number}\t{how}\t\t\t\tWhy?\n")
        assert f"0 of {LESSONS} lessons are done; 2 questions answered, 1 of them at once, 1 at the second try" in learner.run("score").stdout
        assert "to repeat: question 2 of divide: Why?" in learner.run("score").stdout
        with open(learner.work + "/answers", "a", encoding="utf-8") as file:
            file.write("question\tdivide\t2\tright\t\t\t\tWhy?\n")
        assert "to repeat" not in learner.run("score").stdout, "a question that is answered at once need not be repeated"
        check_divide(learner, "    (mean(matmul(x, w))).backward();")
        assert f"0 of {LESSONS} lessons are done" in learner.run("score").stdout, "an exercise does not replace its lesson"
        first = json.loads(learner.run("score", "--json").stdout.splitlines()[0])
        assert first == {"v": 1, "lessons": LESSONS, "done": 0, "questions": 2, "at_once": 1, "later": 1}, first


def test_a_pass_is_kept_until_reset(build):
    with Learner(build) as learner:
        learner.run("check", "divide")
        start = learner.read("divide")
        for text, code, passed in ((head(learner, "divide") + learner.answer("divide"), 0, 1), (start, 1, 1), ("nothing", 1, 1)):
            learner.write("divide", text)
            assert learner.run("check", "divide").returncode == code
            assert f"{passed} of {EXERCISES} passed" in learner.run("score").stdout, (text, learner.log())
        learner.run("reset", "divide", "--yes")
        assert f"0 of {EXERCISES} passed" in learner.run("score").stdout


def test_a_full_disk_is_not_an_error_of_the_answer(build):
    with Learner(build) as learner:
        learner.write("divide", '#include "given.hpp"\n' + learner.answer("divide"))
        result = learner.run("check", "divide", no_file_over=1000)
        assert result.returncode == 5 and "cannot write" in result.stderr and result.stdout == "", result
        assert learner.log() == ["divide shown"], learner.log()
        os.rmdir(learner.work + "/exercises/.built")
        os.symlink("/proc", learner.work + "/exercises/.built")  # no user can create a file there
        result = learner.run("check", "divide")
        assert result.returncode == 5 and ".built" in result.stderr and learner.log() == ["divide shown"], result


def test_a_failed_reset_names_the_kept_file(build):
    with Learner(build) as learner:
        learner.write("divide", "mine\n")
        result = learner.run("reset", "divide", "--yes", no_file_over=10)
        assert result.returncode == 5 and "your text is in" in result.stderr and "kept/divide.1.cpp" in result.stderr, result
        assert learner.read("kept/divide.1") == "mine\n"


def test_write_errors_are_exit_5(build):
    with Learner(build) as learner, open("/dev/full", "w") as full:
        for words in (["score"], ["check", "divide"], ["hint", "ring"], ["solution", "ring", "--yes"]):
            result = learner.run(*words, stdout=full)
            assert result.returncode == 5 and "No space left" in result.stderr, (words, result)
    with Learner(build) as learner:
        open(learner.work, "w").close()  # a file in the place of the folder
        for words in (["check", "divide"], ["hint", "divide"]):
            result = learner.run(*words)
            assert result.returncode == 5 and learner.work in result.stderr, (words, result)


def test_json_has_one_object_for_each_command(build):
    with Learner(build) as learner:
        for words, key in ((["check", "divide"], "file"), (["check", "divide"], "sentence"), (["hint", "divide"], "text"), (["solution", "divide", "--yes"], "answer"),
                           (["reset", "divide", "--yes"], "kept")):
            lines = learner.run(*words, "--json").stdout.splitlines()
            assert len(lines) == 1 and json.loads(lines[0])["slug"] == "divide" and json.loads(lines[0])[key], (words, lines)
        quiet = learner.run("check", "divide", "--quiet").stdout
        assert "You do not divide the losses" in quiet and "your w.grad" not in quiet, quiet


def test_watch_requires_a_terminal(build):
    with Learner(build) as learner:
        result = learner.run("check", "divide", "--watch")
        assert result.returncode == 2 and "terminal" in result.stderr and result.stdout == "", result


def test_watch_checks_each_saved_version(build):
    if not have_terminals():
        return
    with Learner(build) as learner:
        learner.run("check", "divide")
        right = head(learner, "divide") + learner.answer("divide")
        with Terminal([*RUNNER, "check", "divide", "--watch"], **learner.environment) as terminal:
            terminal.expect("You do not divide the losses")
            terminal.expect("watching")
            learner.write("divide", right.replace("/ parts", "/ size "))
            terminal.expect("But you divide by the number of rows")
            terminal.expect("watching")
            with open(learner.path("divide") + ".new", "w", encoding="utf-8") as file:  # as editors do that save by renaming
                file.write(right)
            saved = os.stat(learner.path("divide"))
            os.utime(learner.path("divide") + ".new", ns=(saved.st_atime_ns, saved.st_mtime_ns))  # with the same time stamp
            os.replace(learner.path("divide") + ".new", learner.path("divide"))
            terminal.expect("[ok] divide")
            terminal.expect("Exercise 1, set-or-add")  # the next exercise begins
            terminal.expect("watching")
            terminal.type("\x03")
            assert terminal.wait() == 130 and terminal.restored()
        assert learner.log()[-3:] == ["divide wrong not_divided", "divide wrong divided_by_rows", "divide passed"]


def test_control_characters_of_an_answer_do_not_reach_the_terminal(build):
    with Learner(build) as learner:
        for body in ('    throw std::runtime_error("\\x1b[31mred");', '    losss("\x1b[31mred");'):
            result = check_divide(learner, body)
            assert result.returncode == 1 and "[31mred" in result.stdout and "\x1b" not in result.stdout, (body, result)


def test_a_narrow_terminal_is_enough(build):
    with Learner(build) as learner:
        learner.write("divide", "#error nothing\n")
        with Terminal([*RUNNER, "hint", "divide"], columns=40, **learner.environment) as t:
            assert t.wait() == 0, t.seen
        lines = t.seen.splitlines()
        assert len(lines) > 1 and max(map(len, lines)) <= 40, lines


def test_reset_asks_at_a_terminal(build):
    if not have_terminals():
        return
    with Learner(build) as learner:
        learner.write("divide", "mine\n")
        for key, kept in (("n\n", True), ("\n", True), ("y\n", False)):
            with Terminal([*RUNNER, "reset", "divide"], **learner.environment) as terminal:
                terminal.expect("[y/N]")
                terminal.type(key)
                code = terminal.wait()
            assert (learner.read("divide") == "mine\n") == kept and (code == 0) != kept, key


if __name__ == "__main__":
    run_tests(sys.modules[__name__], *sys.argv[1:])
