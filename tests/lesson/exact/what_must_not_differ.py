"""The running statistics of the six rows after one and two updates, and the gradient of squared dropout."""

from fractions import Fraction

from exact_values import X, column_bound, column_means, roundings, scaled


def check(run):
    run.equal("x", run.shown("x"), [1] * 8)
    y = run.shown("y without a checkpoint, and its gradient / 2")
    counter, layer = run.table("y", "gradient / 2")
    for values in (y, counter["gradient / 2"]):
        assert set(values) == {0, 4}, f"a mask m of 0 and 1 gives (2m)^2 = 0 or 4: {values}"
    for values in (counter["y"], layer["y"], layer["gradient / 2"]):
        run.equal("the first mask", values, y)
    assert counter["gradient / 2"] != y, "the second mask is another one"

    mean = column_means(X)
    variance = [sum((row[j] - mean[j]) ** 2 for row in X) / 5 for j in range(3)]  # without bias
    rows = run.table("runs", "updates", "running mean")
    run.equal("plain", [rows[0]["runs"], rows[0]["updates"]], [1, 1])
    run.equal("checkpoint", [rows[1]["runs"], rows[1]["updates"]], [2, 1])
    for row in rows:
        run.close("running mean", row["running mean"], scaled(Fraction(1, 10), mean), column_bound(30))
    exact = [Fraction(9, 10) + v / 10 for v in variance]
    run.close("running variance", run.shown("running variance of both"), exact, [2 * roundings(30) * v for v in exact])
    run.close("mean of the batch", run.shown("mean of the batch"), mean, scaled(10, column_bound(30)))
    run.close("two updates", run.shown("running mean after two updates"), scaled(Fraction(19, 100), mean), column_bound(30))
    run.close("ratio", run.shown("the ratio"), Fraction(19, 100), Fraction(1, 10000))
    run.equal("side effects", run.shown("runs, and counted batches"), [2, 1])
