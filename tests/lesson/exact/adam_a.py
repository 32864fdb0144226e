"""The sums of squares and the first steps of Adam and AdamA, and ten updates of AdamW."""

from decimal import Decimal, getcontext
from fractions import Fraction

from exact_values import W, X, column_means, dot, roundings, scaled

getcontext().prec = 60
EPS, RATE = Fraction(1, 10**8), Fraction(1, 10)


def root(number):
    """The square root of a fraction, with 60 digits."""
    return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).sqrt())


def rounded(number):
    """The nearest multiple of 2^-120, so that fractions stay short."""
    return Fraction(round(number * 2**120), 2**120)


def first_step(gradients, squares):
    """The first step in units of the rate: the sum of the gradients, divided by the root of the squares."""
    return sum(gradients) / (root(squares) + EPS)


def adam_w(updates):
    """AdamW with the rate 0.1 and the decay 0.5 on the error of the fit."""
    w, m, v = list(W), [Fraction(0)] * 3, [Fraction(0)] * 3
    for t in range(1, updates + 1):
        gradient = column_means([scaled(2 * (dot(row, w) - sum(row)), row) for row in X])
        m = [rounded((9 * a + g) / 10) for a, g in zip(m, gradient)]
        v = [rounded((999 * a + g * g) / 1000) for a, g in zip(v, gradient)]
        w = [rounded(a * (1 - RATE / 2) - RATE * (b / (1 - Fraction(9, 10)**t)) / (root(c / (1 - Fraction(999, 1000)**t)) + EPS))
             for a, b, c in zip(w, m, v)]
    return w


def check(run):
    n = run.setting("micro")
    for row in run.table("micro-batch", "after free_grad()"):
        run.equal("bytes", [row["bytes of gradients after backward()"], row["after free_grad()"]], [4 * 1000 * 250, 0])

    opposite = [Fraction(1, 2), Fraction(-1, 2)]
    adam, adam_a = run.table("g = +1/2, -1/2")
    run.equal("Adam's square of 0", adam["v / 0.001"], 0)
    run.close("AdamA's squares", adam_a["v / 0.001"], sum(g * g for g in opposite), roundings(8))
    run.close("no step", [adam["w"], adam_a["w"]], [0, 0], roundings(4))
    run.equal("the answer", float(run.answer("+1/2 and -1/2")), Fraction(1, 2))

    agree = [Fraction(1, n)] * n
    adam, adam_a = run.table(f"g = 1/{n}, {n} times")
    run.close("squares", [adam["v / 0.001"], adam_a["v / 0.001"]], [1, Fraction(1, n)], roundings(4 * n))
    run.close("Adam", adam["step / rate"], first_step(agree, Fraction(1)), roundings(20 + n))
    run.close("AdamA", adam_a["step / rate"], first_step(agree, Fraction(1, n)), n * roundings(20 + n))
    run.equal("the answer", float(run.answer("AdamA's first step")) ** 2, n)

    for name in ("AdamW, 10 updates", "AdamA, 10 updates"):
        run.close(name, run.shown(name), adam_w(10), Fraction(1, 10**5))
