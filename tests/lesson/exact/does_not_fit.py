"""The line through two measurements of memory, the sum of three micro-batch gradients, and one update with it."""

from fractions import Fraction

from exact_values import W, X, column_bound, column_means, roundings, scaled


def check(run):
    # The equations F + 4 a = 14949 and F + a = 8681.
    per_item = Fraction(14949 - 8681, 3)
    fixed = 8681 - per_item
    run.equal("measured", [[row["items at once"], row["MB"]] for row in run.table("items at once", "MB")], [[4, 14949], [1, 8681]])
    for row, items in zip(run.table("fixed", "items"), (4, 1), strict=True):
        run.equal("items at once", row["items at once"], items)
        run.close("fixed", row["fixed"], fixed, Fraction(1, 2))
        run.close("items", row["items"], items * per_item, Fraction(1, 2))
        run.equal("together", row["MB together"], {4: 14949, 1: 8681}[items])
    run.close("answer", Fraction(run.answer("How many MB")), fixed, Fraction(1, 2))

    # A micro-batch gradient is the column mean of its two rows. w.grad is the sum so far, at most three such means.
    bound = scaled(3, column_bound(15))
    so_far = [0, 0, 0]
    for k, row in enumerate(run.table("rows", "w.grad afterwards")):
        so_far = [a + b for a, b in zip(so_far, column_means(X[2 * k:2 * k + 2]), strict=True)]
        run.close("w.grad", row["w.grad afterwards"], so_far, bound)
    run.close("three micro-batches", run.shown("three micro-batches"), so_far, bound)
    full = column_means(X)
    run.close("six rows", run.shown("six rows at once"), full, column_bound(15))

    run.equal("v before", run.shown("v before"), W)
    rounding = [a + roundings(4) * 2 for a in bound]
    for name, gradient in (("v after", so_far), ("v after an update with six rows", full)):
        run.close(name, run.shown(name), [a - g / 10 for a, g in zip(W, gradient, strict=True)], rounding)
