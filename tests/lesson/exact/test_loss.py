"""The mean of batch means, the weights of images in it, its error, and the mean over all images."""

import math
from fractions import Fraction

from exact_values import roundings

IMAGES = 10000


def losses(more=0):
    return [Fraction(7919 * i % 1024 + (1024 if i >= IMAGES - 16 else 0), 2048) + more for i in range(IMAGES)]


def mean(numbers):
    return sum(numbers) / len(numbers)


def split(numbers, size):
    return [numbers[k:k + size] for k in range(0, len(numbers), size)]


def mean_of_means(numbers, size):
    return mean([mean(batch) for batch in split(numbers, size)])


def check(run):
    size = run.setting("items")
    all_losses, bound = losses(), roundings(640) / 2  # at most 625 means below 1/2
    batches = {at_a_time: split(all_losses, at_a_time) for at_a_time in (size, 16)}
    truth, hard = mean(all_losses), mean(all_losses[-16:])
    run.close("the mean of the last", run.shown("the mean of the last 16 images"), hard, roundings(3))
    run.close("the mean", run.shown("the mean of all images"), truth, roundings(3))

    for row, (at_a_time, parts) in zip(run.table("images at a time", "batches"), batches.items(), strict=True):
        run.equal("batches", list(row.values()), [at_a_time, len(parts), len(parts[-1])])

    for row, (at_a_time, parts) in zip(run.table("of the first image", "of the last image"), batches.items(), strict=True):
        first, last = (Fraction(IMAGES, len(parts) * len(part)) for part in (parts[0], parts[-1]))
        run.close("weights", [row["of the first image"], row["of the last image"]], [first, last], roundings(4) * last)
        run.close("ratio", row["ratio"], last / first, roundings(8) * 8)
        if at_a_time == size:
            run.equal("one of the last", Fraction(run.answer("count as much as one of these 16")), last / first)

    error = {at_a_time: mean_of_means(all_losses, at_a_time) - truth for at_a_time in batches}
    for row, at_a_time in zip(run.table("images at a time", "minus the mean of all"), batches, strict=True):
        run.close("the mean of the means", row["mean of the means"], truth + error[at_a_time], bound)
        run.close("the error", row["minus the mean of all"], error[at_a_time], bound)
    assert error[16] == 0 < error[size]
    assert run.answer("Which result is larger") == f"the result with {size} images"

    assert error[size] == (hard - truth) * (1 - Fraction(16, size)) / len(batches[size])
    run.close("the formula", run.shown("the error by the formula"), error[size], bound)
    low, middle, high = map(Fraction, run.shown("lowest, mean and highest error x 10000"))
    farthest = 10000 * (max(sum(sorted(all_losses)[-16:]) / 16 - truth, truth - sum(sorted(all_losses)[:16]) / 16)) / len(batches[size])
    assert -farthest < low < 0 < high < farthest
    # The mean of 16 images has a variance of at most 1/16 of that of one image. The bound is five standard deviations.
    variance = mean([(loss - truth) ** 2 for loss in all_losses]) / 16 * (Fraction(10000, len(batches[size])) * (1 - Fraction(16, size))) ** 2
    run.close("the mean of 200 errors", middle, 0, Fraction(5 * math.sqrt(variance / 200)))
    assert run.answer("errors of") == "of either sign, near 0"

    run.close("sum / count", run.shown("sum / count, for both batch sizes"), [truth] * 2, Fraction(1, 2**50))  # doubles

    worse = losses(Fraction(1, 2048))
    for row, numbers, at_a_time in zip(run.table("network"), (all_losses, worse), batches, strict=True):
        run.close("the mean of the means", row["mean of the means"], mean_of_means(numbers, at_a_time), bound)
        run.close("sum / count", row["sum / count"], mean(numbers), Fraction(1, 2**50))
    a, b = mean_of_means(all_losses, size), mean_of_means(worse, 16)
    assert b < a and mean(worse) > truth
    assert run.answer("Which network seems") == "B"
