// Lesson 2: backward multiplies the slopes of the operations, from the result to the inputs.
#include "course/kit/toy.hpp"

// The same expression without the engine.
static double plain(double a, double b, double c) { return (a * b + c) * (a * b + c); }

// Draws the graph with the value and the gradient of each number.
static void draw(Picture& picture, double a_is, double b_is, double c_is) {
    const Scalar a = parameter(a_is), b = parameter(b_is), c = parameter(c_is);
    const Scalar p = a * b, s = p + c, y = pow(s, 2);
    picture.name(a, "a").name(b, "b").name(c, "c");
    picture.name(p, "p = a b").name(s, "s = p + c").name(y, "y = s^2");
    picture.backward(y);
}

LESSON(several("values", "a, b and c", {2, -3, 11}, -12, 12)) {
    const std::vector<std::int64_t> numbers = setting("values");
    const Scalar a = parameter(double(numbers[0]));
    const Scalar b = parameter(double(numbers[1]));
    const Scalar c = parameter(double(numbers[2]));

    step("a, b and c are parameters: training changes them. We compute y = (a b + c)^2 in three operations.");
    code(3);
    const Scalar p = a * b;
    const Scalar s = p + c;
    const Scalar y = pow(s, 2);
    auto before = table({"", "a", "b", "c", "p", "s", "y"});
    before.row("value", a, b, c, p, s, y);
    before.row("gradient", gradient(a), gradient(b), gradient(c), gradient(p), gradient(s), gradient(y));
    note("The gradient of a number tells how fast y changes when this number changes.");
    note("The engine has not computed any gradient yet, so the table prints -. The sign - does not mean 0.");
    const double a_is = a.item(), b_is = b.item(), c_is = c.item(), s_is = s.item(), y_is = y.item();
    const double up = 0.001, two_s = 2 * s_is, change = two_s * b_is * up;
    const auto y_plus = [&](double by) { return short_number(y_is + by); };  // the answer, and five mistakes

    ask("raise-a", "a", a_is, "raised", a_is + up, "b", b_is, "s", s_is, "y", y_is, "right", y_plus(change),
        "opposite", y_plus(-change), "more", y_plus(up), "less", y_plus(-up), "only-p", y_plus(b_is * up),
        "only-s", y_plus(two_s * up));
    const double after = plain(a_is + up, b_is, c_is);
    show("y before", y, "y after", std::to_string(after), "y after - y before", after - y_is);
    show("2 s b times 0.001", change);
    // y is a parabola in a: at a + h it is b^2 h^2 above its tangent.
    check_close("y changes by 2 s b times 0.001", after - y_is, change, (b_is * b_is + 1) * up * up);

    step("y.backward() goes from y to a, b and c. Each operation passes gradients to its inputs.");
    const std::vector<std::string> operations{"y = s^2", "s = p + c", "p = a b"};
    const std::vector<std::string> made{"1: y itself", "the gradient of y, times 2 s",
                                        "the gradient of s, times 1"};
    auto visits = table({"visited", "value", "gradient", "computed as"});
    std::size_t visited = 0;
    const auto look = [&](const auto& visit) {
        visits.row(operations[visited], visit.value, visit.gradient, made[visited]);
        ++visited;
    };
    code(1);
    y.backward(look);  // calls look() at each operation
    visits.row("a", a, a.grad(), "the gradient of p, times b");
    visits.row("b", b, b.grad(), "the gradient of p, times a");
    visits.row("c", c, c.grad(), "the gradient of s, times 1");
    graph("one-number", "y = (a b + c)^2: values go forward, gradients come back",
          [&](Picture& picture) { draw(picture, a_is, b_is, c_is); });
    check("backward visits each operation once", visited == 3);

    step("The slope of y = s^2 is 2 s, that of s = p + c is 1, and that of p = a b is b: dy/da = 2 s b.");
    const double to_a = two_s * b_is, to_b = two_s * a_is, to_c = two_s;
    auto pencil = table({"", "chain rule", "by hand", "by the engine"});
    pencil.row("dy/da", "2 s b", to_a, a.grad());
    pencil.row("dy/db", "2 s a", to_b, b.grad());
    pencil.row("dy/dc", "2 s", to_c, c.grad());
    check_equal("by hand = by the engine", {a.grad(), b.grad(), c.grad()}, {to_a, to_b, to_c});

    step("Here is a check that does not use the chain rule: change a by h, and compute y again.");
    auto differences = table({"h", "(y(a+h) - y(a)) / h", "(y(a+h) - y(a-h)) / 2h"});
    for (const double h : {0.1, 0.01, 0.001}) {
        const double above = plain(a_is + h, b_is, c_is), below = plain(a_is - h, b_is, c_is);
        differences.row(h, (above - y_is) / h, (above - below) / (2 * h));
    }
    note("For a parabola, the quotient (y(a+h) - y(a-h)) / 2h is the slope. h = 1/1024 causes no rounding:");
    const double h = 1.0 / 1024;
    const double by_a = (plain(a_is + h, b_is, c_is) - plain(a_is - h, b_is, c_is)) / (2 * h);
    const double by_b = (plain(a_is, b_is + h, c_is) - plain(a_is, b_is - h, c_is)) / (2 * h);
    const double by_c = (plain(a_is, b_is, c_is + h) - plain(a_is, b_is, c_is - h)) / (2 * h);
    show("slopes for a, b and c", {by_a, by_b, by_c});
    check_close("the slopes are the gradients", {by_a, by_b, by_c}, {a.grad(), b.grad(), c.grad()}, 0.0);
}
