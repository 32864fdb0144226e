"""Finds, lists and runs the lessons, and shows a card at the end of a lesson."""
import json
import os
import re
import signal
import termios
import time
import tty

import build
import child
from answers import Answer, Answers, parsed, predicted
from common import BUILD, FIRST, PARAMETERS, ROOT, WORK, Exit, Problem, cut, find_named, mode_for, out, say_error, wrapped


class Lesson:
    """The page of a lesson, lessons/NN_slug.md, as course/kit/page.hpp describes it."""

    def __init__(self, path):
        self.path, self.name = path, f"lesson_{path.stem}"  # the name of the program
        number, _, slug = path.stem.partition("_")
        self.number, self.slug = int(number), slug.replace("_", "-")
        page = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        title = re.search(r"^# Lesson \d+: (.+)", page, re.M)
        header = re.search(r"^(\d+) minutes alone, (\d+) in class(?:.+\n?)*", page, re.M)
        if not title or not header:
            raise Problem(f"{path}: expected '# Lesson {self.number}: TITLE', and a line such as '10 minutes alone, 20 in class'")
        self.title, self.minutes, self.in_class = title[1].strip(), int(header[1]), int(header[2])
        self.before, self.exercises = re.findall(r"\[(.*?)\]\(", header[0]), re.findall("`./learn check (.*?)`", header[0])
        remember = page.partition("\n## Remember\n")[2].partition("\n## ")[0].strip()
        parts = {kind: " ".join(text.split()) for kind, text in re.findall(
            r"^(In PyTorch: |Try it: |(?=\S))(.+?)(?=\n\n|\n(?:In PyTorch|Try it): |\Z)", remember, re.M | re.S)}
        self.rule = parts.get("", "").replace("`", "")
        suggestion, command = re.fullmatch(r"(.*?)(?:`(\./learn .*?)`.*)?", parts.get("Try it: ", "")).groups("")
        self.suggestion, self.command = suggestion[:1].upper() + suggestion[1:].strip(), command

    @property
    def program(self):
        programs = [folder / "lessons" / self.name for folder in (BUILD, FIRST)]
        return next((each for each in programs if each.exists()), programs[0])

    @property
    def steps(self):
        """The number of lines in the source that begin with a call of step() or ask()."""
        return len(re.findall(r"^ *(?:step|ask)\(", self.path.with_suffix(".cpp").read_text(encoding="utf-8"), re.M))

    def described(self, status):
        """The line of ./learn list --json (docs/lesson-events.schema.json)."""
        return json.dumps({"v": 1, "lesson": self.number, "slug": self.slug, "event": "lesson", "title": self.title,
                           "minutes": self.minutes, "steps": self.steps, "in_class": self.in_class, "after": self.before,
                           "exercises": self.exercises,
                           "rule": self.rule, "suggestion": self.suggestion, "try": self.command, "status": status}, ensure_ascii=False)


def find_lessons():
    folder = ROOT / "lessons"
    found = [Lesson(path) for path in sorted(folder.glob("[0-9][0-9]_*.md"))]
    if not found:
        raise Problem(f"no lessons in {folder}")
    return found


def arguments(options, **changed):
    """The options of a lesson's program."""
    options = {**vars(options), **changed}
    flags = ("step", "no_step", "present", "json", "plain", "ascii", "quiet", "yes")
    words = [f"--{name.replace('_', '-')}" for name in flags if options[name]]
    names = ("device", "color", "width", "seed", "digits", "threads", "products", *PARAMETERS)
    return [*words, f"--from={options['start'] or 1}", *(f"--{name}={options[name]}" for name in names if options[name] is not None)]


def named(lessons, which):
    return find_named(lessons, which, "lesson", "./learn list")


def report_signal(lesson, number):
    say_error(f"lesson {lesson.slug} was ended by signal {number} ({signal.strsignal(number)})")
    return Exit.failed


def wants_next():
    """Waits for a key at the end of a lesson. SPACE begins the next lesson, and any other key leaves."""
    before = termios.tcgetattr(0)
    try:
        tty.setcbreak(0, termios.TCSAFLUSH)  # discards earlier keys, but none that answers the prompt
        os.write(1, b"\n SPACE next lesson  q leave")
        return os.read(0, 16) in (b" ", b"\r", b"\n", b"\x1b[C", b"\x1bOC")
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)
        os.write(1, b"\n")


