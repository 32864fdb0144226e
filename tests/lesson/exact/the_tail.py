"""The tail of an epoch: its micro-batches, its gradient, and two trainings with four rules."""

from fractions import Fraction

from exact_values import X, column_bound, column_means, dot, roundings, scaled

N = 4
RULES = ("large batches", "divided by N", "scale", "drop", "carry")


def train(rule, micros, gradient, weights, rate, epochs):
    """Returns the number of updates, and the weights after each epoch. micros lists the items of each micro-batch."""
    w, window, updates, after = [Fraction(0)] * weights, [], 0, []
    for _ in range(epochs):
        for k, micro in enumerate(micros):
            window.append(micro)
            last = k + 1 == len(micros)
            if len(window) < N and (not last or rule in ("drop", "carry")):
                continue
            if rule == "divided by N":
                part = [sum(column) / N for column in zip(*(gradient(w, items) for items in window))]
            else:
                part = gradient(w, [item for items in window for item in items])
            w, window, updates = [a - rate * b for a, b in zip(w, part, strict=True)], [], updates + 1
        if rule == "drop":
            window = []
        after.append(w)
    return updates, after


def gradient_of_rows(w, items):
    """Row i has the loss w[i]."""
    return [Fraction(items.count(i), len(items)) for i in range(len(w))]


def item(i):
    """Returns the three numbers of an item, and its target."""
    numbers = [Fraction((i * i * (j + 3) + 5 * i) % 17 - 8, 4) for j in range(3)]
    return numbers, dot(numbers, [1, -2, 3]) + Fraction(5 * i % 7 - 3, 4)


def gradient_of_fit(w, items):
    pairs = [item(i) for i in items]
    return column_means([scaled(2 * (dot(x, w) - y), x) for x, y in pairs])


def furthest(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def check(run):
    images = run.setting("items")
    left = images // 16 % N
    by_64, by_16 = run.table("images at a time", "updates")
    updates = -(-images // 64)
    run.equal("64", list(by_64.values()), [64, updates, updates, 1, images % 64])
    run.equal("16", list(by_16.values()), [16, images // 16, updates, left, 16 * left])
    run.equal("left", Fraction(run.answer("does the last update have")), left)

    tail = column_means(X[6 - left:])
    bound = column_bound(12, X[6 - left:])
    run.close("published", run.shown("the published gradient"), scaled(Fraction(left, N), tail), bound)
    run.close("the mean", run.shown("the mean over the tail"), tail, bound)
    run.close("ratio", run.shown("their ratio"), [Fraction(left, N)] * 3, [2 * b / abs(t) for b, t in zip(bound, tail)])
    run.close("scale", run.shown("the gradient with scale"), tail, bound)
    run.equal("the share", Fraction(run.answer("Which number, times the mean gradient")), Fraction(left, N))

    few = N + left
    rows = run.table("rule", "weight of each row in two epochs")
    assert [row["rule"] for row in rows] == list(RULES)
    for row in rows:
        count, after = train(row["rule"], [[i] for i in range(few)], gradient_of_rows, few, Fraction(1), 2)
        run.equal("updates", row["updates"], count)
        shown = [float(number) for number in row["weight of each row in two epochs"].split()]
        run.close("weights", shown, scaled(-1, after[-1]), Fraction(5, 1000) + roundings(4))  # two digits
        if row["rule"] == "carry":
            run.equal("updates with carry", Fraction(run.answer("make with carry")), count)

    items, trained = 48 + 2 * few, {}
    for rule in RULES:
        trained[rule] = train(rule, [[i, i + 1] for i in range(0, items, 2)], gradient_of_fit, 3, Fraction(1, 10), 5)
    off = {rule: [furthest(run_[1][e], trained["large batches"][1][e]) for e in (0, 4)] for rule, run_ in trained.items()}
    for row in run.table("rule", "weights after 5 epochs"):
        count, after = trained[row["rule"]]
        run.equal("updates", row["updates"], count)
        run.close("weights", row["weights after 5 epochs"], after[-1], Fraction(1, 10**6))
        for shown, exact in zip((row["off after 1"], row["after 5"]), off[row["rule"]]):
            run.close("off", float(shown), exact, exact / 19 + Fraction(2, 10**6))  # two digits are shown
    assert [rule for rule in RULES[1:] if off[rule] == [0, 0]] == [run.answer("Which rule for the last items")]
