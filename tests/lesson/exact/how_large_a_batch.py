"""The loss that a step leaves, the law of updates and items, and the half-lives. The items are random; their seed is not repeated here."""

import math
from fractions import Fraction

from exact_values import roundings

NUMBERS = 1000  # of an item
# In 120 runs with other random numbers, S and E differed from the law by at most 2.2 %.
OF_LAW = Fraction(5, 100)


def loss_left(rate, noise):
    """Returns the expected loss after one step, where noise is R/b, and five standard deviations of a mean of 100 steps."""
    left, added = (1 - rate) ** 2, rate**2 * noise
    return left + added, 5 * Fraction(math.sqrt((2 * added**2 + 4 * left * added) / NUMBERS / 100))


def updates_without_noise():
    """Each update leaves 0.99^2 of the loss. The unused part of the last update is not counted."""
    now, before, updates = Fraction(1), Fraction(1), 0
    while now > Fraction(1, 4):
        before, now, updates = now, now * Fraction(99, 100) ** 2, updates + 1
    return updates - (Fraction(1, 4) - now) / (before - now)


def nearest(number):
    return math.floor(number + Fraction(1, 2))


def check(run):
    scale = run.setting("items")
    exact, bound = loss_left(Fraction(1, 10), 1)
    one, expected = run.shown("loss left, and expected")
    run.close("one step", one, exact, 10 * bound)  # one step scatters 10 times as much as the mean of 100
    run.close("expected", expected, exact, Fraction(1, 10**9))
    rates = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1))
    for row, rate in zip(run.table("loss left, mean of 100"), rates, strict=True):
        exact, bound = loss_left(rate, 1)
        run.equal("rate", row["rate"], rate)
        run.close("loss left", row["loss left, mean of 100"], exact, bound + roundings(2000))
        run.close("expected", row["expected"], exact, Fraction(1, 10**9))
    best = min(range(1001), key=lambda thousandths: loss_left(Fraction(thousandths, 1000), 1)[0])
    run.equal("the best rate", Fraction(run.answer("Which learning rate lowers the loss most")), Fraction(best, 1000))

    for row, noise in zip(run.table("best rate", "loss left"), (4, 1, Fraction(1, 4)), strict=True):
        rate = 1 / (1 + Fraction(noise))
        run.equal("items", row["items"], scale / Fraction(noise))
        run.close("best rate", row["best rate"], rate, Fraction(1, 10**9))
        run.close("1 / (1 + b/R)", row["1 / (1 + b/R)"], loss_left(rate, noise)[0], Fraction(1, 10**9))
        run.close("loss left", row["loss left"], *loss_left(rate, noise))
        run.close("loss left with rate 0.5", row["loss left with rate 0.5"], *loss_left(Fraction(1, 2), noise))

    R, S_min, E_min = Fraction(scale * 3 / math.log(4)), Fraction(run.shown("S_min, updates without noise")), Fraction(run.shown("E_min, items of tiny batches"))
    # A float w has 140 roundings. An update changes the loss by 2 %, so that the number of updates is 50 times less exact.
    run.close("S_min", S_min, updates_without_noise(), 50 * roundings(2 * 140))
    run.close("E_min", E_min, S_min * R, OF_LAW * E_min)
    for row, part in zip(run.table("updates S", "product"), (Fraction(1, 4), Fraction(1, 2), 1, 2, 4), strict=True):
        S, E = Fraction(row["S / S_min"]), Fraction(row["E / E_min"])
        run.close("S / S_min", S, 1 + 1 / Fraction(part), OF_LAW * S)
        run.close("E / E_min", E, 1 + part, OF_LAW * E)
        run.equal("items", row["items"], nearest(part * R))
        run.close("updates S", row["updates S"], S * S_min, Fraction(501, 1000))
        run.close("items E", row["items E"], S * S_min * part * R, Fraction(501, 1000))
        run.close("E / E_min", E, S * S_min * part * R / E_min, Fraction(1, 10**9))
        run.close("product", row["product"], (S - 1) * (E - 1), Fraction(1, 10**9))
    run.close("twice", Fraction(run.answer("How many times E_min")), 1 + R / R, 0)

    for row, n in zip(run.table("micro-batches", "64 devices"), (1, 2, 4, 8, 16), strict=True):
        run.equal("micro-batches", row["micro-batches"], n)
        run.close("one device", row["one device"], E_min + S_min * n, Fraction(501, 1000))
        run.close("64 devices", row["64 devices"], (S_min + E_min / (64 * n)) * (n + 8), Fraction(501, 1000))
    assert "64 devices" in run.answer("communicate for 8 units")

    for row, items in zip(run.table("beta2", "half-life, items"), (64, 16, 4, 1), strict=True):
        run.equal("items", row["items"], items)
        run.close("beta2", Fraction(row["beta2"]) ** (64 // items), Fraction(95, 100), Fraction(1, 10**12))
        # After the half-life, 0.95^(items / 64) is 1/2.
        updates = Fraction(row["half-life, items"]) / 64
        run.close("half is left", 0.95 ** float(updates), Fraction(1, 2), Fraction(1, 10**9))
        run.close("half-life, updates", row["half-life, updates"], updates * 64 / items, Fraction(1, 10**9))
    run.close("beta2 of one item", Fraction(run.answer("Each update now has one item")) ** 64, Fraction(95, 100), Fraction(2, 1000))
