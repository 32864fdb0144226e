"""Tests step mode at a pseudo-terminal. Usage: step_mode_test.py LESSON_SAMPLE"""

import os
import re
import signal
import subprocess
import sys
import tempfile

from terminal_driver import Terminal, clean_environment, have_terminals, run_tests

NEXT, BAR, PROMPT = " ", "q quit", "skip) > "
PAGE_UP, PAGE_DOWN = "\x1b[5~", "\x1b[6~"


def at_step(terminal, step):
    terminal.expect(f"[{step}/5]")
    terminal.expect(PROMPT if step == 3 else BAR)


def to_prediction(terminal):
    at_step(terminal, 1)
    terminal.type(NEXT)
    at_step(terminal, 2)
    terminal.type(NEXT)
    at_step(terminal, 3)


def test_steps_through_with_space_enter_and_page_down(lesson):
    with Terminal([lesson]) as t:
        to_prediction(t)
        assert "[ok]" not in t.seen and "Answer" not in t.seen, "the answer was shown before the question"
        t.type("5")
        t.expect("Right: 5) 3.")
        t.expect("[ok] 1 check holds (c shows it)")
        t.expect(BAR)
        t.type("\r")
        at_step(t, 4)
        t.type(PAGE_DOWN)
        at_step(t, 5)
        t.type(NEXT)
        assert t.wait() == 0
        assert t.restored()


def test_never_moves_on_by_itself(lesson):
    with Terminal([lesson]) as t:
        at_step(t, 1)
        t.type("xyz0")  # keys without a meaning
        t.expect(BAR)
        t.type("h")
        t.expect("No hint for this step.")
        assert "[2/5]" not in t.seen


def test_the_answer_is_explained_after_two_wrong_tries(lesson):
    with Terminal([lesson]) as t:
        to_prediction(t)
        t.type("1")
        before = t.expect(PROMPT)
        assert "Answer" not in before and "each mean" not in before, "the answer was explained before the second try"
        t.type("3")
        t.expect("Not quite: 3) 6.  That is the rows of all.")
        t.expect("Answer: 5) 3.  each mean is divided by 2")
        t.expect(BAR)


def to_number(t):
    to_prediction(t)
    t.type("s")
    t.expect(BAR)
    t.type(NEXT)
    t.expect("[4/5]")
    t.expect("0.01 more or less is accepted")
    t.expect(PROMPT)


def test_a_number_is_typed(lesson):
    for typed in ("2.5", "2.505", "25e-1", "-2\x7f\x7f2.5", "0002.50"):
        with Terminal([lesson], SAMPLE_LESSON="typed") as t:
            to_number(t)
            t.type(typed + "\r")
            t.expect("Right: 2.5.")
            t.expect(BAR)


def test_a_wrong_number_is_explained(lesson):
    for typed, sentence in (("5", "Not quite: 5.  That is the sum."), ("-2.5", "The answer has the other sign."), ("2.6", "The answer is smaller."),
                            ("2.4e0", "The answer is larger.")):
        with Terminal([lesson], SAMPLE_LESSON="typed") as t:
            to_number(t)
            t.type(typed + "\n")
            t.expect(sentence)
            t.expect(PROMPT)
            t.type("7\n")
            t.expect("Answer: 2.5.  5 / 2")
            t.expect(BAR)


def test_invalid_numbers_are_asked_again(lesson):
    with Terminal([lesson], SAMPLE_LESSON="typed") as t:
        to_number(t)
        for typed in ("\r", "--\r", "1e\r", "2.5.\r", "1/\r", "2^^3\r"):
            t.type(typed)
            t.expect("Type a number such as -0.5 or 2/3, then ENTER")
            t.expect(PROMPT)
        t.type("?")
        t.expect("A number such as -0.5, 2/3 or 2^(1/3), then ENTER")
        t.expect(PROMPT)
        t.type("b")
        t.expect("[3/5]")


def test_numbers_are_accepted_as_people_write_them(lesson):
    for typed in ("5/2", "2,5", "10^1/4", "2.5e0", "5 x/c2"):  # keys without a meaning are ignored
        with Terminal([lesson], SAMPLE_LESSON="typed") as t:
            to_number(t)
            t.type(typed + "\r")
            t.expect("Right: 2.5.")


