"""The fewest runs by the recursion over the place of the next snapshot, and the memory of buffers of equal size."""

from fractions import Fraction
from functools import lru_cache
from math import comb


@lru_cache(None)
def fewest(l, c):
    """Takes the second snapshot after j steps: the last l - j steps have c - 1 snapshots, and then the first j have c."""
    if c == 1 or l == 1:
        return l * (l - 1) // 2
    return min(j + fewest(l - j, c - 1) + fewest(j, c) for j in range(1, l))


def formula(l, c):
    r = next(r for r in range(l + 1) if comb(c + r, c) >= l)
    return r * l - (comb(c + r, r - 1) if r > 0 else 0)


def check(run):
    l, n = run.setting("items"), run.setting("micro")
    run.equal("only run", run.shown("only run"), fewest(l, 3))
    run.equal("recorded", run.shown("recorded"), l)
    run.equal("snapshots", run.shown("snapshots"), 3)
    run.equal("with x alone", run.shown("with x alone"), fewest(l, 1))
    assert (run.answer("How many other runs"), run.answer("may the chain have")) == (str(fewest(l, 3)), str(comb(6, 3)))

    for r, row in enumerate(run.table("r", "one step longer"), 1):
        run.equal("longest", list(row.values()), [r, comb(3 + r, 3), r, r + 1])
    for row, (steps, c) in zip(run.table("steps l", "only run"), ((10, 3), (16, 4), (100, 5), (100, 10), (1000, 10)), strict=True):
        exact = formula(steps, c)
        assert steps > 100 or exact == fewest(steps, c)
        run.equal("runs", [row["steps l"], row["snapshots c"], row["only run"], row["formula"]], [steps, c, exact, exact])
        run.close("for each step", row["for each step"], Fraction(exact, steps), Fraction(1, 10**9))

    rows = run.table("64 layers", "begun")
    run.equal("begun", [row["begun"] for row in rows], [64, 2 * 64 - 8, *(64 + fewest(64, c) for c in (13, 8, 5))])
    buffer = Fraction(64 * 8 * 4, 1024)  # KiB: the plain program keeps 65, eight segments 16, and c snapshots at most 3 more than c
    peaks = [Fraction(row["peak"].removesuffix(" KiB")) for row in rows]
    for peak, buffers in zip(peaks, (65, 16, 15, 11, 8), strict=True):
        run.close("peak", peak, buffers * buffer, buffer)

    rows = run.table("peak", "of the full batch")
    run.equal("begun", [row["layers begun"] for row in rows], [16, 16 * n, 28, 28 * n])
    run.equal("full", rows[0]["of the full batch"], 1)
    for row, part in zip(rows[1:], (Fraction(1, n), Fraction(1, 2), Fraction(1, 2 * n)), strict=True):
        run.close("part", row["of the full batch"], part, part / 10)
