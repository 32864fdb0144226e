// Lesson 3: a value that is used twice receives two gradients, and they add up.
#include "course/kit/toy.hpp"

static void draw(Picture& picture, double a_is) {
    const Scalar a = parameter(a_is);
    const Scalar b = 2 * a, c = pow(a, 2), d = b * c;
    picture.name(a, "a").name(b, "b = 2 a").name(c, "c = a^2").name(d, "d = b c");
    picture.backward(d);
}

LESSON(whole_number("values", "a", 5, 1, 9), whole_number("steps", "doublings x = x + x", 60, 5, 60)) {
    const double a_is = setting("values");
    const int n = setting("steps");
    const Scalar a = parameter(a_is);

    step("One number is used twice: b and c are both computed from a. Then d is computed from b and c.");
    code(3);
    Scalar b = 2 * a;
    Scalar c = pow(a, 2);
    Scalar d = b * c;
    auto values = table({"a", "b", "c", "d"});
    values.row(a, b, c, d);
    graph("the-diamond", "The diamond: two paths lead back to a, and their gradients add up",
          [&](Picture& picture) { draw(picture, a_is); });
    const double by_b = c.item() * 2, by_c = b.item() * 2 * a_is;

    ask("two-paths", "by-b", by_b, "by-c", by_c, "sum", by_b + by_c, "mean", (by_b + by_c) / 2, "product",
        by_b * by_c, "d", d.item());
    std::vector<double> gradients;  // in the order of the visits
    d.backward([&](const auto& visit) { gradients.push_back(visit.gradient); });
    auto visits = table({"visited", "gradient", "passes to a"});
    visits.row("d = b c", gradients.at(0), Numbers::not_there());
    visits.row("c = a^2", gradients.at(1), gradients.at(1) * 2 * a_is);
    visits.row("b = 2 a", gradients.at(2), gradients.at(2) * 2);
    visits.row("a", a.grad(), Numbers::not_there());
    check_equal("the newest value is visited first: d, c, b", gradients, {1.0, b.item(), c.item()});
    check_equal("d = 2 a^3, so the gradient is 6 a^2", a.grad(), 6 * a_is * a_is);

    step("Now c is computed from b: c = b^2. So both c and d use b, and d = b c = 8 a^3.");
    a.zero_grad();
    b = 2 * a;
    c = b * b;
    d = b * c;
    show("a, b, c, d", {a_is, b.item(), c.item(), d.item()});
    note("Our own backward pass visits d first: b receives the gradient c, and c receives the gradient b.");
    const double b_is = b.item(), c_is = c.item();
    code(3);
    double to_a = 0, to_b = c_is, to_c = b_is;  // after the visit of d
    const auto visit_c = [&] { to_b += to_c * 2 * b_is; };
    const auto visit_b = [&] { to_a += to_b * 2; };

    ask("wrong-order", "b", b_is, "c", c_is, "early", 2 * c_is, "all", 6 * c_is, "late", 4 * c_is);
    visit_b();
    visit_c();
    const double too_early = to_a;
    to_a = 0, to_b = c_is, to_c = b_is;
    visit_c();
    visit_b();
    d.backward();
    auto orders = table({"visited", "a receives"});
    orders.row("d, b, then c", too_early);
    orders.row("d, c, then b", to_a);
    orders.row("by the engine", a.grad());
    note("A wrong order of visits gives a wrong gradient, but no error. c uses b, so visit b after c.");
    const double slope = 24 * a_is * a_is;
    check_equal("d, c, b: 24 a^2; d, b, c: 8 a^2", {to_a, a.grad(), 3 * too_early}, {slope, slope, slope});

    step("You cannot call d.backward() twice: the first call has freed the factors of the products.");
    std::string message = "no error";
    try {
        code(1);
        d.backward();
    } catch (const Error& error) {
        message = error.what();
    }
    note(message);
    check("the error names the operation", message.find("already used 'mul'") != std::string::npos);
    show("a.grad", a.grad());
    note("Instead we compute d again, and call backward() on the new d:");
    code(2);
    b = 2 * a;
    (b * (b * b)).backward();

    ask("second-backward", "once", slope, "twice", 2 * slope, "first", slope / 4, "square", slope * slope);
    show("a.grad after the second backward()", a.grad());
    check_equal("two graphs, twice the gradient", a.grad(), 2 * slope);
    a.zero_grad();
    show("a.grad after a.zero_grad()", gradient(a));
    check("a has no gradient, not the gradient 0", !a.has_grad());

    step("Here is a graph with very many paths: x = x + x, repeated {} times.", n);
    const Scalar x = parameter(1.0);
    Scalar top = x;
    code(1);
    for (int doubling = 0; doubling < n; ++doubling) top = top + top;
    std::uint64_t paths = 1;
    for (int doubling = 0; doubling < n; ++doubling) paths = 2 * paths;
    show("paths from x to the last sum", paths);
    show("years, at one nanosecond per path", double(paths) * 1e-9 / 31557600);

    ask("visits", "n", n, "double", 2 * n, "square", n * n);
    int visited = 0;
    top.backward([&](const auto&) { ++visited; });
    show("visits", visited, "x.grad", x.grad());
    check_equal("one visit per sum", visited, n);
    check_equal("x.grad counts the paths", x.grad(), double(paths));
}