def test_question_mark_shows_the_keys_and_c_the_checks(lesson):
    with Terminal([lesson]) as t:
        at_step(t, 1)
        t.type("?")
        t.expect("c: the checks of this step")
        t.expect(BAR)
        t.type("c")
        t.expect("No check so far in this lesson.")
        t.expect(BAR)
        t.type(NEXT)
        at_step(t, 2)
        t.type(NEXT)
        at_step(t, 3)
        t.type("?")
        t.expect("1-5: your answer.")
        t.expect(PROMPT)
        t.type("s")
        t.expect(BAR)
        t.type("c")
        t.expect("Checks of step 3:")
        t.expect("[ok] sum of three = 3 x full")
        t.expect(BAR)


def test_hint_skip_and_invalid_keys(lesson):
    with Terminal([lesson]) as t:
        to_prediction(t)
        t.type(NEXT)
        t.expect("Press 1 to 5")
        t.expect(PROMPT)
        for key in ("9", " ", "x"):  # the prompt replaces itself, so that the question stays on the screen
            t.type(key)
            assert t.expect(PROMPT).count("\n") == 0, t.seen[-400:]
        t.type("h")
        t.expect("Hint: Which rows are in it?")
        t.expect(PROMPT)
        t.type("h")
        t.expect("Hint: Compare the weights of a row.")
        t.expect(PROMPT)
        t.type("h")
        t.expect("There are two hints")
        t.expect(PROMPT)
        t.type("s")
        t.expect("Answer: 5) 3.")


def test_a_clicker_reveals(lesson):
    with Terminal([lesson]) as t:
        to_prediction(t)
        t.type(PAGE_DOWN)
        t.expect("Answer: 5) 3.")


def test_typed_ahead_keys_never_answer(lesson):
    with Terminal([lesson]) as t:
        at_step(t, 1)
        t.type(NEXT)
        at_step(t, 2)
        t.type(NEXT + "2222")  # the kernel has buffered the digits before the question is asked
        at_step(t, 3)
        t.type("h")
        between = t.expect("Hint:")
        assert "Not quite" not in between and "Right" not in between, between


def test_back_and_forward(lesson):
    with Terminal([lesson]) as t:
        to_prediction(t)
        t.type("b")  # the key b works at a question too
        at_step(t, 2)
        t.type(PAGE_UP)
        at_step(t, 1)
        t.type("b")
        t.expect("This is the first step.")
        assert "[1/5]" not in t.expect(BAR), "the first step was shown again"
        t.type(NEXT)
        at_step(t, 2)
        t.type(NEXT)
        at_step(t, 3)
        t.type("1")
        t.expect("Not quite")
        t.expect(PROMPT)
        t.type("3")
        t.expect("Not quite")
        t.expect(BAR)
        t.type("b")
        at_step(t, 2)
        t.type(NEXT)
        t.expect("[3/5]")
        t.expect("Not quite")  # the lesson keeps answers
        t.expect(BAR)


def test_page_key_shows_the_page_in_a_pager(lesson):
    for pager, text in (("sed s/^/PAGE:/", "PAGE:# "), ("false", "The page of this lesson is")):
        with Terminal([lesson], PAGER=pager) as t:
            to_prediction(t)
            t.type("m")
            t.expect(text)
            t.expect(PROMPT)


def test_graph_key_writes_the_picture(lesson):
    nowhere = {"DISPLAY": None, "WAYLAND_DISPLAY": None}
    with tempfile.TemporaryDirectory() as work, Terminal([lesson], columns=200, TALLY_WORK=work, **nowhere) as t:
        at_step(t, 1)
        t.type("g")
        t.expect("sample.svg and .dot")
        t.expect(f"file://{work}/graphs/sample.svg")
        assert sorted(os.listdir(work + "/graphs")) == ["sample.dot", "sample.svg"]


def test_graph_key_says_when_it_cannot_write(lesson):
    with tempfile.NamedTemporaryFile() as no_folder, Terminal([lesson], TALLY_WORK=no_folder.name) as t:
        at_step(t, 1)
        t.type("g")
        t.expect("cannot make the folder")
        t.expect(BAR)  # the lesson continues


def test_quit(lesson):
    with Terminal([lesson]) as t:
        at_step(t, 1)
        t.type("q")
        assert t.wait() == 0
        assert t.restored()
        assert "go on:" not in t.seen  # not printed at the first step


def test_quit_prints_the_command_to_continue(lesson):
    with Terminal([lesson, "--seed", "3"]) as t:
        at_step(t, 1)
        t.type(NEXT)
        at_step(t, 2)
        t.type("q")
        t.expect("go on: ./learn run sample --seed 3 --from 2")
        assert t.wait() == 0
    with Terminal([lesson, "--present", "--from", "3"]) as t:
        t.expect("[3/5]")
        t.expect("> ")
        t.type("q")
        t.expect("go on: ./learn run sample --present --from 3")
        assert t.wait() == 0


