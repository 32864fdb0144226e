"""The numbers of batches and of weights, and the equality of both trainings. Losses and accuracies are compared with each other."""

import re
from fractions import Fraction

LAYERS = [(784, 512), (512, 512), (512, 10)]


def batches(count, size):
    return -(-count // size)


def check(run):
    size = 64 // run.setting("micro")
    rows = run.table("images", "batches of 64", "the last has")
    for row in rows:
        count = row["images"]
        exact = [batches(count, 64), count - 64 * (batches(count, 64) - 1), batches(count, size)]
        run.equal(row[""], [row["batches of 64"], row["the last has"], row[f"micro-batches of {size}"]], exact)
    train, test = (int(row["images"]) for row in rows)

    numbers = [number for inputs, outputs in LAYERS for number in (inputs * outputs, outputs)]
    run.equal("each parameter", [row["numbers"] for row in run.table("parameter", "numbers")], numbers)
    run.equal("all parameters", run.shown("weights and biases"), sum(numbers))
    run.equal("the answer", Fraction(run.answer("How many weights and biases")), sum(numbers))

    said = [event["text"] for event in run.events if event["event"] == "sentence"]
    losses = [(Fraction(loss), int(seen)) for line in said for loss, seen in re.findall(r"^loss: (\S+) +\[ *(\d+)/", line)]
    half = len(losses) // 2
    assert half >= 3 and len(losses) == 2 * half, f"{len(losses)} losses"
    run.close("losses of both trainings", [loss for loss, _ in losses[:half]], [loss for loss, _ in losses[half:]], Fraction(2, 10**6))
    every = batches(train // 64, 1) // 3
    run.equal("where a loss is printed", [seen for _, seen in losses[:half]], [64 * (1 + k * every) for k in range(half)])
    run.close("the first loss is near ln 10", losses[0][0], Fraction("2.302585"), Fraction(1, 10))
    results = [line for line in said if "Accuracy" in line]
    assert len(results) == 2 and results[0] == results[1], f"the results of both trainings differ: {results}"

    run.equal("the distance of the weights", Fraction(run.shown("largest distance of two weights")), 0)
    run.equal("the share", run.shown("share of the last update"), Fraction(train % 64, 64))

    untrained, *trained = run.table("training", "accuracy")
    for row in (untrained, *trained):  # the accuracy is a whole number of images
        accuracy = Fraction(row["accuracy"].split()[0]) / 100
        run.close("right images", accuracy, Fraction(round(accuracy * test), test), Fraction(6, 10000))
        assert row["accuracy"] == trained[0]["accuracy"] or row is untrained, f"the accuracies differ: {trained}"
    exact = Fraction(trained[0]["loss of an image"])
    run.close("the loss in parts", [Fraction(row["loss of an image"]) for row in trained], [exact] * 3, Fraction(2, 10**6))
