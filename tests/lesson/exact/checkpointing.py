"""Counts buffers and layer runs by simulating the network layer by layer, without tally."""

BUFFER = 16 * 16 * 4  # bytes of the values of 16 items, in float32


def cut(n, k):
    """Returns the sizes of k segments that differ by at most one, longer ones first."""
    return [n // k + (i < n % k) for i in range(k)]


def in_segments(n, k):
    """Returns the most buffers and the runs of all layers. A buffer is the index of a layer's result; x is 0."""
    ends, at = [], 0
    for size in cut(n, k):
        at += size
        ends.append((at - size, at))
    first, last = ends[-1]
    saved = {begin for begin, _ in ends} | set(range(first, last + 1))
    runs, most = n, len(saved)
    for begin, end in reversed(ends):  # backward
        if (begin, end) != ends[-1]:
            runs += end - begin
            saved |= set(range(begin, end))  # its result is the input of the next segment
        most = max(most, len(saved))
        saved -= set(range(begin, end + 1))
    return most, runs


def from_x(n):
    """Forward records layer n. Backward then computes the input of each other layer from x and records the layer."""
    return n + sum((layer - 1) + 1 for layer in range(1, n))


def check(run):
    n = run.setting("items")
    root = next(r for r in range(1, n + 1) if r * r == n)
    run.equal("buffers", run.shown("buffers"), in_segments(n, root)[0])
    run.equal("layers begun", run.shown("layers begun"), in_segments(n, root)[1])
    assert (run.answer("How many buffers"), run.answer("Which k")) == (str(2 * root), str(root))

    plain = run.table("buffers", "kept for")
    run.equal("kept", [row["buffers"] for row in plain], [1, n - 1, n - 1, 1])  # x, results, weights, the last result
    run.equal("bytes", [row["bytes"] for row in plain], [BUFFER, (n - 1) * BUFFER, 0, BUFFER])
    kept = run.table("buffers", "kept when backward begins")
    run.equal("bytes before backward", sum(row["bytes"] for row in kept), in_segments(n, root)[0] * BUFFER)

    divisors = [k for k in range(1, n + 1) if n % k == 0]
    cuts = run.table("n", "k", "2n - n/k")
    run.equal("k", [row["k"] for row in cuts], divisors)
    for row in cuts:
        most, runs = in_segments(n, row["k"])
        run.equal("a row", [row["buffers"], row["k + n/k"], row["layers begun"], row["2n - n/k"]], [most, most, runs, runs])
    run.equal("at the root", run.shown("buffers of 64 layers in 8 segments, and of 100 in 10"), [in_segments(64, 8)[0], in_segments(100, 10)[0]])
    eight, least = run.shown("KiB with 8 segments, and the least")
    run.close("8 segments need at most one buffer more than the best number", eight, least, 1)
    assert least >= 16, "at least 16 buffers of 1 KiB are kept"

    ways = run.table("kept", "layers begun")
    run.equal("layers begun", [row["layers begun"] for row in ways], [n, in_segments(n, root)[1], from_x(n)])
    run.equal("buffers", [row["buffers"] for row in ways], [n + 1, 2 * root, 3])
    assert run.answer("Only the network's input x is kept") == str(from_x(n))
    run.equal("9 in 5", run.shown("9 in 5"), cut(9, 5))
    run.equal("10 in 4", run.shown("10 in 4"), cut(10, 4))
