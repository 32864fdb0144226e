"""What a side in Python is told and answers, a line each; ./learn bench --peers starts them."""
import array
import itertools
import json
import sys


class Problem:
    """The MLP, the pictures and the labels that all sides begin with: a line of JSON, and then the numbers."""

    def __init__(self, path):
        with open(path, "rb") as file:
            for name, value in json.loads(file.readline()).items():
                setattr(self, name, value)  # rows, micro, rate, sizes

            def read(kind, count):
                numbers = array.array(kind)
                numbers.fromfile(file, count)
                return numbers

            self.parameters = []
            for inputs, outputs in itertools.pairwise(self.sizes):
                self.parameters += [((inputs, outputs), read("f", inputs * outputs)), ((outputs,), read("f", outputs))]
            self.pictures = (self.rows, self.sizes[0]), read("f", self.rows * self.sizes[0])
            self.labels = (self.rows,), read("i", self.rows)


def serve(name, work):
    """work(problem) has run(updates), and numbers(): the gradients, and then the weights after an update."""
    print(f"ready {name}", flush=True)
    works = {}
    for line in sys.stdin:
        what, number, *rest = line.rstrip("\n").split(" ", 2)
        if what == "mlp":
            works[number] = work(Problem(rest[0]))
        elif what == "run":
            works[number].run(int(rest[0]))
        elif what == "numbers":
            with open(rest[0], "wb") as file:
                for numbers in works[number].numbers():
                    array.array("f", numbers).tofile(file)
        elif what == "forget":
            del works[number]
        print("done", flush=True)
