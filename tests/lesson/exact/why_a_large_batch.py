"""The variance of batch gradients, the accumulated gradient, and four updates. The items are random; their seed is not repeated here."""

from fractions import Fraction

from exact_values import roundings

SIGMA_SQUARED = 4
# The measured ratios have a standard deviation of sqrt(2 / 4000) = 1 / sqrt(2000) < 1 / 44. Five of them are the bound.
ALLOWED = Fraction(5, 44)


def check(run):
    b, rate = run.setting("items"), Fraction(run.setting("rate"))
    sizes = [1, b // 16, b // 4, b]
    run.equal("w", run.shown("w"), [3, -1])

    some = run.table("items", "gradient")
    run.equal("sizes of the first table", [row["items"] for row in some], sizes)
    for row, size in zip(some, sizes, strict=True):
        # A gradient is within six standard deviations, 6 * 2 / sqrt(size), of the true one; (144 / size) is the square.
        for got, true in zip(row["gradient"], (2, -3), strict=True):
            run.close("squared distance from the true gradient", (Fraction(got) - true) ** 2, 0, Fraction(144, size))

    noise = run.table("measured variance", "ratio")
    for row, size in zip(noise, sizes, strict=True):
        measured, expected = Fraction(row["measured variance"]), Fraction(SIGMA_SQUARED, size)
        run.equal("items", row["items"], size)
        run.equal("4 / items", row["4 / items"], expected)
        run.close("measured variance", measured, expected, expected * ALLOWED)
        run.close("ratio", row["ratio"], measured / expected, roundings(4))
        run.close("spread", Fraction(row["spread"]) ** 2, measured, roundings(4) * measured)

    at_once, in_four = run.shown("the large batch at once"), run.shown("four micro-batches, accumulated")
    run.equal("the first row of items is the same batch", at_once, some[-1]["gradient"])
    run.close("accumulated", in_four, [Fraction(g) for g in at_once], 2 * roundings(b + 6) * 16)
    expected = Fraction(SIGMA_SQUARED, b)
    run.close("variance of the accumulated", run.shown("accumulated: variance of 2000 new batches"), expected, expected * ALLOWED)

    for update, row in enumerate(run.table("updates", "v"), 1):
        run.equal("updates", row["updates"], update)
        run.close("v", row["v"], (1 - rate) ** update, roundings(3 * update))
    run.close("answer", Fraction(run.answer("after four")), (1 - rate) ** 4, Fraction(1, 20000))
