"""Sums, products and broadcasting of arrays of small numbers, in loops. No operation of the lesson rounds."""

from fractions import Fraction

W, B = [[1, 0], [-1, 3]], [Fraction(1, 2), Fraction(-1, 2)]
V = [[1, -2, 0, 3], [2, 1, -1, 0]]
ARRIVING = [1, 0, 2, -1, 0, 3, 1, 1, 2, -2, 0, 1]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]


def transposed(a):
    return [list(column) for column in zip(*a, strict=True)]


def flat(a):
    return [number for row in a for number in row]


def check(run):
    n = run.setting("items")
    x = [[2 * i + 1, 2 * i + 2] for i in range(n)]
    y = [[number + bias for number, bias in zip(row, B, strict=True)] for row in product(x, W)]
    run.equal("X", run.shown("X"), flat(x))
    run.equal("X W + b", run.shown("X W + b"), flat(y))

    # Each gradient is a sum over the elements of the result that use the value.
    ones = [[1, 1]] * n
    run.equal("b.grad", run.shown("b.grad"), [n, n])
    run.equal("W.grad", run.shown("W.grad", 3), flat(product(transposed(x), ones)))
    run.equal("X.grad", run.shown("X.grad", 3), flat(product(ones, transposed(W))))
    bias = run.answer("all numbers in X W + b")
    assert bias == f"[{n} {n}]", bias

    g = [[ARRIVING[(4 * i + j) % 12] for j in range(4)] for i in range(n)]
    run.equal("V", run.shown("V"), flat(V))
    run.equal("G", run.shown("G"), flat(g))
    run.equal("X.grad", run.shown("X.grad", 5), flat(product(g, transposed(V))))
    run.equal("V.grad", run.shown("V.grad"), flat(product(transposed(x), g)))

    run.equal("outer", run.shown("outer"), [i * 10 * j for i in (1, 2, 3) for j in (1, 2, 3)])
    run.equal("vector.grad", run.shown("vector.grad"), [6, 6, 6])

    p, q, arriving = [[1, 2, 3], [4, 5, 6]], [1, -1, 2, 3], range(24)
    to_p, to_q = [0] * 6, [0] * 4
    for i in range(2):
        for j in range(4):
            for k in range(3):
                to_p[3 * i + k] += arriving[12 * i + 3 * j + k] * q[j]
                to_q[j] += arriving[12 * i + 3 * j + k] * p[i][k]
    run.equal("p.grad", run.shown("numbers of p.grad"), to_p)
    run.equal("q.grad", run.shown("numbers of q.grad"), to_q)
    run.equal("elements", [row["elements"] for row in run.table("elements")], [6, 4, 24])
    run.equal("answer", Fraction(run.answer("How many elements")), 24)

    twice = [[2 * number for number in row] for row in y]
    to_w = flat(product(transposed(x), twice))
    run.equal("W.grad", run.shown("W.grad", 10), to_w)
    run.equal("one by one", run.shown("numbers of W.grad, one by one"), to_w)
