"""Compares what a lesson shows with exact values. Each file exact/SLUG.py defines check(run), which tests call for every setting of the lesson.

Computations use Fraction and no code of tally. A bound counts the roundings of the lesson's floating-point numbers.
"""

import importlib.util
import json
from fractions import Fraction
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "exact"
U = Fraction(1, 2**24)  # half the distance from 1 to the next float
# The toy: six rows of three numbers, and three weights.
X = [[Fraction(number) for number in row.split()] for row in (
    "0.375 -1.25 0.5", "-1.125 0.5 -0.875", "0.625 1.0 -1.5", "-0.25 -0.375 0.25", "-1.5 0.75 -0.625", "-0.2466 -0.5010 -1.4250")]
W = [Fraction(1, 2), Fraction(-5, 4), Fraction(3, 4)]


def roundings(n):
    """Returns the largest relative error of a sum with n successive roundings."""
    return n * U / (1 - n * U)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def column_means(rows):
    return [sum(column) / len(rows) for column in zip(*rows)]


def column_bound(n, rows=None):
    """Returns the error bound of column_means() after n roundings."""
    return [roundings(n) * mean for mean in column_means([[abs(number) for number in row] for row in rows or X])]


def scaled(factor, numbers):
    return [factor * number for number in numbers]


def flat(numbers):
    return [one for number in numbers for one in flat(number)] if isinstance(numbers, list) else [numbers]


class Run:
    """The events of one run of a lesson."""

    def __init__(self, events, parameters, words):
        self.events, self.words = events, words
        self.settings = {parameter["name"]: parameter["usual"] for parameter in parameters}
        for word in words:
            name, _, text = word[2:].partition("=")
            if name in self.settings:
                self.settings[name] = [float(number) for number in text.split(",")]
        self.compared = 0

    def setting(self, name):
        """Returns the number, or the list of numbers, of a parameter."""
        numbers = [int(number) if number == int(number) else Fraction(str(number)) for number in self.settings[name]]
        return numbers[0] if len(numbers) == 1 else numbers

    def shown(self, name, step=None):
        """Returns the numbers that show(name, ...) has shown."""
        found = [event["values"] for event in self.events if event["event"] == "tensor" and event["name"] == name and step in (None, event["step"])]
        assert found, f"the lesson does not show '{name}'"
        assert len(found) == 1, f"the lesson shows '{name}' in several steps; name one"
        return found[0]

    def table(self, *columns):
        """Returns the rows of the table with these columns, each as a dictionary."""
        for event in self.events:
            if event["event"] == "table" and set(columns) <= set(event["columns"]):
                return [dict(zip(event["columns"], row, strict=True)) for row in event["values"]]
        raise AssertionError(f"the lesson has no table with the columns {columns}")

    def answer(self, question):
        """Returns the right option of the question whose text contains these words."""
        for event in self.events:
            if event["event"] == "prediction" and question in event["question"]:
                return event["options"][event["answer"] - 1]
        raise AssertionError(f"the lesson has no question with '{question}'")

    def close(self, name, got, exact, bound):
        """Checks that each number is within its bound of the exact number."""
        got, exact = flat(got), flat(exact)
        bounds = flat(bound) if isinstance(bound, list) else [bound] * len(exact)
        assert len(got) == len(exact) == len(bounds), f"{name}: {len(got)} numbers, {len(exact)} exact numbers and {len(bounds)} bounds"
        for number, true, allowed in zip(got, exact, bounds):
            self.compared += 1
            assert abs(Fraction(number) - true) <= allowed, f"{name}: {number} instead of {float(true)}, which differs by more than {float(allowed):.3g}"

    def equal(self, name, got, exact):
        self.close(name, got, exact, 0)


def faults(slug, output, parameters, words):
    """Compares one run, and returns what differs. `output` is the standard output of the lesson with --json."""
    path = FOLDER / f"{slug.replace('-', '_')}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run = Run([json.loads(line) for line in output.splitlines()], parameters, words)
    try:
        module.check(run)
    except AssertionError as error:
        return [str(error)]
    return [] if run.compared > 0 else [f"{path.name} compares no number"]
