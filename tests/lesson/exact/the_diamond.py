"""Gradients of d = 2 a^3 and d = 8 a^3, the wrong order of visits, and the number of paths. All numbers are exact in double."""

from fractions import Fraction


def check(run):
    a, n = run.setting("values"), run.setting("steps")
    values = run.table("a", "b", "c", "d")[0]
    run.equal("values", [values[name] for name in "abcd"], [a, 2 * a, a**2, 2 * a**3])

    visits = run.table("visited", "passes to a")
    run.equal("gradients", [row["gradient"] for row in visits], [1, 2 * a, a**2, 6 * a**2])
    run.equal("passed to a", [row["passes to a"] for row in visits[1:3]], [4 * a**2, 2 * a**2])
    run.equal("answer", Fraction(run.answer("Through b")), 6 * a**2)

    b, c = 2 * a, 4 * a**2
    run.equal("second diamond", run.shown("a, b, c, d"), [a, b, c, b * c])
    complete = c + b * 2 * b  # the gradient of b, from d and from c
    received = [row["a receives"] for row in run.table("visited", "a receives")]
    run.equal("orders", received, [2 * c, 2 * complete, 24 * a**2])
    run.equal("answer", Fraction(run.answer("Suppose that backward visits")), 2 * c)

    run.equal("a.grad", run.shown("a.grad"), 24 * a**2)
    run.equal("second backward", run.shown("a.grad after the second backward()"), 48 * a**2)
    run.equal("answer", Fraction(run.answer("We did not call zero_grad")), 48 * a**2)
    assert run.shown("a.grad after a.zero_grad()") is None, run.shown("a.grad after a.zero_grad()")

    run.equal("paths", Fraction(run.shown("paths from x to the last sum")), 2**n)
    years = Fraction(2**n, 10**9 * 31557600)
    run.close("years", run.shown("years, at one nanosecond per path"), years, years / 10**15)
    run.equal("visits", run.shown("visits"), n)
    run.equal("x.grad", run.shown("x.grad"), 2**n)
    run.equal("answer", Fraction(run.answer("How many operations")), n)