class Course:
    """Runs lessons and records the learner's answers."""

    def __init__(self, options):
        self.options, self.mode = options, mode_for(options)
        self.lessons, self.answers = find_lessons(), Answers(WORK)
        changed = any(getattr(options, name) is not None for name in PARAMETERS)
        self.records = self.mode.waits and not options.present and not changed  # a learner answers, and not a class

    def open(self):
        return [each for each in self.lessons if not self.answers.done(each.slug)]

    def list(self):
        following = self.open()[:1]
        for each in self.lessons:
            status = ("done" if self.answers.done(each.slug) else "next" if each in following else
                      "begun" if self.answers.begun(each.slug) else "open")
            after = f"after {', '.join(each.before)}" if each.before else ""
            out(each.described(status) if self.options.json else
                cut(f"{each.number:3}  {each.slug:20}  {each.minutes:3} min, in class {each.in_class:3}  {status:5}  {after}".rstrip()))
        if not self.options.json:
            out("./learn score lists the exercises.")
        return Exit.good

    def next_or_all(self):
        """Runs the next lesson that is not done, from the step that the learner left; or all lessons, if none may wait for a learner."""
        if self.mode.not_waiting == "TERM is dumb":  # a learner is there, but this terminal has no step mode
            say_error("TERM is dumb: one lesson, and nothing waits; ./learn run all runs all of them")
        elif self.mode.not_waiting:
            return self.run(self.lessons)
        code = Exit.good
        for lesson in self.open():
            start = min(self.answers.left_at(lesson.slug), lesson.steps) if self.records and not self.options.start else 1
            if start > 1:
                out(f"Lesson {lesson.slug} goes on at step {start}. ./learn run {lesson.slug} begins at step 1.")
            code = self.run([lesson], start)
            if code == Exit.good and self.records and self.answers.done(lesson.slug) and self.open() and wants_next():
                continue
            if code != Exit.skipped:  # a lesson that cannot run here is left out
                return code
        if code != Exit.skipped:
            out(f"All {len(self.lessons)} lessons are done. ./learn run WHICH shows one again; ./learn list shows their names.")
        return code

    def help(self, which):
        lesson = named(self.lessons, which)
        build.lessons([lesson])
        return child.run([str(lesson.program), "--help"]).code

    def graph(self, which):
        lesson, file = named(self.lessons, which), self.options.file
        build.lessons([lesson], self.options.device)
        result = child.run([str(lesson.program), *arguments(self.options), f"--graph={file}"])
        if result.signal:
            return report_signal(lesson, result.signal)
        if result.code == Exit.good and not self.options.json and not self.options.quiet:
            out(f"wrote {file}")
        return result.code

    def run(self, chosen, start=1):
        """Runs lessons, and returns 1 if one failed, or 77 if none could run."""
        build.lessons(chosen, self.options.device)
        outcomes, log = [], []
        for lesson in chosen:
            if self.records:
                self.answers.add()  # fails before the learner answers questions
                left_at = self.answers.left_at(lesson.slug)
                if len(chosen) == 1 and not self.options.start and 1 == start < left_at <= lesson.steps:
                    out(f"You left this lesson at step {left_at}: --from {left_at} goes on there.")
            began = time.monotonic()
            following = self.lessons[self.lessons.index(lesson) + 1:] if self.mode.waits else []
            with build.in_background(following):
                words = arguments(self.options, start=self.options.start or start)
                result = child.run([str(lesson.program), *words], "report")
            lines = result.text.splitlines()
            given = list(filter(None, map(parsed, lines))) if self.mode.waits else []
            if self.records and given:
                self.answers.add(*given)
            if result.signal:
                report_signal(lesson, result.signal)
            if result.asked or result.signal in (signal.SIGTERM, signal.SIGHUP):
                return 128 + (result.asked or result.signal)
            if result.signal:
                end = {"outcome": "FAIL", "steps": 0, "checks": 0, "detail": f"ended by signal {result.signal}"}
            elif not lines or not lines[-1].startswith("{"):
                return result.code  # the lesson has printed why it could not run or write
            else:
                end = json.loads(lines[-1])
            if self.records:
                self.record(lesson.slug, end)
            if end["outcome"] == "quit":
                return result.code
            if len(chosen) == 1 and end["outcome"] == "ok" and not self.options.json and not self.options.quiet:
                self.show_card(lesson, given)
            outcomes.append(end["outcome"])
            log += self.log(lesson, end, time.monotonic() - began)
        code = Exit.failed if "FAIL" in outcomes else Exit.good if "ok" in outcomes else Exit.skipped
        if self.options.json:
            return code
        if self.options.quiet or len(chosen) > 1:
            out("\n".join(log if self.options.quiet else ["", *log]))
        if len(chosen) > 1:
            counts = "".join(f"  {outcomes.count(each)} {each}" for each in ("ok", "FAIL", "skip") if each == "ok" or each in outcomes)
            out(f"summary: {len(outcomes)} lessons{counts}   seed {self.options.seed}   exit {int(code)}")
        return code

    @staticmethod
    def log(lesson, end, seconds):
        outcome = f"[{end['outcome']}]"
        head = f"lesson {lesson.number:02} {lesson.slug:18} {end['steps']:2} steps  {end['checks']:2} checks  {outcome:6}  "
        if end["outcome"] == "ok":
            return [f"{head}{seconds:.2f} s"]
        lines = [head + end["detail"]]
        if end["outcome"] == "FAIL":
            place = f"{end['file']}:{end['line']}   " if end.get("file") else ""
            step = f" --from {end['failed_step']}" if end.get("failed_step", 0) > 1 else ""
            lines.append(f"  {place}again: ./learn run {lesson.slug}{end.get('with', '')}{step}")
        return lines

    def record(self, slug, end):
        """Records the result of a lesson. A failed check withdraws an earlier "done"."""
        done, how, left_at = self.answers.done(slug), "", ""
        if end["outcome"] == "FAIL":
            how = "failed"
        elif end["outcome"] == "ok" and self.answers.all_answered(slug, self.options.start in (None, 1)):
            how = "" if done else "done"
        elif end["outcome"] != "skip" and not done:
            how = "begun"
            left_at = str(end["steps"]) if end["outcome"] == "quit" and end["steps"] > 1 else ""
            if self.answers.begun(slug) and not left_at and self.answers.left_at(slug) == 1:
                return
        if how:
            self.answers.add(Answer("lesson", slug, left_at, how))

    def show_card(self, lesson, given):
        """Prints the rule, the learner's result and the next lesson: the next one that is not done, or else the first."""
        still_open = self.open()
        done = len(self.lessons) - len(still_open)
        full = 20 * done // len(self.lessons)
        later = [each for each in still_open if each.number > lesson.number] or [each for each in still_open if each is not lesson]
        asked, at_once, second, skipped = predicted(given)
        result = (f"{at_once} of {asked} at once" + (f", {second} more at the second try" if second else "") +
                  (f", {skipped} skipped" if skipped else "")) if asked else ""
        commands = [f"./learn check {each}" for each in lesson.exercises]
        card = [("The rule", lesson.rule, ""), ("Predicted", result, ""), ("Try", lesson.suggestion, lesson.command),
                *(("Write it", command, "") for command in commands if command != lesson.command)]
        if given and not self.answers.done(lesson.slug):
            card.append(("Open", f"Questions were skipped: ./learn run {lesson.slug} asks them again.", ""))
        card.append(("So far", f"{'#' * full}{'-' * (20 - full)}  {done} of {len(self.lessons)} lessons", ""))
        card.append(("Next", f"./learn run {later[0].slug} ({later[0].minutes} min, in class {later[0].in_class})" if later else
                     "That was the last lesson. ./learn score shows your results.", ""))
        out("")
        for head, text, command in card:
            if not text:
                continue
            lines = wrapped(f"{head:12}{self.mode.said(text)}", self.mode.width, 12)
            if command and len(lines[-1]) + 1 + len(command) <= self.mode.width:
                lines[-1] += " " + command
            elif command:
                lines.append(" " * 12 + command)  # not wrapped, so that it can be copied
            out("\n".join(lines))
