// Lesson 1: computes an expression of three numbers and its gradients, by the engine and by hand.
#include "course/kit/talk.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct OneNumber {
    const std::vector<std::int64_t> numbers = setting("values");
    const double a_is = double(numbers[0]), b_is = double(numbers[1]), c_is = double(numbers[2]);
    const double s_is = a_is * b_is + c_is, y_is = s_is * s_is, slope = 2 * s_is * b_is;

    void talk() {
        auto a = parameter(real(a_is)), b = parameter(real(b_is)), c = parameter(real(c_is));

        step("Forward. a, b, c are parameters: numbers to be changed. Each step is remembered.");
        code(3);
        auto p = a * b;
        auto s = p + c;
        auto y = pow(s, 2);

        auto before = table({"", "a", "b", "c", "p", "s", "y"});
        before.row("value", a, b, c, p, s, y);
        before.row("gradient", gradient(a), gradient(b), gradient(c), gradient(p), gradient(s), gradient(y));
        note(
            "A gradient says how fast y moves when that number does. None is computed yet: nothing, printed "
            "-. It is not 0.");

        const double up = 0.001;
        predict(
            say("Raise a from {} to {}. y = {} becomes about", a_is, a_is + up, y_is),
            {right(y_is + slope * up).within(0.0004),
             wrong(y_is - slope * up, b_is < 0 && s_is > 0
                                          ? "The size is right. But p = a b, and b is negative."
                                          : "The size is right. Mind the signs of b and of s."),
             wrong(y_is + up, "y does not move as much as a: two operations lie between them."),
             wrong(y_is - up, "p moves b times as much as a, and y moves 2 s times as much as s."),
             wrong(y_is + b_is * up, say("So much s {}. y is its square, and moves 2 s times as much.",
                                         b_is < 0 ? "falls" : "rises")),
             wrong(y_is + 2 * s_is * up, "So it would be if p moved as much as a. p moves b times as much.")},
            hint("By how much does p = a b move, if a does by 0.001?",
                 say("First p, then s, then the square at s = {}: one after another.", s_is)),
            b_is == 0 ? "As b = 0, p does not move, whatever a is; and then nothing behind it does."
                      : say("As b = {}, p {} by {}; and y = s^2 moves 2 s = {} times as much as s.", b_is,
                            b_is < 0 ? "falls" : "rises", std::abs(b_is) * up, 2 * s_is));
        show("y before", y);
        show("y after", std::to_string(plain(a_is + up, b_is, c_is)));
        check_raised(up);

        step("y.backward(). From y to a, b, c: each operation passes its gradient on.");
        const auto name = [&](const Node& node) {
            return &node == y.node() ? "y = s^2" : &node == s.node() ? "s = p + c" : "p = a b";
        };
        const auto made = [&](const Node& node) {
            return &node == y.node()   ? "1: y moves as y does"
                   : &node == s.node() ? "the gradient of y, x 2 s"
                                       : "the gradient of s, x 1";
        };
        auto visits = table({"visited", "value", "gradient", "which is"});
        y.backward([&](const auto& visit) {
            visits.row(name(visit.node), visit.value, visit.gradient, made(visit.node));
        });
        visits.row("a", a, a.grad(), "the gradient of p, x b");
        visits.row("b", b, b.grad(), "the gradient of p, x a");
        visits.row("c", c, c.grad(), "the gradient of s, x 1");
        note(
            "A sum passes on what it gets, a product times the other factor, a square times twice its "
            "input.");
        graph("one-number", "y = (a b + c)^2: values go forward, gradients come back",
              [this](Picture& picture) { drawn(picture); });

        step("By hand. From y back to a, slopes are multiplied: 2 s, then 1 for the sum, then b.");
        const real dy_ds = 2 * real(s_is);
        auto hand = table({"", "chain rule", "by hand", "by the engine"});
        hand.row("dy/da", "2 s b", dy_ds * real(b_is), a.grad());
        hand.row("dy/db", "2 s a", dy_ds * real(a_is), b.grad());
        hand.row("dy/dc", "2 s", dy_ds, c.grad());
        check_equal(say("dy/da = {} ({})", 2 * s_is, b_is), a.grad(), dy_ds * real(b_is));
        check_equal(say("dy/db = {} ({})", 2 * s_is, a_is), b.grad(), dy_ds * real(a_is));
        check_equal(say("dy/dc = {}", 2 * s_is), c.grad(), dy_ds);

        step("A witness who knows no chain rule: nudge a by h, and look at y.");
        auto nudges = table({"h", "(y(a+h) - y(a)) / h", "(y(a+h) - y(a-h)) / 2h"});
        for (const double h : {0.1, 0.01, 0.001}) {
            const double above = plain(a_is + h, b_is, c_is), below = plain(a_is - h, b_is, c_is);
            nudges.row(h, (above - y_is) / h, (above - below) / (2 * h));
        }
        note(
            "From both sides a parabola shows its slope exactly, but for its last digits. Each nudged by h = "
            "1/1024:");
        const std::vector<double> slopes = nudged(1.0 / 1024);  // steps by a power of two are exact
        show("a, b, c", slopes);
        check_equal("nudging a", a.grad() + 0, real(slopes[0] + 0));
        check_equal("nudging b", b.grad() + 0, real(slopes[1] + 0));
        check_equal("nudging c", c.grad() + 0, real(slopes[2] + 0));  // + 0 turns -0 into 0
    }

    // Draws the graph with the value and the gradient of each number.
    void drawn(Picture& picture) const {
        auto a = parameter(real(a_is)), b = parameter(real(b_is)), c = parameter(real(c_is));
        auto p = a * b, s = p + c, y = pow(s, 2);
        picture.name(a, "a")
            .name(b, "b")
            .name(c, "c")
            .name(p, "p = a b")
            .name(s, "s = p + c")
            .name(y, "y = s^2");
        picture.backward(y);
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // Computes the same expression with plain numbers, for a check that does not use the chain rule.
    static double plain(double a, double b, double c) { return (a * b + c) * (a * b + c); }

    std::vector<double> nudged(double h) const {
        return {(plain(a_is + h, b_is, c_is) - plain(a_is - h, b_is, c_is)) / (2 * h),
                (plain(a_is, b_is + h, c_is) - plain(a_is, b_is - h, c_is)) / (2 * h),
                (plain(a_is, b_is, c_is + h) - plain(a_is, b_is, c_is - h)) / (2 * h)};
    }

    // At the point a + h, the parabola is b^2 h^2 above its tangent at a.
    void check_raised(double up) const {
        check_close(say("y {} by {} times {}", slope < 0 ? "falls" : "rises", std::abs(slope), up),
                    plain(a_is + up, b_is, c_is), y_is + slope * up, (b_is * b_is + 1) * up * up);
    }
};

const RegisterLesson<OneNumber> lesson({.number = 1,
                                        .slug = "one-number",
                                        .title = "one number",
                                        .minutes = 10,
                                        .steps = 5,
                                        .dtype = "float64",
                                        .parameters = {
                                            several("values", "a, b and c", {2, -3, 11}, -12, 12)}});

}  // namespace
