"""y = (a b + c)^2, its gradients, and differences. The numbers of the lesson are of type double."""

from fractions import Fraction

DOUBLE = Fraction(1, 2**53)


def y(a, b, c):
    return (a * b + c) ** 2


def check(run):
    a, b, c = run.setting("values")
    s = a * b + c
    gradients = [2 * s * b, 2 * s * a, 2 * s]
    before = run.table("p", "s", "y")
    run.equal("values", [before[0][name] for name in "abcpsy"], [a, b, c, a * b, s, s * s])
    assert {before[1][name] for name in "abcpsy"} == {None}, before[1]

    up = Fraction(1, 1000)
    raised = y(a + up, b, c)
    # The squares are below 160^2. Their differences have a few roundings of this size.
    rounding = 8 * DOUBLE * 160**2
    run.equal("y before", run.shown("y before"), s * s)
    run.close("y after", Fraction(run.shown("y after")), raised, Fraction(1, 2 * 10**6) + rounding)
    run.close("change", run.shown("y after - y before"), raised - s * s, rounding)
    run.close("2 s b times 0.001", run.shown("2 s b times 0.001"), gradients[0] * up, rounding)
    run.close("answer", Fraction(run.answer("You raise a")), raised, Fraction(4, 10000))

    visits = run.table("visited", "value", "gradient")
    run.equal("visited values", [row["value"] for row in visits], [s * s, s, a * b, a, b, c])
    run.equal("visited gradients", [row["gradient"] for row in visits], [1, 2 * s, 2 * s, *gradients])

    pencil = run.table("chain rule", "by hand")
    run.equal("by hand", [row["by hand"] for row in pencil], gradients)
    run.equal("by the engine", [row["by the engine"] for row in pencil], gradients)
    for row, h in zip(run.table("h"), (Fraction(1, 10), Fraction(1, 100), up), strict=True):
        forward, central = row["(y(a+h) - y(a)) / h"], row["(y(a+h) - y(a-h)) / 2h"]
        run.close("forward difference", forward, (y(a + h, b, c) - s * s) / h, rounding / h)
        run.close("difference from both sides", central, gradients[0], rounding / h)
    run.equal("slopes", run.shown("slopes for a, b and c"), gradients)
