"""Finds the exercises, and reads their texts from the sources in exercises/NN_slug."""
import re
from pathlib import Path

from common import BUILD, ROOT, Problem, find_named

INCLUDE = '#include "given.hpp"\n'


def text_of(path):
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror}") from None


class Exercise:
    """An exercise in a folder such as exercises/07_the_tail. The learner's file is the_tail.cpp, wherever the exercise stands."""

    def __init__(self, folder):
        self.folder = folder
        number, _, self.name = folder.name.partition("_")
        self.number, self.slug = int(number), self.name.replace("_", "-")
        self.check, self.start, self.given, mistakes = (
            text_of(folder / name) for name in ("check.cpp", "task.cpp", "given.hpp", "mistakes.txt"))
        self.minutes = int(self.field("minutes", r"(\d+)"))
        (self.title,), (self.lesson,), (self.why,), self.hints = map(self.texts, ("title", "lesson", "why", "hints"))
        self.functions = re.findall(r"^HAND_IN\((\w+)\)", self.given, re.M)
        # The name of each known mistake has a sentence. Below it, each line begins with a blank, + or -.
        self.mistakes = {name: " ".join(sentence.split()) for name, sentence in re.findall(
            r"^== (.*)\n((?:(?![ +-]|== ).*\n)*)", mistakes, re.M)}

    def field(self, name, pattern):
        """The part of a field in check.cpp that matches a pattern."""
        found = re.search(rf"\.{name} =\s*{pattern}", self.check)
        if not found:
            raise Problem(f"{self.folder}/check.cpp: expected a field '.{name} = ...'")
        return found[1]

    def texts(self, name):
        """The texts in a field of check.cpp. C++ joins adjacent literals to one text."""
        literals = self.field(name, r'\{?((?:\s*"(?:[^"\\\n]|\\.)*"\s*,?)+)')
        joined = re.sub(r'(?<!\\)"\s*"', "", literals)
        return [re.sub(r"\\(.)", r"\1", text) for text in re.findall(r'"((?:[^"\\]|\\.)*)"', joined)]

    def answer(self, name="right"):
        """The code of the right answer or of a known mistake. The build writes the code of mistakes."""
        path = self.folder / "check.cpp" if name == "right" else BUILD / f"exercises/mistakes/{self.folder.name}.mistakes.hpp"
        found = re.search(rf"\nnamespace {name} {{\n(.*?\n)}}  // namespace {name}\n", text_of(path), re.S)
        if not found:
            raise Problem(f"{path} has no answer '{name}'")
        return found[1]


def find_exercises():
    found = [Exercise(path.parent) for path in sorted((ROOT / "exercises").glob("[0-9][0-9]_*/check.cpp"))]
    if not found:
        raise Problem(f"no exercises in {ROOT / 'exercises'}")
    return found


def named(exercises, which):
    """Finds an exercise by slug, part of a slug, folder or number."""
    return {each.folder.name: each for each in exercises}.get(which) or find_named(exercises, which, "exercise", "./learn score")
