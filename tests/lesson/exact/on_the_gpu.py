"""The gradients of both devices, the waits of the CPU, and the bounds of the products."""

from exact_values import column_bound, column_means, X, roundings, scaled


def check(run):
    n, full = run.setting("micro"), column_means(X)
    for row, factor in zip(run.table("w.grad", "cpu", "cuda"), (1, n, 1), strict=True):
        for device in ("cpu", "cuda"):
            run.close(f"{row['w.grad']}, {device}", row[device], scaled(factor, full), scaled(factor, column_bound(15)))
        assert row["bits"] == "same" and row["cpu"] == row["cuda"], row

    sizes = [(6, 3, 1), (16, 16, 16), (17, 16, 16), (1024, 32, 16)]
    for row, (b, k, m) in zip(run.table("X times W", "multiply-adds"), sizes, strict=True):
        assert row["X times W"] == f"({b}, {k}) x ({k}, {m})", row
        run.equal("multiply-adds", row["multiply-adds"], b * k * m)
        run.close("by libraries", row["max|diff|"], 0, 2 * roundings(b + k + 3) * 2 * k / m)
        assert row["ordered"] == "same", row

    run.equal("the answer", float(run.answer("wait for the GPU")), 1)
    run.equal("waits", [row["it waits"] for row in run.table("the CPU does this")], [0, 1, n])
    cpu, cuda = run.table("max|w - w cpu|")
    run.equal("the CPU's own weights", cpu["max|w - w cpu|"], 0)
    run.close("the GPU's weights", cuda["max|w - w cpu|"], 0, 1e-5)
