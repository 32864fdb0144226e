"""The weight after each call of step(), for means and sums, and after epochs that leave two micro-batches over."""

from fractions import Fraction

from exact_values import roundings

ITEMS = [Fraction(x) for x in range(1, 9)]
RATE, SMALL_RATE = Fraction(2, 100), Fraction(2, 1000)


def gradient(w, items):
    """The gradient of the mean of (w x - 2 x)^2."""
    return sum(2 * x * x * (w - 2) for x in items) / len(items)


def two_epochs(tail):
    """Returns the updates and the left-over micro-batches of one epoch, and w after one and two epochs. N = 3."""
    w, window, updates, ends = Fraction(0), [], 0, []
    for _ in range(2):
        for x in ITEMS:
            window.append(gradient(w, [x]))
            if len(window) == 3:
                w, window, updates = w - SMALL_RATE * sum(window) / 3, [], updates + 1
        if tail == "scale" and window:
            w, window, updates = w - SMALL_RATE * sum(window) / len(window), [], updates + 1
        if tail == "drop":
            window = []
        ends.append((updates, len(window), w))
    return *ends[0], ends[1][2]


def check(run):
    n = int(run.setting("micro"))
    each = 8 // n
    full = -RATE * gradient(0, ITEMS)
    run.equal("the gradient", run.shown("gradient"), [gradient(0, ITEMS)])
    run.close("the full batch", run.shown("w after the update"), [full], roundings(3) * full)

    so_far = Fraction(0)
    for k, row in enumerate(run.table("x", "w.grad afterwards")):
        items = ITEMS[k * each:(k + 1) * each]
        so_far += gradient(0, items)
        last = k == n - 1
        run.equal("x", row["x"], items)
        assert row["updated"] == ("yes" if last else "no"), f"micro-batch {k}: updated is {row['updated']}"
        if not last:  # integers and halves, which floats represent exactly
            run.equal("w.grad", row["w.grad afterwards"], so_far)
        run.close("w", row["w afterwards"], full if last else 0, roundings(4) * full)

    for row, count, size, w in zip(run.table("micro-batches", "reduction"), (1, n, n), (8, each, each), (full, full, n * full), strict=True):
        run.equal("micro-batches", [row["micro-batches"], row["items in each"]], [count, size])
        run.close(row["reduction"], row["w"], w, roundings(4) * w)
    run.close("the answer", Fraction(run.answer("divides nothing")), n * full, Fraction(5, 1000))

    for row, tail in zip(run.table("end of the epoch", "left open"), ("carry", "scale", "drop", "carry"), strict=True):
        updates, left, w, later = two_epochs(tail)
        run.equal(tail, [row["updates"], row["left open"]], [updates, left])
        run.close(tail, [row["w"], row["w an epoch later"]], [w, later], roundings(60) * 4)
