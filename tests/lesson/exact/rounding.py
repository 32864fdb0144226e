"""The pairs that differ, from fractions that are rounded to 24 or 53 binary digits, and the bounds."""

from fractions import Fraction

from exact_values import X, roundings


def rounded(number, digits):
    """Returns the nearest number with so many binary digits. Ties go to the even one, as round() does."""
    exponent = 0
    while number * 2**exponent < 2**(digits - 1):
        exponent += 1
    while number * 2**exponent >= 2**digits:
        exponent -= 1
    return round(number * Fraction(2)**exponent) / Fraction(2)**exponent


def differing_pairs(digits):
    return [(n, b) for n in range(1, 33) for b in range(1, 33)
            if rounded(rounded(Fraction(1, n), digits) / b, digits) != rounded(Fraction(1, n * b), digits)]


def check(run):
    items, parts = run.setting("items"), run.setting("micro")
    once = sum(row[1] for row in X) / 6
    half = [abs(row[1]) / 2 for row in X]
    rows = run.table("second component", "4 digits")
    run.close("full batch", rows[0]["4 digits"], once, roundings(9) * sum(half) / 3)
    run.close("sum", rows[1]["4 digits"], 3 * once, roundings(15) * sum(half))
    run.close("3 x the printed number", rows[2]["4 digits"], 3 * Fraction(207, 10000), roundings(1))
    run.close("6 digits", [float(row["6 digits"]) for row in rows], [once, 3 * once, Fraction(621, 10000)], 5.1e-7)
    run.close("units off", [row["units off"] for row in rows], [Fraction(1, 3), 0, 1], 0.01)
    run.close("10000 numbers", run.shown("10000 numbers, at most"), Fraction(1, 2), 0.001)

    pairs = {"float": differing_pairs(24), "double": differing_pairs(53)}
    for row in run.table("N", "b that differ, float"):
        for column, type_name in (("b that differ, float", "float"), ("double", "double")):
            run.equal(f"N = {row['N']}", row[column], sum(n == row["N"] for n, b in pairs[type_name]))
    run.equal("the answer", float(run.answer("For which N")), 8)
    everything, powers = run.table("(1/N)/b is not 1/(N b)")
    for name, found in pairs.items():
        run.equal("all pairs", everything[name], len(found))
        run.equal("a power of two", powers[name], sum(n & (n - 1) == 0 or b & (b - 1) == 0 for n, b in found))
    run.equal("the smallest pair", run.shown("smallest N and b"), list(min(pairs["float"], key=lambda pair: pair[0] * pair[1])))

    orders = run.table("of 3000 batches, bits differ")
    least = 2000 if (items, parts) == (64, 4) else 1
    assert all(least <= orders[1][name] <= 3000 for name in pairs), orders
    u, gamma, largest = run.table("relative to the sum of |x|")
    for name, digits in (("float", 24), ("double", 53)):
        unit = Fraction(1, 2**digits)
        bound = (items + 2) * unit / (1 - (items + 2) * unit)
        run.equal("one sum", orders[0][name], 0)
        run.equal("u", u[name], unit)
        run.close("gamma", gamma[name], bound, bound * Fraction(1, 2**50))
        run.close("the largest error", largest[name], bound / 2, bound / 2)
