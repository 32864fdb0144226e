"""The gradients, steps and weights of ranks that share six rows, without tally."""

from fractions import Fraction

from exact_values import X, column_bound, column_means, roundings, scaled


def mean(numbers):
    return sum(numbers) / Fraction(len(numbers))


def trained(firsts, seconds, too_early):
    """Thirty updates. Returns the weights of all ranks after each of them."""
    copies = [[Fraction(0)] * len(firsts)]
    for _ in range(30):
        before = copies[-1]
        first, second = ([w - c for w, c in zip(before, numbers)] for numbers in (firsts, seconds))
        averaged = second if too_early else [mean(second)] * len(second)
        copies.append([w - (mean(first) + g) / 4 for w, g in zip(before, averaged)])
    return copies


def loss(w):
    return ((w - 1) ** 2 + (w - 2) ** 2) / 2


def check(run):
    p = run.setting("ranks")
    each, full = 6 // p, column_means(X)
    for rank, row in enumerate(run.table("rank", "gradient of the mean")):
        rows = X[rank * each:rank * each + each]
        run.close("gradient of a rank", row["gradient of the mean"], column_means(rows), column_bound(12, rows))

    run.close("six rows", run.shown("one process, six rows"), full, column_bound(12))
    run.close("sum", run.shown("sum over the ranks"), scaled(p, full), scaled(p, column_bound(24)))
    run.close("ratios", run.shown("sum / one process"), [p, p, p], p * roundings(1000))
    assert run.answer("adds the gradients") == str(p)

    for row, share in zip(run.table("SGD moves w by", "Adam moves w by"), (1, Fraction(1, p))):
        run.equal("divisor", row["sum divided by"], p / share)
        # The subtraction of the old weights rounds a number below 2.
        run.close("SGD", row["SGD moves w by"], scaled(-share, full), [bound + 2 * roundings(2) for bound in column_bound(32)])
        # The first step of Adam is rate * g / (|g| + 1e-8).
        run.close("Adam", row["Adam moves w by"], [Fraction(-1, 10) if g > 0 else Fraction(1, 10) for g in full], Fraction(1, 10**5))

    ways = run.table("gradient", "divided by")
    of_means = scaled(Fraction(1, 2), [a + b for a, b in zip(column_means(X[:4]), column_means(X[4:]))])
    for row, exact, divisor in zip(ways, (of_means, full, full), (2, 6, 6), strict=True):
        run.close(row[""], row["gradient"], exact, scaled(2, column_bound(24)))
        run.equal("divisor", row["divided by"], divisor)
    assert run.answer("be divided") == "6"

    firsts, seconds = [1, 3, 8][:p], [2, 5, 11][:p]
    for row, first, second in zip(run.table("averaged too early"), firsts, seconds, strict=True):
        run.equal("first and second", [row["first"], row["second"]], [first, second])
        run.close("ends", [row["averaged too early"], row["averaged at the end"]], [mean(firsts) + second, mean(firsts) + mean(seconds)], 20 * roundings(4))
    run.close("answer", float(run.answer("averages over the ranks too early")), mean(firsts) + 2, Fraction(1, 10**4))

    early, right = (trained(firsts, seconds, too_early) for too_early in (True, False))
    weight = 30 * 20 * roundings(8)  # each of 30 updates rounds numbers below 20
    for row in run.table("update", "w, rank 0"):
        now = row["update"]
        run.close("weights", [row["w, rank 0"], row["w, last rank"]], [early[now][0], early[now][-1]], weight)
        run.close("losses", [row["loss, rank 0"], row["loss, right training"]], [loss(early[now][0]), loss(right[now][0])], 40 * weight)
    assert mean(early[-1]) == right[-1][0], "the mean of all copies is right"
