"""The bytes of an all-reduce, and the bits of sums in several orders, without tally."""

import struct
from fractions import Fraction

MICRO_BATCHES = 24


def as_float(number):
    """Rounds a double to the nearest float."""
    return struct.unpack("f", struct.pack("f", number))[0]


def rounded(exact):
    """Rounds a fraction to the nearest float."""
    near = as_float(float(exact))
    neighbours = [struct.unpack("f", struct.pack("I", struct.unpack("I", struct.pack("f", near))[0] + step))[0] for step in (-1, 1)] if near else []
    assert all(abs(Fraction(near) - exact) <= abs(Fraction(other) - exact) for other in neighbours)
    return near


# The sum of two floats, and a float divided by 24, are rounded to double and then to float. That is the same as rounding once.
GRADIENTS = [[as_float(((37 * i * i + 11 * k * i + 5 * k) % 127 - 63) / 129) for i in range(1000)] for k in range(MICRO_BATCHES)]


def running(micro_batches):
    total = [0.0] * 1000
    for k in micro_batches:
        total = [as_float(a + b) for a, b in zip(total, GRADIENTS[k])]
    return total


def mean(total):
    return [as_float(number / 24) for number in total]


def in_rank_order(rank_of, ranks):
    total = [0.0] * 1000
    for rank in range(ranks):
        own = running([k for k in range(MICRO_BATCHES) if rank_of(k) == rank])
        total = [as_float(a + b) for a, b in zip(total, own)]
    return mean(total)


def different(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def check(run):
    p = run.setting("ranks")
    one = 2 * (p - 1) * 3 * 4
    for row in run.table("micro-batches", "once, bytes"):
        run.equal("bytes", [row["once, bytes"], row["each time, bytes"]], [one, row["micro-batches"] * one])
    assert run.answer("How many bytes") == str(8 * one)

    alone = mean(running(range(MICRO_BATCHES)))
    blocks, turns, fewer = (in_rank_order(rank_of, p) for rank_of in (lambda k: k * p // 24, lambda k: k % p, lambda k: k % (p - 1)))
    fast, ordered = run.table("weights with other bits", "last rank")
    run.equal("rank_order", [ordered["last rank"], ordered["one process"], ordered["other order"]], [0, different(blocks, alone), different(blocks, turns)])
    run.equal("fast: all ranks have the same bits", fast["last rank"], 0)
    assert 100 < ordered["one process"] < 1000 and 100 < fast["one process"] < 1000, "many of them, not all"

    sums, exact = run.table("weights with other bits", "one rank less")
    run.equal("running", [sums["one process"], sums["other order"], sums["one rank less"]],
              [different(blocks, alone), different(blocks, turns), different(blocks, fewer)])
    run.equal("exact", [exact["one process"], exact["other order"], exact["one rank less"]], [0, 0, 0])
    once = [rounded(sum(map(Fraction, numbers))) for numbers in zip(*GRADIENTS)]
    run.equal("first exact weights", run.shown("first weights, exact sums"), [Fraction(-number) for number in mean(once)[:3]])
