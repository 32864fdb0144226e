"""Shared by all parts of the runner: paths, exit codes, errors, output, and functions for text."""
import enum
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple


class Exit(enum.IntEnum):
    good, failed, usage, missing, build, io, skipped, interrupted, closed = 0, 1, 2, 3, 4, 5, 77, 130, 141


class Problem(Exception):
    """Ends the runner with a message and an exit code. An empty message prints nothing."""

    def __init__(self, message, code=Exit.io):
        super().__init__(message)
        self.message, self.code = message, code


def say(line):
    print(line, file=sys.stderr, flush=True)


def say_error(line):
    say(f"learn: {line}")


def out(text):
    """Prints a line on standard output without a buffer, so that an error is reported here and not at the end."""
    data = memoryview((text + "\n").encode("utf-8", "surrogateescape"))
    while data:
        try:
            data = data[os.write(1, data):]
        except BrokenPipeError:
            raise Problem("", Exit.closed) from None
        except OSError as error:
            raise Problem(f"cannot write to standard output: {error.strerror}") from None


# ---- paths ----

def work_folder(root):
    """The folder of the learner's files: in the checkout, or in the learner's home if the checkout cannot be written."""
    if chosen := os.environ.get("TALLY_WORK"):
        return Path(chosen)
    work = root / "work"
    if os.access(work if work.exists() else root, os.W_OK):
        return work
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    if "--quiet" not in sys.argv:
        say(f"this checkout cannot be written: your progress is kept in {data}/tally")
    return Path(data, "tally")


ROOT = Path(os.environ.get("TALLY_ROOT") or Path(__file__).resolve().parents[2])
BUILD = Path(os.environ.get("TALLY_BUILD") or ROOT / "build/release")
FIRST = ROOT / "build/first"  # the first lesson alone
WORK = work_folder(ROOT)
PARAMETERS = ("micro", "rate", "items", "steps", "ranks", "values")  # names of the parameters of lessons


def make_folder(path):
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise Problem(f"cannot make the folder {path}: {error.strerror}") from None


def write_whole(path, text):
    """Writes a new file and then renames it, so that the old file stays if writing fails."""
    path = Path(path)
    new = path.with_name(f"{path.name}.new") if path.is_file() or not path.exists() else path
    try:
        new.write_text(text, encoding="utf-8", errors="surrogateescape")
        if new != path:
            os.replace(new, os.path.realpath(path))
    except OSError as error:
        if new != path:
            new.unlink(missing_ok=True)
        raise Problem(f"cannot write {path}: {error.strerror}") from None


# ---- the terminal ----

class Mode(NamedTuple):
    not_waiting: str  # why no program can wait for keys; empty if waiting is possible
    waits: bool       # lessons wait for a key after each step
    width: int
    ascii: bool
    colour: bool

    def said(self, text):
        """A text in characters that the terminal has."""
        return re.sub(r"[^\x00-\x7f]", "?", text) if self.ascii else text


def window_width():
    """The columns of the terminal, or None if standard output is not a terminal."""
    try:
        return os.get_terminal_size(1).columns or None
    except OSError:
        return None


def mode_for(options):
    """Decides from the options and the environment how output looks. Lessons decide in the same way (course/kit/flags.cpp)."""
    environment = os.environ.get
    terminals = os.isatty(0) and os.isatty(1)
    reasons = ((options.json, "--json never waits"), (options.plain, "--plain never waits"),
               (options.quiet, "--quiet and --graph never wait"), (not terminals, "standard input and output must be a terminal"),
               (environment("CI"), "CI is set"), (environment("TERM", "") in ("", "dumb"), "TERM is dumb"))
    not_waiting = next((reason for holds, reason in reasons if holds), "")
    locale = next(filter(None, map(environment, ("LC_ALL", "LC_CTYPE", "LANG"))), "").lower()
    colour = not options.plain and not options.json and options.color != "never" and (
        options.color == "always" or not environment("NO_COLOR") and not not_waiting)
    width = options.width or min(max(window_width() or 80, 20), 80)
    return Mode(not_waiting, not not_waiting and not options.no_step, width, options.ascii or not re.search("utf-?8", locale), colour)


# ---- text ----

def one_line(text):
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffd\ud800-\udfff]", " ", text)


def many(count, one, more):
    return f"{count} {one if count == 1 else more}"


def cut(text):
    """Shortens a line to the width of the window, if there is one."""
    width = window_width() or len(text)
    return text if len(text) <= width else text[:width - 3].rstrip() + "..."


def wrapped(text, width, indent=0):
    """Breaks a line at blanks into lines of at most this width. All lines after the first are indented."""
    if len(text) <= width:
        return [text]
    width = max(width, 4)
    indent = min(indent, width // 2)
    lines, line = [], ""
    for word in re.findall(r" *[^ ]+", text):  # each word begins with its blanks
        if line.strip() and len(line) + len(word) > width:
            lines.append(line)
            line = ""
        if not line and lines:
            line, word = " " * indent, word.lstrip(" ")
        while len(line) + len(word) > width:  # a word that is longer than a line
            fits = width - len(line)
            lines.append(line + word[:fits])
            line, word = " " * indent, word[fits:]
        line += word
    return lines + [line]


def edit_distance(one, other):
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            diagonal, row[j] = row[j], min(diagonal + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def find_named(entries, which, kind, see):
    """Finds the entry with the number or slug `which`, or the only one with a slug that begins with `which` or contains it."""
    if re.fullmatch(r"-?\d+", which):
        numbers = {each.number: each for each in entries}
        if int(which) in numbers:
            return numbers[int(which)]
        raise Problem(f"no {kind} {int(which)}; there are {min(numbers)} to {max(numbers)} ({see})", Exit.usage)
    slugs = {each.slug: each for each in entries}
    if which in slugs:
        return slugs[which]
    candidates = [slug for slug in slugs if slug.startswith(which)] or [slug for slug in slugs if which in slug]
    if len(candidates) == 1:
        return slugs[candidates[0]]
    if candidates and which:
        raise Problem(f"'{which}' could be {', '.join(candidates)} ({see})", Exit.usage)
    nearest = min(slugs, key=lambda slug: edit_distance(which, slug))
    near = f"; the nearest is '{nearest}'" if 2 * edit_distance(which, nearest) <= len(which) else ""
    raise Problem(f"no {kind} '{which}'{near} ({see})", Exit.usage)
