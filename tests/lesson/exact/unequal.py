"""Gradients of unequal micro-batches, the error of their mean, and the largest error of all 32 ways to cut six rows."""

from fractions import Fraction

from exact_values import X, column_bound, column_means, roundings, scaled

DIGITS = Fraction(1, 2 * 10**6)  # rounding to six printed digits


def cut_rows(sizes):
    micros, first = [], 0
    for size in sizes:
        micros.append(X[first:first + size])
        first += size
    return micros


def mean_of_means(sizes):
    return column_means([column_means(micro) for micro in cut_rows(sizes)])


def all_cuts():
    def cuts(rows):
        return [[]] if rows == 0 else [[size, *rest] for size in range(1, rows + 1) for rest in cuts(rows - size)]
    return cuts(6)


def covariance(a, b):
    mean_a, mean_b = sum(a) / Fraction(len(a)), sum(b) / Fraction(len(b))
    return sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)) / len(a)


def printed(run, name, text, exact, bound):
    run.close(name, [Fraction(number) for number in text.split()], exact, [one + DIGITS for one in bound])


def check(run):
    first = run.setting("items")
    sizes = [first, 6 - first]
    full, micros, of_means = column_means(X), cut_rows(sizes), mean_of_means(sizes)
    g = [column_means(micro) for micro in micros]
    bound = scaled(3, column_bound(12))  # a row counts at most 1/2, three times as much as 1/6

    own = run.table("size b", "gradient g of its mean")
    run.equal("sizes", [row["size b"] for row in own], sizes)
    for row, micro, gradient in zip(own, micros, g, strict=True):
        run.close("g", row["gradient g of its mean"], gradient, column_bound(9, micro))

    both = run.table("", "gradient")
    printed(run, "full batch", both[0]["gradient"], full, bound)
    printed(run, "mean of means", both[1]["gradient"], of_means, bound)
    factors = [mean / true for mean, true in zip(of_means, full, strict=True)]
    run.close("ratio", run.shown("ratio of the two gradients"), factors, [2 * b / abs(true) for b, true in zip(bound, full)])
    assert len(set(factors)) > 1 and run.answer("divide each loss by 2") == "it has another direction"

    so_far = [0, 0, 0]
    for row, size, gradient in zip(run.table("share of the rows"), sizes, g, strict=True):
        so_far = [a + Fraction(size, 6) * b for a, b in zip(so_far, gradient)]
        run.close("share", row["share of the rows"], Fraction(size, 6), roundings(1))
        run.close("w.grad", row["w.grad afterwards"], so_far, column_bound(15))
    assert so_far == full
    assert abs(Fraction(run.answer("By which number do you multiply")) - Fraction(first, 6)) < Fraction(1, 1000)

    error = [mean - true for mean, true in zip(of_means, full, strict=True)]
    formula = [-covariance(sizes, list(column)) / 3 for column in zip(*g)]
    assert error == formula
    for row in run.table("", "for each component"):
        printed(run, row[""], row["for each component"], error, scaled(4, bound))

    for name in ("mean of the three means", "mean of the six rows"):
        run.close(name, run.shown(name), [Fraction(4, 6)], roundings(12))
    run.equal("count", run.shown("rows that the window counted"), 6)
    run.close("window", run.shown("gradient of the window"), full, column_bound(15))

    cuts = all_cuts()
    assert len(cuts) == 32
    errors = {tuple(cut): max(abs(a - b) for a, b in zip(mean_of_means(cut), full)) for cut in cuts}
    worst = max(errors, key=errors.get)
    assert worst == (1, 5)
    run.close("largest error", run.shown("largest error of a mean of means"), errors[worst], 2 * max(bound))
    run.equal("its sizes", run.shown("sizes with this error"), [1, 5])
