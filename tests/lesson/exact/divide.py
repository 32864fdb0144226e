"""The gradients of both splits, the losses, and the differences that rounding permits."""

from fractions import Fraction

from exact_values import W, X, column_bound, column_means, dot, roundings, scaled


def check(run):
    n = run.setting("micro")
    each, full = 6 // n, column_means(X)
    run.close("full batch", run.shown("full batch"), full, column_bound(9))
    run.close("sum", run.shown("sum of the micro-batches"), scaled(n, full), scaled(n, column_bound(15)))
    run.close("the factor", float(run.answer("by one number")), Fraction(1, n), 1e-9)

    so_far = [0, 0, 0]
    for k, row in enumerate(run.table("rows", "loss / N")):
        part = scaled(Fraction(1, n), column_means(X[k * each:(k + 1) * each]))
        so_far = [a + b for a, b in zip(so_far, part)]
        run.close("1 / N", row["1 / N"], Fraction(1, n), roundings(1))
        run.close("loss / N", row["loss / N"], dot(part, W), roundings(13) * 4)
        run.close("w.grad", row["w.grad afterwards"], so_far, column_bound(9))
    run.equal("w.grad of all micro-batches", row["w.grad afterwards"], [Fraction(number) for number in run.shown("full batch")])

    now = 3 if n == 6 else 6
    run.equal("the other split", float(run.answer("By which number do you divide")), now)
    run.equal("divided by", run.shown("divided by"), now)
    run.equal("w.grad of the other split", run.shown("w.grad"), [Fraction(number) for number in run.shown("full batch")])

    for row in run.table("type", "one sum"):
        unit = 1 if row["type"] == "float" else Fraction(1, 2**29)  # a double has 29 binary digits more
        run.equal("one sum", row["one sum"], 0)
        for split in ("separate, N = 2", "N = 3", "N = 6"):
            # Both gradients have at most 11 roundings.
            run.close(split, row[split], 0, 2 * unit * max(column_bound(11)))

    run.equal("elements of w.grad", run.shown("elements of w.grad"), 32 * 16)
    run.equal("the largest difference", run.shown("largest difference"), 0)
    ordered, blas = run.table("products", "largest difference")
    run.equal("ordered", [ordered["elements that differ"], ordered["largest difference"]], [0, 0])
    run.close("BLAS", blas["largest difference"], 0, 2 * roundings(1002) / 16)