def test_from_a_later_step(lesson):
    with Terminal([lesson, "--from", "4"]) as t:
        at_step(t, 4)
        assert "[1/5]" not in t.seen and "PREDICT" not in t.seen
        t.type("b")
        t.expect("This run began at step 4. ./learn run sample begins at step 1.")
        t.expect(BAR)


def ends_by(lesson, expected, act, step=1):
    with Terminal([lesson]) as t:
        if step == 3:
            to_prediction(t)
        else:
            at_step(t, 1)
        assert not t.restored(), "step mode reads single keys"
        act(t)
        code = t.wait()
        assert code == expected, f"ended with {code}, not {expected}"
        assert t.restored(), "the terminal was not restored"


def test_ctrl_c_restores_the_terminal(lesson):
    ends_by(lesson, 130, lambda t: t.type("\x03"))
    ends_by(lesson, 130, lambda t: t.type("\x03"), step=3)


def test_an_exception_restores_the_terminal(lesson):
    with Terminal([lesson], SAMPLE_LESSON="throws") as t:
        to_prediction(t)
        t.type("5")
        t.expect("[FAIL]")
        t.expect("[matmul] inner sizes differ: (2, 3) x")
        t.expect(BAR)
        t.type(NEXT)
        assert t.wait() == 1
        assert t.restored()


def test_ctrl_z_restores_the_terminal_and_fg_continues(lesson):
    with Terminal(["sh", "-c", f"set -m; '{lesson}'; stty -a; echo 'the shell'; fg >/dev/null; echo code $?"]) as t:
        at_step(t, 1)
        t.type("\x1a")
        shell = t.expect("the shell")
        assert re.search(r"[^-]icanon", shell) and re.search(r"[^-]echo ", shell), shell
        t.expect(BAR)
        t.type(NEXT)
        at_step(t, 2)
        t.type("q")
        t.expect("code 0")


def test_sigcont_during_quit_does_not_change_the_terminal(lesson):
    # LeakSanitizer stops all threads at the end and would never finish if SIGCONT arrives all the time.
    options = ":".join([*filter(None, [os.environ.get("ASAN_OPTIONS")]), "detect_leaks=0"])
    for _ in range(20):
        with Terminal([lesson], ASAN_OPTIONS=options) as t:
            t.expect("q quit")
            t.type("q")
            for _ in range(500):
                t.process.send_signal(signal.SIGCONT)
                t._read(0)
                if t.process.poll() is not None:
                    break
            t.wait()
            assert t.restored(), "the terminal was set for keys again"


def test_a_window_that_becomes_narrow(lesson):
    with Terminal([lesson]) as t:
        at_step(t, 1)
        t.type(NEXT)
        at_step(t, 2)
        t.resize(60)
        shown = len(t.lines())
        t.type("b")
        at_step(t, 1)
        assert max(map(len, t.lines()[shown:])) <= 60


def test_only_sixteen_colours_and_no_other_escapes(lesson):
    with Terminal([lesson]) as t:
        to_prediction(t)
        t.type("5")
        t.expect(BAR)
        escapes = set(re.findall(r"\x1b[^m]*m?", t.seen))
        assert escapes, "there are colours at a terminal"
        for escape in escapes:
            assert re.fullmatch(r"\x1b\[(0|1|(1;)?3[0-7])m", escape), repr(escape)


def test_no_color(lesson):
    with Terminal([lesson], NO_COLOR="1") as t:
        to_prediction(t)
        t.type("5")
        t.expect("Right")
        t.expect("[ok]")
        assert "\x1b" not in t.seen


def test_long_work_shows_a_bar(lesson):
    with Terminal([lesson, "--no-step"], SAMPLE_LESSON="slow") as t:
        t.expect("adding numbers")
        assert t.wait() == 0
        assert re.search(r"\r +\d+ % \(\d+ of \d+\): adding numbers", t.seen)


def does_not_wait(command, **options):
    with Terminal(command, **options) as t:
        assert t.wait() == 0
        assert "Answer: 5) 3." in t.seen, "predictions print their answer"
        assert "\x1b" not in t.seen and not re.search(r"\r[^\n]", t.seen), "plain"
        assert BAR not in t.seen


def test_never_waits_without_a_user(lesson):
    does_not_wait([lesson], stdin=subprocess.DEVNULL)
    does_not_wait([lesson], CI="true")
    does_not_wait([lesson], TERM="dumb")
    does_not_wait([lesson], TERM=None)
    does_not_wait([lesson, "--plain"])
    does_not_wait([lesson, "--no-step", "--color=never"])


