"""The contrastive loss of all pairs and of micro-batches of two, with the gradients at z, u, a and b."""

from decimal import Decimal, getcontext
from fractions import Fraction

from exact_values import roundings

getcontext().prec = 50
XS = [Fraction(number) for number in ("0.5", "-1", "2", "0.25", "-0.75", "1.25", "-1.5", "0.75")]
YS = [Fraction(number) for number in ("0.4", "-0.6", "1.5", "0.1", "-0.5", "0.9", "-1.2", "0.3")]
A, B = Fraction(7, 10), Fraction(-3, 10)


def decimal(number):
    return Decimal(number.numerator) / Decimal(number.denominator)


def exp(number):
    return Fraction(decimal(number).exp())


def contrast(xs, ys):
    """The mean loss, the gradients at z and at u, and those of a and b."""
    z, u, count = [A * x for x in xs], [B * y for y in ys], len(xs)
    loss, dz, du = Fraction(0), [Fraction(0)] * count, [Fraction(0)] * count
    for i in range(count):
        powers = [exp(z[i] * other) for other in u]
        loss += (Fraction(decimal(sum(powers)).ln()) - z[i] * u[i]) / count
        for j in range(count):
            slope = (powers[j] / sum(powers) - (i == j)) / count  # the derivative with respect to z[i] u[j]
            dz[i] += slope * u[j]
            du[j] += slope * z[i]
    return loss, dz, du, sum(d * x for d, x in zip(dz, xs)), sum(d * y for d, y in zip(du, ys))


def check(run):
    n = run.setting("micro")
    xs, ys = XS[:2 * n], YS[:2 * n]
    loss, dz, du, da, db = contrast(xs, ys)
    parts = [contrast(xs[k:k + 2], ys[k:k + 2]) for k in range(0, 2 * n, 2)]
    micro_loss, micro_a, micro_b = (sum(part[i] for part in parts) / n for i in (0, 3, 4))
    bound = roundings(100) * 2  # products, exponentials and logarithms below 2
    run.close("loss", run.shown("loss"), loss, bound)
    run.close("full batch", run.shown("a.grad and b.grad"), [da, db], bound)
    for row, exact in zip(run.table("pairs", "loss"), ((loss, da, db), (micro_loss, micro_a, micro_b)), strict=True):
        run.close(row["pairs"], [row["loss"], row["a.grad"], row["b.grad"]], list(exact), bound)
    percent = run.answer("losses of micro-batches").split()[1]
    run.close("percent", int(percent), 100 * micro_loss / loss, Fraction(1, 2))
    run.close("z.grad", run.shown("z.grad"), dz, bound)
    for row, exact in zip(run.table("full batch", "repaired"), ((da, micro_a), (db, micro_b)), strict=True):
        run.close(row[""], [row["full batch"], row["micro-batches"], row["repaired"]], [exact[0], exact[1], exact[0]], bound)
