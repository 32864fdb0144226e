"""The products, the loss, the gradient row by row, and the loss after one and after twenty steps."""

from exact_values import W, X, column_bound, column_means, dot, roundings


def check(run):
    rate, full = run.setting("rate"), column_means(X)
    loss, squares = dot(full, W), dot(full, full)
    run.close("x", run.shown("x"), X, [roundings(1) * abs(number) for row in X for number in row])
    run.equal("w", run.shown("w", step=1), W)
    run.close("y", run.shown("y"), [dot(row, W) for row in X], roundings(6) * 4)
    run.close("loss", run.shown("loss"), loss, roundings(12) * 2)
    run.close("w.grad", run.shown("w.grad", step=3), full, column_bound(9))

    so_far = [0, 0, 0]
    for number, (row, shown) in enumerate(zip(X, run.table("row", "adds"), strict=True)):
        so_far = [a + b / 6 for a, b in zip(so_far, row)]
        run.equal("row", shown["row"], number)
        run.close("adds", shown["adds"], [b / 6 for b in row], [abs(b) / 6 * roundings(3) for b in row])
        run.close("v.grad afterwards", shown["v.grad afterwards"], so_far, column_bound(9))

    moved = [w - rate * g for w, g in zip(W, full)]
    run.close("the answer", float(run.answer("What is it afterwards?")), moved[0], 5e-5)
    run.close("w after one step", run.shown("w", step=5), moved, roundings(20) * 2)
    run.close("loss before", run.shown("loss before"), loss, roundings(12) * 2)
    run.close("loss after", run.shown("loss after"), loss - rate * squares, roundings(30) * 4)
    run.close("it fell by", run.shown("the loss fell by"), rate * squares, roundings(30) * 4)
    run.close("rate times squares", run.shown("rate times |w.grad|^2"), rate * squares, roundings(20) * rate)

    for row in run.table("steps", "loss"):
        k, bound = row["steps"], roundings(80) * (4 + 20 * rate)
        run.close(f"loss after {k} steps", row["loss"], loss - k * rate * squares, bound)
        run.close(f"fall in {k} steps", row["fell by, in all"], k * rate * squares, bound)
        run.close(f"gradient of step {k}", row["w.grad in the last step"], full, column_bound(9))
