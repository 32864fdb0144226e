"""The steps of accumulation, AGN and local SGD, the steps in all orders, and the places where each method stands still."""

from fractions import Fraction
from itertools import permutations

from exact_values import roundings

FOUR = [(Fraction(1), Fraction(1)), (Fraction(2), Fraction(-1)), (Fraction(4), Fraction(1, 2)), (Fraction(1), Fraction(3))]
STEP = roundings(24) * 3  # a slope is below 12 and |w| below 3; a local step rounds 6 times


def mean_step(items, rate):
    """One step from w = 0 by the mean of the slopes a (w - c)."""
    return sum(rate * a * c for a, c in items) / len(items)


def path(items, rate):
    """Returns w before the first local step and after each of them."""
    places = [Fraction(0)]
    for a, c in items:
        places.append(places[-1] - rate * a * (places[-1] - c))
    return places


def rest(items, rate):
    """Returns the w from which all local steps together lead back to w, and the part of an error that they leave."""
    left = Fraction(1)
    for a, _ in items:
        left *= 1 - rate * a
    return path(items, rate)[-1] / (1 - left), left


def check(run):
    rate = Fraction(run.setting("rate"))
    walked, plain = path(FOUR, rate), mean_step(FOUR, rate)
    slopes = run.table("item", "slope at w = 0")
    run.equal("a and c", [[row["a"], row["c"]] for row in slopes], [[a, c] for a, c in FOUR])
    run.close("slopes", [row["slope at w = 0"] for row in slopes], [-a * c for a, c in FOUR], roundings(4) * 3)
    run.close("accumulation", run.shown("w after the update"), [plain], STEP)

    steps = run.table("slope taken at", "w afterwards")
    run.close("slope taken at", [row["slope taken at"] for row in steps], walked[:-1], STEP)
    run.close("w afterwards", [row["w afterwards"] for row in steps], walked[1:], STEP)
    run.close("the answer", Fraction(run.answer("after the four items")), walked[-1], rate / 20)
    ways = [row["w after the four items"] for row in run.table("w after the four items")]
    run.close("three ways", ways, [plain, walked[-1] / 4, walked[-1]], STEP)

    same = [[row["accumulation"], row["AGN"]] for row in run.table("accumulation", "AGN")]
    run.close("the same step", same, [[mean_step(FOUR[:1], rate)] * 2, [plain] * 2], STEP)

    by_order = sorted(path(items, rate)[-1] / 4 for items in permutations(FOUR))
    spread = [[row["smallest step"], row["largest step"]] for row in run.table("24 orders")]
    run.close("24 orders", spread, [[plain, plain], [by_order[0], by_order[-1]]], STEP)
    if min(b - a for a, b in zip(by_order, by_order[1:])) > 2 * STEP:
        run.equal("different steps", run.shown("different steps of AGN"), len(set(by_order)))

    # An update leaves 1 - f of an error, so all errors together are at most the error of one update divided by f.
    place, left = rest(FOUR, rate)
    slow_place, slow_left = rest(FOUR, rate / 10)
    rests = [row["w"] for row in run.table("updates", "rate", "w")]
    bounds = [STEP / (2 * rate), 4 * STEP / (1 - left), STEP / (1 - left), 4 * STEP / (1 - slow_left)]
    run.close("where they stand still", rests, [Fraction(1, 2), place, place, slow_place], bounds)
