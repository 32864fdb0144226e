"""The steps of SGD and Adam for one gradient, the norms, and both trainings."""

from decimal import Decimal, getcontext
from fractions import Fraction

from exact_values import W, X, column_bound, column_means, dot, roundings, scaled

getcontext().prec = 60
RATE = Fraction(1, 10)


def root(number):
    """The square root of a fraction, with 60 digits."""
    return Fraction((Decimal(number.numerator) / Decimal(number.denominator)).sqrt())


def rounded(number):
    """The nearest multiple of 2^-120, so that fractions stay short."""
    return Fraction(round(number * 2**120), 2**120)


class Adam:
    """Adam for one weight. step(g) returns the change of the weight."""

    def __init__(self, eps=Fraction(1, 10**8)):
        self.m, self.v, self.t, self.eps = Fraction(0), Fraction(0), 0, eps

    def averages(self):
        return self.m / (1 - Fraction(9, 10)**self.t), self.v / (1 - Fraction(999, 1000)**self.t)

    def step(self, g, rate=RATE):
        self.m, self.v = rounded((9 * self.m + g) / 10), rounded((999 * self.v + g * g) / 1000)
        self.t += 1
        m, v = self.averages()
        return -rate * m / (root(v) + self.eps)


def sign(number):
    return 1 if number > 0 else -1


def error(v):
    return sum((dot(row, v) - sum(row))**2 for row in X) / 6


def train(factor, change):
    """30 updates. change(j, g) returns the change of weight j for the gradient g."""
    v = list(W)
    for _ in range(30):
        gradient = column_means([scaled(2 * (dot(row, v) - sum(row)), row) for row in X])
        v = [rounded(a + change(j, factor * g)) for j, (a, g) in enumerate(zip(v, gradient))]
    return error(v)


def adam_training(factor):
    adams = [Adam() for _ in W]
    return train(factor, lambda j, g: adams[j].step(g))


def check(run):
    n = run.setting("micro")
    full = column_means(X)
    sgd, adam = run.table("SGD, rate 0.2", "w moved by"), run.table("Adam, rate 0.1", "w moved by")
    for rows in (sgd, adam):
        for row, factor in zip(rows, (1, n), strict=True):
            run.close("w.grad", row["w.grad"], scaled(factor, full), scaled(n, column_bound(15)))
    for row, factor in zip(sgd, (1, n)):
        run.close("SGD", row["w moved by"], scaled(Fraction(-factor, 5), full), scaled(n, column_bound(64)))
    for row in adam:  # the gradients are 10^6 times eps, and w is rounded
        run.close("Adam", row["w moved by"], [-RATE * sign(g) for g in full], Fraction(1, 10**6))

    by_hand, weight = Adam(), Fraction(0)
    for row, g in zip(run.table("average m", "average v"), (Fraction(1, 2), Fraction(1, 2), Fraction(-1)), strict=True):
        weight += by_hand.step(g)
        m, v = by_hand.averages()
        run.close("averages", [row["g"], row["average m"], row["average v"]], [g, m, v], Fraction(1, 10**12))
        run.close("m / sqrt(v)", row["m / sqrt(v)"], m / root(v), Fraction(1, 10**12))
        run.close("the weight", row["the weight"], weight, roundings(60))

    eps = Fraction(1, 10**8)
    for row in run.table("step / rate", "step / rate for 4 g"):
        g = Fraction(row["g"])
        for name, slope in (("step / rate", g), ("step / rate for 4 g", 4 * g)):
            run.close(name, row[name], slope / (slope + eps), roundings(20))
    run.close("g = 1e-8", run.shown("step / rate for g = 1e-8"), Fraction(1, 2), roundings(20))
    run.equal("near-eps", float(run.answer("for a gradient of 4 g")), Fraction(0.8))

    norm = root(sum(g * g for g in full))
    for row, factor, moved in zip(run.table("norm of w.grad"), (1, n), (-1, 1), strict=True):
        run.close("norm", row["norm of w.grad"], factor * norm, roundings(20) * n)
        run.close("with decay", row["a weight of 1 after one step"], 1 + moved * RATE, Fraction(1, 10**6))

    losses = run.table("loss after 30 updates")
    for row, column, factor in ((0, f"mean of {n}", 1), (0, f"sum of {n}", n)):
        exact = train(factor, lambda j, g: Fraction(-3, 10) * g)
        run.close(f"SGD, {column}", losses[row][column], exact, exact / 1000)
    for column, factor in ((f"mean of {n}", 1), (f"sum of {n}", n)):
        run.close(f"Adam, {column}", losses[1][column], adam_training(factor), Fraction(1, 10**5))
