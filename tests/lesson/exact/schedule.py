"""The updates and losses of each epoch of the schedule, and w after the interrupted trainings."""

import re
from fractions import Fraction

from exact_values import roundings

ITEMS = [Fraction(x) for x in range(1, 9)]
RATE = Fraction(2, 1000)


class Training:
    """SGD with momentum. N is the number of micro-batches in an update, each with one item."""

    def __init__(self, momentum=Fraction(0)):
        self.momentum, self.w, self.velocity, self.window, self.updates = momentum, Fraction(0), Fraction(0), [], 0

    def train(self, first, last):
        for micro in range(first, last):
            n = 8 if micro // 8 < 4 else 2
            if micro % 8 == 0 and len(self.window) >= n:
                self.update()
            self.window.append(2 * ITEMS[micro % 8] ** 2 * (self.w - 2))
            if len(self.window) == n:
                self.update()
        return self

    def update(self):
        self.velocity = self.momentum * self.velocity + sum(self.window) / len(self.window)
        self.w -= RATE * self.velocity
        self.window = []
        self.updates += 1

    def loss(self):
        return sum((self.w * x - 2 * x) ** 2 for x in ITEMS) / 8


def check(run):
    training, epochs, before = Training(), {}, Fraction(102)
    for epoch in range(5):
        updates = training.updates
        training.train(8 * epoch, 8 * epoch + 8)
        epochs[epoch] = [8 if epoch < 4 else 2, training.updates - updates, before, training.loss()]
        before = training.loss()
    rows = [row for event in run.events if event["event"] == "table" and "loss before" in event["columns"] for row in event["values"]]
    assert [row[0] for row in rows] == [0, 1, 2, 3, 3, 4], "the epochs of the two tables"
    for epoch, n, updates, *losses in rows:
        run.equal("N and the updates", [n, updates], epochs[epoch][:2])
        run.close("the losses", losses, epochs[epoch][2:], roundings(100) * 102)
    run.equal("the answer", Fraction(run.answer("does epoch 3 make")), epochs[3][1])
    said = next(event["text"] for event in run.events if event["event"] == "sentence" and "multiplies the loss" in event["text"])
    factors = [Fraction(number) for number in re.findall(r"by (\d\.\d+)", said)]
    run.close("the factors", factors, [epochs[epoch][3] / epochs[epoch][2] for epoch in (3, 4)], Fraction(1, 10000))

    for event in run.events:
        if event["event"] == "table" and event["columns"] == ["epoch", "N"]:
            run.equal("N of the schedule {{4, 2}}", event["values"], [[0, 1], [3, 1], [4, 2], [5, 2]])

    momentum = Fraction(9, 10)
    stopped = Training(momentum).train(0, 21)
    run.equal("the window", run.shown("micro-batches in the window"), [len(stopped.window)])
    run.close("w.grad", run.shown("w.grad"), [sum(stopped.window)], roundings(60) * 400)
    run.close("w", run.shown("w"), [stopped.w], roundings(60) * 4)
    whole = Training(momentum).train(0, 40)
    stopped.window = []
    stopped.train(21, 40)
    for row, one in zip(run.table("after epoch 4", "w"), (whole, whole, stopped), strict=True):
        run.equal(row["after epoch 4"], row["updates"], one.updates)
        run.close(row["after epoch 4"], row["w"], one.w, roundings(200) * 10)
