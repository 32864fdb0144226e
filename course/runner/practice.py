"""The commands for exercises: check, hint, reset, solution, score and dev-check. No command overwrites an edited file."""
import itertools
import json
import os
import re
import sys
import time

import build
import lessons
from answers import Answer, Answers, predicted
from common import PARAMETERS, WORK, Exit, Problem, cut, make_folder, many, mode_for, one_line, out, wrapped, write_whole
from exercises import find_exercises, named

FOLDER = WORK / "exercises"


def file_of(exercise):
    return FOLDER / f"{exercise.name}.cpp"


def content(exercise):
    try:
        return file_of(exercise).read_bytes()
    except OSError:
        return None


def shortened(path):
    """A path relative to the current folder, if it is inside."""
    relative = os.path.relpath(os.path.realpath(path))
    return str(path) if relative.startswith("..") else relative


class Practice:
    """The exercises and answers of a learner, with the options of a command."""

    def __init__(self, options):
        self.options, self.mode = options, mode_for(options)
        self.exercises, self.answers = find_exercises(), Answers(WORK)

    def events(self, exercise):
        return [each.how for each in self.answers.of("exercise", exercise.slug)]

    def passed(self, exercise):
        """Whether an exercise has passed since the last reset."""
        return "passed" in " ".join(self.events(exercise)).rpartition("reset")[2]

    def open(self):
        return [each for each in self.exercises if not self.passed(each)]

    def note(self, exercise, event, mistake="", sentence=""):
        self.answers.add(Answer("exercise", exercise.slug, how=event, which=mistake, sentence=sentence if mistake else ""))

    def say(self, *texts, indent=0):
        for text in filter(None, texts):
            out("\n".join(wrapped(" " * indent + self.mode.said(text), min(self.mode.width, 80), indent)))

    def tell(self, exercise, fields, *texts):
        """Prints the texts, or one object with --json."""
        if self.options.json:
            out(json.dumps({"v": 1, "exercise": exercise.number, "slug": exercise.slug, **fields}, ensure_ascii=False))
        else:
            self.say(*texts)

    def begin(self, exercise):
        """Writes the learner's file. Returns False if the learner already has one."""
        file, name = file_of(exercise), exercise.slug
        if file.exists():
            return False
        make_folder(FOLDER)
        write_whole(file, exercise.start)
        self.tell(exercise, {"judged": "begun", "file": str(file)},
                  f"Exercise {exercise.number}, {name}: {exercise.title} ({exercise.minutes} min; see ./learn run {exercise.lesson})",
                  f"{shortened(file)} is your file: open it, read the task, write the code and save.",
                  f"./learn check {name} checks it, with --watch whenever you save.")
        return True

    def check(self, which):
        exercise = named(self.exercises, which) if which else next(iter(self.open()), None)
        if not exercise:
            return self.say_all_passed()
        if self.options.watch and self.mode.not_waiting:
            raise Problem(f"check --watch waits for you to save: {self.mode.not_waiting}", Exit.usage)
        begun = self.begin(exercise)
        build.exercises()  # while the learner reads the task
        return self.watch(exercise) if self.options.watch else Exit.skipped if begun else self.check_once(exercise)

    def say_all_passed(self):
        out(f"All {len(self.exercises)} exercises have passed. ./learn check SLUG checks one again.")

    def watch(self, exercise):
        """Checks an exercise whenever its file has changed and then stayed the same, because an editor may save a file in steps."""
        seen = checked = None
        while True:
            before, seen = seen, content(exercise)
            if seen == before and seen not in (None, checked):
                checked = seen
                if self.check_once(exercise) == Exit.good:
                    if not self.open():
                        return self.say_all_passed()
                    exercise = self.open()[0]
                    self.begin(exercise)
                    checked = content(exercise)
                out(f"watching {shortened(file_of(exercise))} (Ctrl-C ends)")
            time.sleep(0.1)

    def check_once(self, exercise):
        from verdict import judge
        verdict = judge(exercise, file_of(exercise), FOLDER / ".built", self.options.seed)
        self.tell(exercise, verdict._asdict())
        if not self.options.json:
            self.show(exercise, verdict)
        event = {"todo": "", "passed": "passed", "wrong": "wrong"}.get(verdict.judged, "error")
        if event:
            self.note(exercise, event, verdict.mistake, verdict.sentence)
        return {"": Exit.skipped, "passed": Exit.good}.get(event, Exit.failed)

    def show(self, exercise, verdict):
        label, colour = {"passed": (" [ok] ", 32), "todo": (" [todo] ", 33)}.get(verdict.judged, (" [wrong] ", "1;31"))
        label = f"\033[{colour}m{label}\033[0m" if self.mode.colour else label
        if verdict.judged == "passed":
            out(f"{label}{exercise.slug}: {verdict.cases}")
            following = [f"Next: ./learn check {each.slug} ({each.title})" for each in self.open() if each is not exercise]
            solution = f"./learn solution {exercise.slug} shows our answer."
            return self.say(*map(one_line, verdict.trained), exercise.why, solution, *following[:1], indent=6)
        place = f", {verdict.where}" if verdict.judged == "does-not-compile" and verdict.where else ""
        out(label + shortened(file_of(exercise)) + place)
        self.say(one_line(verdict.parts), one_line(verdict.sentence), indent=2)
        if not self.options.quiet:
            if verdict.where and verdict.judged in ("wrong", "broken"):
                self.say(f"with {verdict.where}{':' if verdict.shown else '.'}", indent=2)
            for line in verdict.shown:
                out("    " + one_line(self.mode.said(line)))
            self.say(verdict.cases, f"./learn hint {exercise.slug} asks a question that helps.", indent=2)

    def hint(self, which):
        begun = [each for each in self.open() if file_of(each).exists()]
        if not which and not begun:
            raise Problem("hint: you have not begun an exercise; ./learn check begins the next one", Exit.usage)
        exercise = named(self.exercises, which) if which else begun[0]
        hints, number, last = exercise.hints, self.events(exercise).count("hint") + 1, ""
        if number <= len(hints):
            self.note(exercise, "hint")
        else:
            number, last = len(hints), f"That was the last one. ./learn solution {exercise.slug} --yes shows an answer."
        text = hints[number - 1]
        self.tell(exercise, {"hint": number, "of": len(hints), "text": text},
                  f"Hint {number} of {len(hints)} for {exercise.slug}: {text}", last)

    def reset(self, which):
        exercise = named(self.exercises, which)
        file, names = file_of(exercise), (f"{FOLDER}/kept/{exercise.name}.{number}.cpp" for number in itertools.count(1))
        kept = next(name for name in names if not os.path.exists(name))
        if self.begin(exercise):
            return Exit.good
        if not self.options.yes:
            if self.mode.not_waiting:
                raise Problem(f"cannot ask for a confirmation; add --yes: {self.mode.not_waiting}", Exit.usage)
            print(f"Begin {shortened(file)} again? Your text will be kept. [y/N] ", end="", flush=True)
            if sys.stdin.readline().strip() not in ("y", "Y", "yes"):
                out("Nothing was changed.")
                return Exit.usage
        make_folder(FOLDER / "kept")
        try:
            os.rename(file, kept)
            write_whole(file, exercise.start)
            self.note(exercise, "reset")
        except (OSError, Problem) as error:
            raise Problem(f"{error}; your text is in {kept if os.path.exists(kept) else file}") from None
        return self.tell(exercise, {"file": str(file), "kept": kept},
                         f"{shortened(file)} is reset; your text is in {shortened(kept)}.")

    def solution(self, which):
        exercise = named(self.exercises, which)
        slug, passed, answer = exercise.slug, self.passed(exercise), exercise.answer()
        if not passed and not self.options.yes:
            raise Problem(f"{slug} has not passed yet; ./learn hint {slug} helps, and --yes shows the answer", Exit.usage)
        if not passed:
            self.note(exercise, "shown")
        if not self.options.json:
            out(answer)
        self.tell(exercise, {"answer": answer, "why": exercise.why}, exercise.why)

    def score(self, _):
        self.score_of_lessons(lessons.find_lessons())
        for exercise in self.exercises:
            events = self.events(exercise)
            tries, hints, shown = sum(map(events.count, ("passed", "wrong", "error"))), events.count("hint"), "shown" in events
            state = "passed" if self.passed(exercise) else "begun" if file_of(exercise).exists() else "open"
            mistakes = dict.fromkeys(filter(None, (each.which for each in self.answers.of("exercise", exercise.slug))))
            how = ", ".join([many(tries, "try", "tries")] * bool(tries) + [many(hints, "hint", "hints")] * bool(hints) +
                            ["answer shown"] * shown)
            self.tell(exercise, {"state": state, "tries": tries, "hints": hints, "shown": shown, "mistakes": list(mistakes)},
                      f"{exercise.number:>3}  {exercise.slug:18}  {exercise.minutes:>3} min  {state:6}" + (how and f"  {how}"))
        if not self.options.json:
            out(f"{len(self.exercises) - len(self.open())} of {len(self.exercises)} passed")

    def score_of_lessons(self, course):
        """Prints how many lessons are done, and the questions that the learner should repeat."""
        done, count = sum(self.answers.done(each.slug) for each in course), len(course)
        asked, at_once, later, skipped = predicted(self.answers.all)
        asked -= skipped
        if self.options.json:
            return out(json.dumps({"v": 1, "lessons": count, "done": done, "questions": asked, "at_once": at_once, "later": later}))
        out(f"{done} of {count} lessons are done; {many(asked, 'question', 'questions')} answered, {at_once} of them at once, {later} at "
            "the second try")
        for lesson in course:
            questions = {}
            for each in self.answers.of("question", lesson.slug):
                questions.setdefault(int(each.number), []).append(each)
            for number, tries in sorted(questions.items()):
                if re.search("w(?!.*[^w]r)", "".join(each.how[0] for each in tries)):  # wrong, and not right at once later
                    out(cut(f"  to repeat: question {number} of {lesson.slug}: {one_line(tries[-1].question)}"))

    def dev_check(self, which):
        import dev_check
        chosen = [named(self.exercises, which)] if which else self.exercises
        build.exercises()
        return dev_check.check(chosen, self.options.seed)


def run(command, which, options):
    given = [f"--{name} {getattr(options, name)}" for name in PARAMETERS if getattr(options, name) is not None]
    if given:
        raise Problem(f"{' '.join(given)} is for lessons; exercises have no parameters", Exit.usage)
    return getattr(Practice(options), command.replace("-", "_"))(which) or Exit.good
