// Lesson 1: one expression of three numbers, forward and backward, by the engine and by hand.
#include "tally/lesson/talk.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct OneNumber {
    void talk() {
        auto a = parameter(real(2)), b = parameter(real(-3)), c = parameter(real(11));

        step("Forward. a, b, c are parameters. The engine remembers how each number was made.");
        code(3);
        auto p = a * b;
        auto s = p + c;
        auto y = pow(s, 2);

        auto before = table({"", "a", "b", "c", "p", "s", "y"});
        before.row("value", a, b, c, p, s, y);
        before.row("gradient", gradient(a), gradient(b), gradient(c), gradient(p), gradient(s), gradient(y));
        note("A gradient that has not been computed is nothing, printed -. It is not 0.");

        predict(
            "Raise a from 2 to 2.001. y = 25 becomes about",
            {right(24.97).within(0.0005), wrong(25.03, "The size is right. But p = a b, and b is negative."),
             wrong(25.001, "y does not move as much as a: two operations lie between them."),
             wrong(24.999, "p moves b times as much as a, and y moves 2 s times as much as s."),
             wrong(24.997, "So much s falls. y is its square, and moves more."),
             wrong(25.01, "So it would be if p moved as much as a. p moves b times as much.")},
            hint("By how much does p = a b move, if a does by 0.001?",
                 "First p, then s, then the square at s = 5: one after another."),
            "As b = -3, p falls by 0.003; and y = s^2 moves 2 s = 10 times as much as s.");
        show("y before", y);
        show("y after", plain(2.001, -3, 11));
        check_close("y falls by 30 times 0.001", plain(2.001, -3, 11), y.item() - 30 * 0.001, 1e-5);

        step("y.backward(). From y to a, b, c: each operation passes its gradient on.");
        const auto name = [&](const Node& node) {
            return &node == y.node() ? "y = s^2" : &node == s.node() ? "s = p + c" : "p = a b";
        };
        const auto made = [&](const Node& node) {
            return &node == y.node() ? "it is y" : &node == s.node() ? "y's x 2 s" : "s's x 1";
        };
        auto visits = table({"visited", "value", "gradient", "which is"});
        y.backward([&](const auto& visit) {
            visits.row(name(visit.node), visit.value, visit.gradient, made(visit.node));
        });
        visits.row("a", a, a.grad(), "p's x b");
        visits.row("b", b, b.grad(), "p's x a");
        visits.row("c", c, c.grad(), "s's x 1");
        graph("one-number", "y = (a b + c)^2: values go forward, gradients come back", drawn);

        step("By hand. From y back to a, slopes are multiplied: 2 s, then 1 for the sum, then b.");
        const real dy_ds = 2 * (2 * -3 + 11);
        auto hand = table({"", "chain rule", "by hand", "by the engine"});
        hand.row("dy/da", "2 s b", dy_ds * -3, a.grad());
        hand.row("dy/db", "2 s a", dy_ds * 2, b.grad());
        hand.row("dy/dc", "2 s", dy_ds, c.grad());
        check_equal("dy/da = 10 (-3)", a.grad(), dy_ds * -3);
        check_equal("dy/db = 10 (2)", b.grad(), dy_ds * 2);
        check_equal("dy/dc = 10", c.grad(), dy_ds);

        step("A witness who knows no chain rule: nudge a by h, and look at y.");
        auto nudges = table({"h", "(y(a+h) - y(a)) / h", "(y(a+h) - y(a-h)) / 2h"});
        for (const double h : {0.1, 0.01, 0.001}) {
            const double here = plain(2, -3, 11), above = plain(2 + h, -3, 11), below = plain(2 - h, -3, 11);
            nudges.row(h, (above - here) / h, (above - below) / (2 * h));
        }
        note("From both sides a parabola shows its slope exactly. With h = 1/1024:");
        check_slopes(a.grad(), b.grad(), c.grad());
    }

    // Value and gradient in every box.
    static void drawn(Picture& picture) {
        auto a = parameter(real(2)), b = parameter(real(-3)), c = parameter(real(11));
        auto p = a * b, s = p + c, y = pow(s, 2);
        picture.name(a, "a")
            .name(b, "b")
            .name(c, "c")
            .name(p, "p = a b")
            .name(s, "s = p + c")
            .name(y, "y = s^2");
        picture.backward(y);
    }

    // ---- the witness ----------------------------------------------------------------------------------------

    // The same expression on plain numbers, for a witness who knows no chain rule.
    static double plain(double a, double b, double c) { return (a * b + c) * (a * b + c); }

    static void check_slopes(real to_a, real to_b, real to_c) {
        const double h = 1.0 / 1024;  // a power of two: here nothing is rounded at all
        check_equal("nudging a", to_a, real((plain(2 + h, -3, 11) - plain(2 - h, -3, 11)) / (2 * h)));
        check_equal("nudging b", to_b, real((plain(2, -3 + h, 11) - plain(2, -3 - h, 11)) / (2 * h)));
        check_equal("nudging c", to_c, real((plain(2, -3, 11 + h) - plain(2, -3, 11 - h)) / (2 * h)));
    }
};

const Given<OneNumber> lesson({.number = 1,
                               .slug = "one-number",
                               .title = "one number",
                               .minutes = 10,
                               .steps = 5,
                               .dtype = "float64"});

}  // namespace
