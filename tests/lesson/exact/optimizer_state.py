"""Momentum, Adam, a schedule and a moving average, advanced once per update and once per call."""

from fractions import Fraction
from math import isqrt

from exact_values import W, X, column_means, roundings, scaled

RATE, BETA, BETA2 = Fraction(1, 10), Fraction(9, 10), Fraction(999, 1000)


def root(number):
    """Returns the square root, with an error below 1e-30."""
    return Fraction(isqrt(number.numerator * 10**60 // number.denominator), 10**30)


def momentum(gradients):
    w = v = Fraction(0)
    for g in gradients:
        v = BETA * v + g
        w -= RATE * v
    return w


def adam(gradients, count):
    """count(call) is Adam's t. The calls are counted from 1."""
    w = m = v = Fraction(0)
    for call, g in enumerate(gradients, 1):
        t = count(call)
        m, v = BETA * m + (1 - BETA) * g, BETA2 * v + (1 - BETA2) * g * g
        w -= RATE * m / (1 - BETA**t) / (root(v / (1 - BETA2**t)) + Fraction(1, 10**8))
    return w


def four_updates():
    """Four updates of the toy: clipped to 0.5, decay 0.5, momentum, half the rate after two updates, and an average."""
    full = column_means(X)
    g = scaled(Fraction(1, 2) / (root(sum(number * number for number in full)) + Fraction(1, 10**6)), full)
    w, buffer, average = list(W), [0] * 3, None
    for update in range(4):
        buffer = [BETA * b + c + Fraction(1, 2) * a for b, c, a in zip(buffer, g, w)]
        w = [a - RATE / (1 if update < 2 else 2) * b for a, b in zip(w, buffer)]
        average = w if average is None else [BETA * a + (1 - BETA) * b for a, b in zip(average, w)]
    return w, average


def check(run):
    n = run.setting("micro")
    zeros = [1 if call % n == 0 else 0 for call in range(1, 2 * n + 1)]
    run.close("with a gradient of 0", run.shown("change of w, with a gradient of 0"), -RATE * BETA, roundings(12))
    run.equal("without a gradient", run.shown("change of w, without a gradient"), 0)

    rows = run.table("momentum 0.9, two updates", "s")
    for row, exact in zip(rows, (momentum([1, 1]), momentum(zeros)), strict=True):
        run.close(row["momentum 0.9, two updates"], [row["s"], row["formula"]], [exact, exact], roundings(10 * n))
    assert abs(Fraction(run.answer("Where does s end")) - momentum(zeros)) <= Fraction(1, 200)

    exact = [adam([1, 1], lambda call: call), adam(zeros, lambda call: call), adam(zeros, lambda call: (call - 1) // n + 1)]
    # A call rounds fewer than 25 times. Roots exceed 0.2, so epsilon changes a step by less than 1e-7.
    run.close("Adam", [row["a"] for row in run.table("Adam, two updates", "a")], exact, roundings(25 * n) + Fraction(1, 10**7))
    assert run.answer("must t count so") == "neither works" and max(exact[1:]) < exact[0] - Fraction(1, 200)

    once, each = run.table("after 4 updates", "moving average of 1")
    rates = [RATE ** (1 + 4 // 2), RATE ** (1 + 4 * n // 2)]
    for row, rate, average in zip((once, each), rates, (1 - BETA**4, 1 - BETA ** (4 * n)), strict=True):
        run.close("moving average", row["moving average of 1"], average, roundings(16 * n))
        run.close("rate", float(row["learning rate"]), rate, rate / 100)
    assert abs(float(run.answer("is the learning rate after")) / float(rates[1]) - 1) < 1e-6

    # Each of the 4 updates rounds fewer than 30 times. The factors 2 and 3.5 bound |w| and the momentum.
    w, average = four_updates()
    for row in run.table("micro-batches", "moving average of w"):
        run.close("w", row["w"], w, 7 * roundings(120))
        run.close("its average", row["moving average of w"], average, 7 * roundings(120))
