"""Clipped gradients, the number of times that a penalty counts, and weight decay."""

from fractions import Fraction
from math import isqrt

from exact_values import W, X, column_means, roundings, scaled

ROUNDED = 2 * roundings(16)  # a component is smaller than 2, and clipping a sum rounds it fewer than 16 times


def length(g):
    """Returns the length, with an error below 1e-30."""
    squares = sum(number * number for number in g)
    return Fraction(isqrt(squares.numerator * 10**60 // squares.denominator), 10**30)


def clipped(g, limit):
    """PyTorch multiplies by limit / (length + 1e-6) if this factor is below 1."""
    return scaled(min(1, limit / (length(g) + Fraction(1, 10**6))), g)


def added(gradients):
    return [sum(column) for column in zip(*gradients)]


def once(gradients, limit):
    return clipped(scaled(Fraction(1, len(gradients)), added(gradients)), limit)


def each_time(gradients, limit, divisor):
    """Returns the running sum, and its lengths before each clipping."""
    total, lengths = [0] * len(gradients[0]), []
    for g in gradients:
        total = added([total, scaled(Fraction(1, divisor), g)])
        lengths.append(length(total))
        total = clipped(total, limit)
    return total, lengths


def mean_of_clipped(gradients, limit):
    return scaled(Fraction(1, len(gradients)), added([clipped(g, limit) for g in gradients]))


def check(run):
    n = run.setting("micro")
    half, short, two = Fraction(1, 2), Fraction(3, 20), [[Fraction(2), Fraction(0)], [Fraction(0), Fraction(2)]]
    toy = [column_means(X[k:k + 2]) for k in (0, 2, 4)]

    run.close("clipped once", run.shown("clipped once"), once(two, 1), ROUNDED)
    run.close("the full batch", run.shown("the full batch, clipped"), once(two, 1), ROUNDED)
    assert abs(float(once(two, 1)[0]) - float(run.answer("first component of the clipped gradient"))) < 0.01
    for limit, name, gradients, divisor in ((Fraction(1), "limit 1", two, 1), (half, "limit 0.5", toy, 3)):
        ways = [once(gradients, limit), each_time(gradients, limit, divisor)[0], mean_of_clipped(gradients, limit)]
        for row, gradient in zip(run.table(name, "gradient"), ways, strict=True):
            run.close(row[name], row["gradient"], gradient, ROUNDED)
    lengths = each_time(toy, half, 3)[1]
    run.close("lengths", run.shown("length before each clipping"), lengths, ROUNDED)
    assert lengths[0] < half and lengths[1] < half < lengths[2]
    assert run.answer("differ from clipping once") == "it is the same"

    luck = run.table("nothing divided", "each loss divided")
    for row, (gradients, limit) in zip(luck, ((two, Fraction(1)), (toy, half), (toy, short)), strict=True):
        run.close("nothing divided", row["nothing divided"], each_time(gradients, limit, 1)[0], ROUNDED)
        run.close("each loss divided", row["each loss divided"], each_time(gradients, limit, len(gradients))[0], ROUNDED)
    run.close("right at 0.15", run.shown("right at 0.15"), once(toy, short), ROUNDED)

    # Each gradient rounds at most 24 times and is at most 0.8 n. The table divides its error by 0.05 = 0.1 w[0].
    times = [n, 1, Fraction(n, 6), 1]
    run.close("penalty", [row["and counts"] for row in run.table("and counts")], times, roundings(24) * 16 * n)
    assert run.answer("How many times does the penalty") == str(n) and W[0] / 10 == Fraction(1, 20)

    kept = Fraction(19, 20)
    for row, w in zip(run.table("w, from 1", "formula"), (kept, kept**n), strict=True):
        run.close(row["step()"], [row["w, from 1"], row["formula"]], [w, w], roundings(4 * n))
    assert abs(Fraction(run.answer("How much of w is left")) - kept**n) <= Fraction(1, 1000)
