"""The gradients of micro-batches, their sum, and the steps of both trainings."""

from fractions import Fraction

from exact_values import W, X, column_bound, column_means, dot, roundings, scaled


def error(v):
    """The mean squared error of a fit whose solution is (1, 1, 1)."""
    return sum((dot(row, v) - sum(row)) ** 2 for row in X) / 6


def train(factor):
    """Twenty steps of SGD with `factor` times the gradient of the error."""
    v = list(W)
    for _ in range(20):
        gradient = column_means([scaled(2 * (dot(row, v) - sum(row)), row) for row in X])
        v = [a - Fraction(3, 10) * factor * g for a, g in zip(v, gradient)]
    return error(v)


def check(run):
    n = run.setting("micro")
    each, full = 6 // n, column_means(X)
    loss = dot(full, W)
    run.close("loss", run.shown("loss"), loss, roundings(12) * 2)
    run.close("full batch", run.shown("full batch"), full, column_bound(9))
    run.close("sum", run.shown("sum of the micro-batches"), scaled(n, full), scaled(n, column_bound(15)))
    run.close("ratios", run.shown("sum / full batch"), [n, n, n], n * roundings(1000))
    run.close("mean of the losses", run.shown("mean of the micro-losses"), loss, roundings(12) * 2)

    so_far = [0, 0, 0]
    for k, row in enumerate(run.table("rows", "this micro-batch")):
        micro = X[k * each:(k + 1) * each]
        so_far = [a + b for a, b in zip(so_far, column_means(micro))]
        run.close("this micro-batch", row["this micro-batch"], column_means(micro), column_bound(9, micro))
        run.close("w.grad", row["w.grad afterwards"], so_far, scaled(n, column_bound(15)))
        run.close("loss of a micro-batch", row["loss"], dot(column_means(micro), W), roundings(12) * 4)

    moves = run.table("w", "moved by")
    for row, factor in ((moves[1], 1), (moves[2], n)):
        run.close(row[""], row["moved by"], scaled(Fraction(-factor, 10), full), scaled(n, column_bound(64)))

    run.close("the start", run.shown("error before both trainings"), error(W), roundings(30) * 10)
    run.close("divided", run.shown("divided by N, after 20 updates"), train(1), train(1) / 1000)
    run.close("not divided", run.shown("not divided, after 20 updates"), train(n), train(n) / 1000)
