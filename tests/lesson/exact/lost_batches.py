"""Gradients of the published and the repaired listing, bytes that backward keeps, and the batches of an epoch that count."""

from exact_values import W, X, column_bound, column_means, dot, roundings

KEPT = 16 * (8 + 64) * 4  # bytes: the input of matmul and the result of tanh, for 16 items
NODES = 4                 # matmul, tanh, mean, / N
GRADIENTS = 8 * 64 * 4 + 16 * 64 * 4  # of the weights, and of the result of tanh


def batches_used(all_batches, every, published):
    """Runs the listing with the numbers of the batches in place of losses."""
    used, total = set(), []
    for batch in range(all_batches):
        total.append(batch)
        if len(total) == every:
            used.update([batch] if published else total)
            total = []
    return len(used)


def check(run):
    n = run.setting("micro")
    each, full = 6 // n, column_means(X)
    micros = [X[k:k + each] for k in range(0, 6, each)]
    for row, micro in zip(run.table("rows", "loss"), micros, strict=True):
        run.close("loss", row["loss"], dot(column_means(micro), W), roundings(12) * 4)
        run.close("gradient", row["gradient of this loss alone"], column_means(micro), column_bound(9, micro))
    run.close("full batch", run.shown("full batch"), full, column_bound(9))

    run.close("total", run.shown("total"), dot(full, W), roundings(12) * 2)
    run.close("published", run.shown("w.grad", step=3), column_means(micros[-1]), column_bound(9, micros[-1]))
    assert run.answer("Which gradient is in w.grad") == "that of the last micro-batch only"
    run.close("repaired", run.shown("w.grad", step=4), full, column_bound(15))
    run.close("window", run.shown("w.grad", step=6), full, column_bound(9))

    for row, k in zip(run.table("stored losses", "graph nodes"), (1, 4, 16), strict=True):
        run.equal("stored", list(row.values()), [k, k * KEPT, k * KEPT, k * NODES])
    at_once = run.table("peak bytes", "peak if stored")
    for row, k in zip(at_once, (2, 4, 16), strict=True):
        run.equal("at once", [row["micro-batches"], row["bytes kept"], row["graph nodes"]], [k, KEPT, NODES])
        # Each loss and its gradient take less than 128 bytes.
        run.close("peak", row["peak bytes"], KEPT + GRADIENTS, 256)
        assert k * KEPT < row["peak if stored"] <= k * KEPT + GRADIENTS + 128 * k, row
        assert row["peak if stored"] > row["peak bytes"] == at_once[0]["peak bytes"]

    used = [row["batches in an update, of 938"] for row in run.table("batches in an update, of 938")]
    run.equal("batches", used, [batches_used(938, 5, True), batches_used(938, 5, False), 938])
    assert run.answer("batches contribute to any update") == str(used[0])
