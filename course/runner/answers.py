"""Reads the learner's answers from a file, and appends answers to it. No program sends this file."""
import fcntl
import os
import re
from typing import NamedTuple

from common import Problem, make_folder, one_line, say_error

HEADING = "what\tof\tnumber\thow\twhich\tgiven\tsentence\tquestion"
KINDS = {"lesson": ("done", "begun", "failed"), "exercise": ("passed", "wrong", "error", "hint", "shown", "reset"),
         "question": ("right", "wrong", "skipped")}


class Answer(NamedTuple):
    """An answer to a question, an event of an exercise, or the result of a lesson."""
    what: str           # question, exercise, lesson
    of: str             # the slug of the lesson or exercise
    number: str = ""    # of a question, from 1; of a lesson that was begun: the step at which the learner left
    how: str = ""
    which: str = ""     # the letter of the option, or the name of the known mistake
    given: str = ""     # the text of the option, or the typed number
    sentence: str = ""  # the reply to a mistake
    question: str = ""  # the text of the question


def parsed(line):
    """The answer in a line, or None."""
    fields = line.split("\t")
    if len(fields) != 8 or any(field != one_line(field) for field in fields):
        return None
    answer = Answer(*fields)
    counts = re.fullmatch("[1-9][0-9]?", answer.number)
    numbered = {"question": counts, "lesson": not answer.number or counts and answer.how == "begun"}.get(answer.what, True)
    names = re.fullmatch("[a-z0-9_-]+", answer.of) and re.fullmatch("[a-z0-9_-]*", answer.which)
    return answer if names and numbered and answer.how in KINDS.get(answer.what, ()) else None


def read(path):
    """The answers in a file, and the lines that are not answers."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            lines = file.read().split("\n")
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror}") from None
    lines = lines[lines[0] == HEADING:len(lines) - (not lines[-1])]
    answers = [(line, parsed(line)) for line in lines]
    return [answer for _, answer in answers if answer], [line for line, answer in answers if not answer]


def append(path, text):
    """Appends all lines, or nothing if the disk is full. Locks the file against other runners."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.lseek(file, 0, os.SEEK_END)
            if size and os.pread(file, 1, size - 1) != b"\n":
                text = "\n" + text  # an interrupted write left an incomplete line
            data = ((HEADING + "\n" if not size else "") + text).encode("utf-8", "replace")
            if data and (written := os.write(file, data)) < len(data):
                if written:
                    os.ftruncate(file, size)
                raise OSError(28, os.strerror(28))  # ENOSPC
        finally:
            os.close(file)
    except OSError as error:
        raise Problem(f"cannot write {path}: {error.strerror}") from None


class Answers:
    """The answers of one learner."""

    def __init__(self, work):
        self.folder, self.path = work, os.path.join(work, "answers")
        self.all, broken = read(self.path)
        if broken:
            say_error(f"{self.path} has a line that is not an answer ('{one_line(broken[0][:40])}'): delete it")

    def add(self, *answers):
        """Appends answers. Without an answer, it only checks that the file can be written."""
        make_folder(self.folder)
        append(self.path, "".join("\t".join(map(one_line, answer)) + "\n" for answer in answers))
        self.all += answers

    def of(self, what, slug):
        return [each for each in self.all if each.what == what and each.of == slug]

    def done(self, lesson):
        """Whether the questions of a lesson are answered. A later failure withdraws this."""
        results = [each.how for each in self.of("lesson", lesson) if each.how != "begun"]
        return results[-1:] == ["done"]

    def begun(self, lesson):
        return bool(self.of("lesson", lesson) or self.of("question", lesson))

    def left_at(self, lesson):
        """The step at which the learner left the lesson, or 1."""
        results = self.of("lesson", lesson)
        return int(results[-1].number or 1) if results else 1

    def all_answered(self, lesson, from_its_start):
        """Whether all questions so far were answered, or `from_its_start` if no question was asked."""
        asked = self.of("question", lesson)
        last = max((int(each.number) for each in asked), default=0)
        return len({each.number for each in asked if each.how != "skipped"}) == last if last else from_its_start


def predicted(answers):
    """Counts questions over all runs: (asked, right at once, right at the second try, skipped)."""
    tries = {}
    for each in answers:
        if each.what == "question":
            tries.setdefault((each.of, each.number), []).extend([each.how] if each.how != "skipped" else [])
    return (len(tries), sum(how[:1] == ["right"] for how in tries.values()),
            sum(how[:1] == ["wrong"] and how[1:2] == ["right"] for how in tries.values()), sum(not how for how in tries.values()))
