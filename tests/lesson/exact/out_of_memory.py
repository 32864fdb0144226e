"""Free memory in pieces, the sizes that a search by halving finds, and the bytes of activations and gradients."""

from fractions import Fraction


def halved(fits):
    size = 64
    while size > fits:
        size //= 2
    return size


def retries(size):
    return (64 // size).bit_length() - 1


def check(run):
    fits, n = run.setting("items"), run.setting("micro")
    blocks = [number % 2 == 0 for number in range(10)]  # is it free?
    run.equal("free", run.shown("KiB free"), 64 * sum(blocks))
    longest = max(len(piece) for piece in "".join("x " [not free] for free in blocks).split())
    run.equal("largest piece", run.shown("KiB in the largest piece"), 64 * longest)
    assert run.answer("largest block") == str(64 * longest)

    assert run.answer("Which size does it find") == str(halved(fits))
    for row, enough in zip(run.table("budget, bytes", "found"), (64, fits, 5), strict=True):
        run.equal("found", [row["enough for"], row["found"], row["retries"]], [enough, halved(enough), retries(halved(enough))])
        assert row["weights as with 64"] == "yes"

    for row, side in zip(run.table("side", "weights"), (32, 16, 8), strict=True):
        per_pixel = (3 + 8 + 8) * 4  # the image, and the results of two layers with eight channels
        run.equal("an image", [row["side"], row["saved an item, bytes"], row["by the side squared"]], [side, per_pixel * side * side, per_pixel])
        run.equal("weights", row["weights"], 8 * 3 * 9 + 8 * 8 * 9)
    run.equal("half the side", run.shown("half the side, times"), Fraction(1, 4))

    gradients, layer = 16 * 64 * 64 * 4, 64 * 4  # bytes; of an item in one layer
    full, micro = run.table("beyond weights", "of it gradients")
    run.equal("gradients", [full["of it gradients"], micro["of it gradients"]], [gradients] * 2)
    # At once: all gradients, when nearly all activations are freed. In micro-batches: the input and the results of 16 layers, too.
    run.close("at once", full["beyond weights"], gradients, 3 * 8 * layer)
    run.close("in micro-batches", micro["beyond weights"], gradients + 17 * (8 // n) * layer, 3 * (8 // n) * layer + 1024)