def test_step_requires_a_terminal(lesson):
    result = subprocess.run([lesson, "--step"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                            env=clean_environment())
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "must be a terminal" in result.stderr, result.stderr
    for options, around, why in ((["--plain"], {}, "--plain"), (["--json"], {}, "--json"), ([], {"CI": "1"}, "CI"),
                                 ([], {"TERM": "dumb"}, "TERM")):
        with Terminal([lesson, "--step", *options], **around) as t:
            assert t.wait() == 2 and why in t.seen, t.seen


def pages(t):
    """Splits the output wherever the screen was cleared."""
    return t.seen.split("\x1b[H\x1b[2J")


def test_present_shows_one_step_per_screen(lesson):
    with Terminal([lesson, "--present"]) as t:
        at_step(t, 1)
        assert "== Lesson" in pages(t)[-1] and pages(t)[0] == "", "the title shares the screen with the first step"
        for step in (2, 3):
            t.type(PAGE_DOWN)
            t.expect(f"[{step}/5]")
            assert f"[{step - 1}/5]" not in pages(t)[-1]
            t.expect(BAR if step == 2 else "> ")
        t.type(PAGE_UP)
        t.expect("[2/5]")
        assert "[3/5]" not in pages(t)[-1]
        t.expect(BAR)
        t.type("q")
        assert t.wait() == 0 and t.restored()
    with Terminal([lesson, "--step"]) as t:
        at_step(t, 1)
        assert len(pages(t)) == 1, "only --present clears the screen"


def test_present_shows_answers_and_checks_on_request(lesson):
    for key in (NEXT, PAGE_DOWN, "\r", "s"):
        with Terminal([lesson, "--present"]) as t:
            at_step(t, 1)
            t.type(NEXT)
            at_step(t, 2)
            t.type(NEXT)
            t.expect("[3/5]")
            t.expect("SPACE shows the answer")
            t.expect("> ")
            assert "Answer" not in t.seen and "each mean" not in t.seen
            t.type(key)
            t.expect("Answer: 5) 3.  each mean is divided by 2")
            t.expect(BAR)
            assert "[ok]" not in t.seen
            t.type("c")
            t.expect("[ok]")
            t.expect(BAR)


def test_present_accepts_answers(lesson):
    with Terminal([lesson, "--present"], SAMPLE_LESSON="typed") as t:
        at_step(t, 1)
        t.type(NEXT)
        at_step(t, 2)
        t.type(NEXT)
        t.expect("SPACE shows the answer")
        t.expect("> ")
        t.type("1")
        t.expect("Not quite: 1) 1.  Nothing was cleared.")
        t.expect("> ")
        t.type("5")
        t.expect("Right: 5) 3.")
        t.expect(BAR)
        t.type(NEXT)
        t.expect("SPACE shows the answer; type a number, ENTER")
        t.expect("> ")
        t.type("2.5.\r")
        t.expect("Type a number such as -0.5 or 2/3, then ENTER")
        t.expect("> ")
        t.type("5 ")
        t.expect("Answer: 2.5.")
        t.expect(BAR)


def test_present_opens_the_picture_in_the_viewer(lesson):
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(folder + "/opened")
        with open(folder + "/xdg-open", "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$1" > "{folder}/opened"\n')
        os.chmod(folder + "/xdg-open", 0o755)
        work = folder + "/my work"
        around = {"TALLY_WORK": work, "PATH": f"{folder}:{os.environ['PATH']}"}
        with Terminal([lesson, "--present"], DISPLAY=":9", **around) as t:
            at_step(t, 1)
            t.type("g")
            t.expect(f"file://{folder}/my%20work/graphs/sample.svg")
            with open(folder + "/opened", encoding="utf-8") as opened:
                assert opened.read() == f"{work}/graphs/sample.svg\n"
            t.expect(BAR)
        with Terminal([lesson, "--present"], DISPLAY=None, WAYLAND_DISPLAY=None, **around) as t:
            at_step(t, 1)
            t.type("g")
            t.expect("my%20work/graphs/sample.svg")
            t.expect(BAR)  # appears only if the lesson does not wait for xdg-open, whose pipe is never read
            t.type("q")
            assert t.wait() == 0


def test_present_requires_a_terminal(lesson):
    result = subprocess.run([lesson, "--present"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                            env=clean_environment())
    assert result.returncode == 2 and "--present: cannot wait for keys" in result.stderr, result


if __name__ == "__main__":
    if not have_terminals():
        print("no pseudo-terminals on this machine")
        sys.exit(77)
    run_tests(sys.modules[__name__], os.path.abspath(sys.argv[1]))
