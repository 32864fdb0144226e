"""Implements the protocol of JAX and PyTorch, which read and answer lines. ./learn bench --peers starts them."""
import array
import json
import sys


class Problem:
    """Reads the numbers that all frameworks begin with: a line of JSON with the shapes, and then the arrays."""

    def __init__(self, path):
        with open(path, "rb") as file:
            for name, value in json.loads(file.readline()).items():
                setattr(self, name, value)  # rows, micro and rate, if the kind of work has them

            def read(kind, shape):
                count = 1
                for extent in shape:
                    count *= extent
                numbers = array.array(kind)
                numbers.fromfile(file, count)
                return shape, numbers

            self.arrays = [read("f", shape) for shape in self.arrays]
            self.labels = read("i", self.labels) if self.labels else None


def serve(name, kinds):
    """Answers lines until the input ends. Each value of `kinds` makes an object with run(times) and numbers()."""
    print(f"ready {name}", flush=True)
    works = {}
    for line in sys.stdin:
        what, number, *rest = line.rstrip("\n").split(" ", 2)
        if what in kinds:
            works[number] = kinds[what](Problem(rest[0]))
        elif what == "run":
            works[number].run(int(rest[0]))
        elif what == "numbers":
            with open(rest[0], "wb") as file:
                for numbers in works[number].numbers():
                    array.array("f", numbers).tofile(file)
        elif what == "mebibytes":
            print(f"{works[number].mebibytes()}", flush=True)
            continue
        elif what == "forget":
            del works[number]
        print("done", flush=True)
