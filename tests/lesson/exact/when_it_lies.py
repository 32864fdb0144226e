"""Batch norm of the whole batch and of its micro-batches: the statistics and the gradient of the gain."""

from decimal import Decimal, getcontext
from fractions import Fraction

from exact_values import dot, roundings

getcontext().prec = 60
XS = [Fraction(number) for number in (0, 2, 4, 6, 8, 10, 12, 14)]
TS = [Fraction(number) for number in ("1", "-2", "0.5", "3", "2", "-1", "-0.5", "1.5")]


def root(number):
    """The square root of a fraction, with 60 digits."""
    return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).sqrt())


def mean(numbers):
    return sum(numbers) / len(numbers)


def statistics(numbers):
    return mean(numbers), mean([(number - mean(numbers)) ** 2 for number in numbers])


def normalised(numbers):
    middle, variance = statistics(numbers)
    return [(number - middle) / root(variance) for number in numbers]


def gradient(xs, ts):
    """The gradient of the gain: the mean of t times the normalised x."""
    return dot(ts, normalised(xs)) / len(xs)


def check(run):
    n = run.setting("micro")
    xs, ts = XS[:2 * n], TS[:2 * n]
    pairs = [(xs[k:k + 2], ts[k:k + 2]) for k in range(0, 2 * n, 2)]
    full, micro = gradient(xs, ts), mean([gradient(*pair) for pair in pairs])
    middle, variance = statistics(xs)
    run.equal("x", run.shown("x"), xs)
    run.equal("t", run.shown("t"), ts)
    run.close("y", run.shown("y, x normalised"), normalised(xs), roundings(30) * 3)
    run.close("full batch", run.shown("gain.grad"), full, roundings(30) * 3)
    for row, (x, t) in zip(run.table("x", "x normalised"), pairs, strict=True):
        run.equal("pair", [row["x"], row["t"]], [x, t])
        run.equal("statistics", [row["mean"], row["variance"]], list(statistics(x)))
        run.equal("normalised", row["x normalised"], normalised(x))

    run.close("micro-batches", run.shown("gain.grad of the micro-batches"), micro, roundings(30) * 3)
    run.close("the answer", float(run.answer("mean of t times")), micro, Fraction(1, 10**4))
    run.close("the answer", float(run.answer("variance of all items")), variance, Fraction(1, 10**4))
    run.close("pooled mean", run.shown("mean of all items"), middle, roundings(12) * 14)
    run.close("pooled variance", run.shown("variance of all items"), variance, roundings(12) * 30)
    row, = run.table("full batch", "repaired")
    run.close("repaired", [row["full batch"], row["micro-batches"], row["repaired"]], [full, micro, full], roundings(30) * 3)

    run.close("s in one batch", run.shown("gradient of s, full batch"), 0, Fraction(1, 10**6))
    with_constants = dot(ts, xs) / len(xs) / root(variance)  # y = (s x - mean) / deviation
    run.close("s with constants", run.shown("gradient of s, repaired"), with_constants, roundings(40) * 10)
    run.close("both exact", run.shown("gradients of s and of the gain"), [0, full], roundings(40) * 3)

    running = Fraction(0)
    for x, _ in pairs:
        running = (9 * running + mean(x)) / 10
    run.close("in each pass", run.shown("updated in each forward pass"), running, roundings(20) * 2)
    run.close("in each window", run.shown("updated once, as in tally"), middle / 10, roundings(20))
    run.close("the answer", float(run.answer("keeps a running mean")), running, Fraction(1, 10**4))
