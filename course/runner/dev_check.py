"""Checks the exercises: the answers pass, the known mistakes are recognised, and no hint shows a line of an answer."""
import os
import resource
import signal
import tempfile
import time
from pathlib import Path

from common import Exit, Problem, make_folder, out, say_error, write_whole
from exercises import INCLUDE
from verdict import judge

MOST_SECONDS, MOST_LINES, LEAST_CODE = 5, 40, 12  # CPU time for an answer, lines of a starting file, characters of a line


def text_faults(exercise):
    start, hints, answer = exercise.start, exercise.hints, exercise.answer()
    said = "\n".join((*hints, *exercise.mistakes.values()))
    code = [line.lstrip(" ") for line in answer.split("\n") if len(line.lstrip(" ")) >= LEAST_CODE]
    faults = ((INCLUDE not in start, "task.cpp does not include given.hpp"),
              (start.count("\n") > MOST_LINES, f"the file has {start.count(chr(10))} lines; {MOST_LINES} are the limit"),
              (not 3 <= len(exercise.mistakes) <= 9, f"it knows {len(exercise.mistakes)} mistakes; 3 to 9 are required"),
              (len(hints) != 3, "it does not have three hints: a question, a pointer, almost the code"),
              (not hints[0].endswith("?"), "its first hint is not a question"),
              *((line in said and line not in start, f"a hint or a message contains a line of the answer: {line}") for line in code),
              (answer in start, "the file that a learner gets is the answer"))
    return [fault for found, fault in faults if found]


def seconds_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check_one(exercise, folder, seed):
    """Checks an exercise in its own process, and prints the faults. Returns whether there are none."""
    folder, slowest = Path(folder, exercise.name), 0
    file, before = folder / f"{exercise.name}.cpp", exercise.start.partition(INCLUDE)[0]
    try:
        make_folder(folder)
        faults = text_faults(exercise)
        for name in ("the beginning", "right", *exercise.mistakes):
            began = seconds_of_children()
            write_whole(file, exercise.start if name == "the beginning" else f"{before}{INCLUDE}\n{exercise.answer(name)}")
            verdict = judge(exercise, file, folder, seed)
            seconds = seconds_of_children() - began
            slowest = max(slowest, seconds)
            if seconds > MOST_SECONDS:
                faults.append(f"{name} took {seconds:.1f} s; {MOST_SECONDS} are the limit")
            good = {"the beginning": verdict.judged == "todo" or verdict.judged == "wrong" and verdict.mistake,
                    "right": verdict.judged == "passed"}
            if not good.get(name, (verdict.mistake, verdict.sentence) == (name, exercise.mistakes.get(name))):
                judged = f"{verdict.judged}, {verdict.mistake or 'no known mistake'}"
                faults += [f"{name} is judged {judged}: {verdict.sentence} {verdict.where}", *("  " + line for line in verdict.shown)]
    except Problem as problem:
        if problem.message:  # empty after a signal
            say_error(f"{exercise.slug}: {problem.message}")
        return False
    head = f"exercise {exercise.number:02} {exercise.slug:18} {len(exercise.mistakes) + 2:2} answers  "
    out("\n  ".join((f"{head}{'[FAIL]' if faults else '[ok]':6}  slowest {slowest:.1f} s", *faults)))
    return not faults


def start(exercise, folder, seed):
    pid = os.fork()
    if pid:
        return pid
    failed = True
    try:
        failed = not check_one(exercise, folder, seed)
    finally:
        os._exit(failed)  # also after a signal


def check(exercises, seed):
    began, running, failed = time.monotonic(), set(), 0
    with tempfile.TemporaryDirectory(prefix="tally-dev-check-") as folder:
        try:
            waiting = list(exercises)
            while waiting or running:
                if waiting and len(running) < os.cpu_count():
                    running.add(start(waiting.pop(0), folder, seed))
                    continue
                pid, status = os.wait()
                running.discard(pid)
                failed += status != 0
        finally:
            for pid in running:
                os.kill(pid, signal.SIGTERM)
    mistakes = sum(len(each.mistakes) for each in exercises)
    out(f"{len(exercises)} exercises, {mistakes} known mistakes, {failed} FAIL, {time.monotonic() - began:.0f} s")
    return Exit.failed if failed else Exit.good
