"""Sums over rows, means over the words of six sentences, and the weights of words."""

from fractions import Fraction

from exact_values import X, column_bound, column_means, roundings

LENGTHS = [1, 2, 3, 1, 4, 5]


def columns(weights):
    """Returns the weighted sum of the six rows."""
    return [sum(weight * row[j] for weight, row in zip(weights, X, strict=True)) for j in range(3)]


def check(run):
    n = run.setting("micro")
    each = 6 // n
    words = [sum(LENGTHS[k:k + each]) for k in range(0, 6, each)]  # in each micro-batch
    sums = [6 * bound for bound in column_bound(14)]  # at most the six rows, each added twice
    run.close("sum over the micro-batches", run.shown("sum over the micro-batches"), columns([1] * 6), sums)
    run.close("six rows at once", run.shown("six rows at once"), columns([1] * 6), sums)
    run.close("the six rows twice", run.shown("the six rows twice"), columns([2] * 6), [2 * bound for bound in sums])
    run.equal("their ratio", run.shown("their ratio"), [1, 1, 1])
    assert run.answer("is the sum over six rows") == "1"

    run.equal("lengths", run.shown("words in each sentence"), LENGTHS)
    run.equal("words", run.shown("words in each micro-batch"), words)
    rows = run.table("words in the micro-batch", "weight of a word")
    run.equal("words in the table", [row["words in the micro-batch"] for row in rows], words)
    run.close("weights", [row["weight of a word"] for row in rows], [Fraction(1, n * count) for count in words], roundings(1) / 2**20)
    run.close("fair", [row["it should be"] for row in rows], [Fraction(1, 16)] * n, 0)
    assert Fraction(1, n * min(words)) > Fraction(1, 16)
    assert run.answer("How much does a word count") == "more than 1/16"

    bound = roundings(22) * Fraction(3, 2)  # 16 numbers of at most 1.5, each with a weight that is rounded
    truth = columns([Fraction(length, 16) for length in LENGTHS])
    of_means = columns([Fraction(length, n * words[sentence // each]) for sentence, length in enumerate(LENGTHS)])
    of_window, masked = (event["values"] for event in run.events if event["event"] == "tensor" and event["name"] == "the window's gradient")
    run.close("the window's gradient", of_window, truth, bound)
    for name in ("mean over all 16 words", "means times words / 16"):
        run.close(name, run.shown(name), truth, bound)
    run.close("mean of the means", run.shown("mean of the means"), of_means, bound)
    run.equal("words / 16", run.shown("words / 16"), [Fraction(count, 16) for count in words])
    assert Fraction(run.answer("By which number must its mean")) == Fraction(words[0], 16)

    by_means, window = run.table("of the 10", "of the 100")
    for row, weights in ((by_means, [Fraction(1, 20), Fraction(1, 200)]), (window, [Fraction(1, 110)] * 2)):
        run.close("weights of words", [row["of the 10"], row["of the 100"]], weights, roundings(4) / 20)
        run.close("ratio", row["ratio"], weights[0] / weights[1], roundings(7) * 10)
    assert run.answer("How many words of the large") == "10"

    assert run.answer("is in w.grad after") == "NaN"
    spoiled = run.shown("w.grad")
    assert spoiled == ["nan"] * 3, f"w.grad is {spoiled}"
    run.close("masked", masked, column_means(X), column_bound(10))

