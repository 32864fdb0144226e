"""The article's numbers, and the bytes of an update: 4 layers of 32 x 32 weights in float32, trained by Adam."""

from fractions import Fraction

WEIGHTS = 4 * 32 * 32 * 4
ROW = 32 * 4  # bytes of one item's values in one layer


def whole(number):
    return int(number + Fraction(1, 2))


def check(run):
    n = run.setting("micro")
    item = Fraction(14949 - 8681, 3)
    fixed = 8681 - item
    for row, total, items in zip(run.table("MB", "of items", "fixed"), (14949, 8681, 6775), (4 * item, item, 6775 - fixed), strict=True):
        run.equal("the article", [row["MB"], row["of items"], row["fixed"]], [total, whole(items), whole(fixed)])
    longer = [row["% longer"] for row in run.table("Time", "% longer")][1:]
    run.equal("% longer", longer, [whole(100 * (Fraction(6603, 5782) - 1)), whole(100 * (Fraction(8547, 6603) - 1))])

    # The input and the results of four layers are saved.
    lines = run.table("bytes after", "saved activations")
    run.equal("weights", [row["weights"] for row in lines], [WEIGHTS] * 4)
    run.equal("gradients", [row["gradients"] for row in lines], [0, 0, WEIGHTS, WEIGHTS])
    run.equal("activations", [row["saved activations"] for row in lines], [0, 5 * 64 * ROW, 0, 0])

    # At the peak, in backward, an item also has the square of the result, and its gradient.
    rows = run.table("items", "peak, bytes")
    A, (F, four) = run.shown("A, bytes of an item"), run.shown("F, and 4 x the weights")
    run.equal("A", A, 7 * ROW)
    run.equal("4 x the weights", four, 4 * WEIGHTS)
    assert four <= F < four + 2048, f"F is {F}"
    for row, items in zip(rows, (64, 128, 256, 512), strict=True):
        run.equal("a line", [row["items"], row["peak, bytes"], row["F + items x A"], row["residual"]], [items, F + items * A, F + items * A, 0])
    assert run.answer("How many bytes") == str(F + 256 * A)

    smaller = run.table("Adam", "saved", "in all")
    for row, parts in zip(smaller, (1, n), strict=True):
        held = [row[name] for name in ("weights", "gradients", "Adam", "saved")]
        run.equal("at the peak", held, [WEIGHTS, WEIGHTS, 2 * WEIGHTS, 5 * (64 // parts) * ROW])
        run.equal("a row adds up", row["other"], row["in all"] - sum(held))
        # The items themselves, the square and its gradient, and less than 2 KiB of sums and counts.
        run.close("other", row["other"], 64 * ROW + 2 * (64 // parts) * ROW + 1024, 1024)
    run.equal("less, in %", run.shown("less, in %"), whole(100 - Fraction(100 * smaller[1]["in all"], smaller[0]["in all"])))
