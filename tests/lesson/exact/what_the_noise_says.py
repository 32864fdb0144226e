"""The expected squares, both estimates of a window, and the noise scale. The items are random; their seed is not repeated here."""

import math
from fractions import Fraction

from exact_values import roundings

TRACE = 1000


def check(run):
    scale, n = run.setting("items"), run.setting("micro")
    b, square = scale // 10, Fraction(TRACE, scale)
    run.equal("tr(Sigma) and |G|^2", run.shown("tr(Sigma), |G|^2"), [TRACE, square])
    # The square of d normal numbers has the variance 2 d s^4 + 4 |G|^2 s^2. All bounds are five standard deviations.
    run.close("|g|^2 of one item", run.shown("|g|^2 of one item"), square + TRACE, 5 * Fraction(math.sqrt(2 * TRACE + 4 * square)))

    sizes = run.table("mean |g|^2 of 100")
    run.equal("sizes", [row["items"] for row in sizes], [1, b, n * b, scale, 10 * scale])
    for row in sizes:
        count = row["items"]
        run.close("expected", row["expected"], square + Fraction(TRACE, count), Fraction(1, 10**9))
        deviation = math.sqrt((Fraction(2 * TRACE, count) + 4 * square) / count / 100)
        run.close("mean |g|^2", row["mean |g|^2 of 100"], square + Fraction(TRACE, count), 5 * Fraction(deviation))
    run.close("of b items", Fraction(run.answer("mean gradient g of b items")), square + Fraction(TRACE, b), Fraction(1, 10**9))

    first, whole = 8, 5  # the squares of the question, from 10 and 20 items
    solved = (first - whole) / (Fraction(1, 10) - Fraction(1, 20))
    rest = whole - solved / 20
    run.close("two equations", run.shown("tr(Sigma), |G|^2, noise scale"), [solved, rest, solved / rest], Fraction(1, 10**9))
    run.equal("the answer", Fraction(run.answer("In another training")), solved)

    # The window solves the same two equations for the squares that the lesson computes separately.
    first, whole = map(Fraction, run.shown("|g|^2: first, all"))
    trace = (first - whole) / (Fraction(1, b) - Fraction(1, n * b))
    bound = roundings(16 * n) * first * n * b
    exact, one, hundred = ([row["tr(Sigma)"], row["|G|^2"]] for row in run.table("tr(Sigma)", "|G|^2"))
    run.equal("true values", exact, [TRACE, square])
    run.close("one window", one, [trace, whole - trace / (n * b)], bound)

    def deviations(count):
        """Returns the relative standard deviations of the means of 100 estimates of tr(Sigma) and |G|^2 (docs/mathematics.md, 8.5)."""
        ratio = Fraction(scale, count)
        return (Fraction(math.sqrt((2 * (n + 1) + 4 / ratio) / ((n - 1) * TRACE))) / 10,
                Fraction(math.sqrt(4 * n * (ratio**2 + ratio) / ((n - 1) * TRACE))) / 10)

    of_trace, of_square = deviations(n * b)
    run.close("100 windows", hundred, [TRACE, square], [5 * TRACE * of_trace, 5 * square * of_square])
    counts = [scale // 25, scale // 5, 2 * scale]
    windows, ratios = run.table("its likely error", "below 0"), run.table("ratio of sums", "mean of ratios")
    run.equal("counts", [[row["items"] for row in rows] for rows in (windows, ratios)], [counts, counts])
    for row, ratio in zip(windows, ratios, strict=True):
        of_trace, of_square = deviations(row["items"])
        run.close("likely error", row["its likely error"], of_square, of_square / 10**6)
        run.close("tr(Sigma)", row["error of tr(Sigma)"], 0, 5 * of_trace)
        run.close("|G|^2", row["error of |G|^2"], 0, 5 * of_square)
        exact = (1 + Fraction(row["error of tr(Sigma)"])) / (1 + Fraction(row["error of |G|^2"])) * scale
        run.close("ratio of sums", ratio["ratio of sums"], exact, abs(exact) / 10**6)
        run.equal("noise scale", ratio["noise scale"], scale)
    # An estimate is below 0 with the probability 0.30 to 0.33. The bound is five standard deviations of 100 windows.
    run.close("below 0", windows[0]["below 0"], 32, 25)
    run.equal("no window of the largest is below 0", windows[2]["below 0"], 0)
