// Lesson 2: the gradient of a value used twice has two summands, so backward visits the newest node first.
#include "course/kit/talk.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct TheDiamond {
    const real a_is = setting("values");
    const int n = setting("steps");  // doublings

    void talk() {
        auto a = parameter(a_is);

        step("One number, used twice: b and c are both made of a, and meet in d.");
        code(3);
        auto b = 2 * a;
        auto c = pow(a, 2);
        auto d = b * c;
        auto values = table({"a", "b", "c", "d"});
        values.row(a, b, c, d);
        graph("the-diamond", "The diamond: two ways lead back to a, and what they bring is added",
              [this](Picture& picture) { drawn(picture); });

        const double by_b = 2 * c.item(), by_c = 2 * a_is * b.item();
        predict(say("Back to a come {} by way of b and {} by way of c. a.grad is", by_b, by_c),
                {right(by_b + by_c), wrong(by_b, "By way of b alone. What comes by c must not get lost."),
                 wrong(by_c, "The second has overwritten the first: a well-known bug of small engines."),
                 wrong((by_b + by_c) / 2,
                       "A mean would say that a moves d by one way or the other. It does by both."),
                 wrong(by_b * by_c, "Slopes are multiplied along a way. These are two ways."),
                 wrong(d.item(), "That is d itself, not how it moves.")},
                hint("Along which ways does a change of a reach d?",
                     "Along one way slopes are multiplied. Here two ways meet: do not multiply these."),
                "Move a a little: d moves because b moved, and d moves because c moved.");
        std::string order;
        auto visits = table({"visited", "gradient", "sends to a"});
        d.backward([&](const auto& visit) {
            const bool is_b = &visit.node == b.node(), is_c = &visit.node == c.node();
            order += is_b ? "b" : is_c ? "c " : "d ";
            if (is_b)
                visits.row("b = 2 a", visit.gradient, visit.gradient * 2);
            else if (is_c)
                visits.row("c = a^2", visit.gradient, visit.gradient * 2 * a_is);
            else
                visits.row("d = b c", visit.gradient, "nothing yet");
        });
        visits.row("a", a.grad(), "-");
        check("newest first", order == "d c b");
        check_equal("over b and over c, added", a.grad(), real(by_b + by_c));
        check_slope(a.grad());

        step("Now b = 2 a, c = b b, d = b c: b is read twice. A sweep of our own, in any order:");
        a.zero_grad();
        b = 2 * a;
        c = b * b;
        d = b * c;  // 8 a^3
        const auto swept = [b = b.item(), c = c.item()](std::string_view in_order) {
            real to_a = 0, to_b = 0, to_c = 0;
            for (const char node : in_order) {
                if (in_order == "dcb" && node == 'd') code(3);
                if (node == 'd') to_b += c, to_c += b;
                if (node == 'c') to_b += to_c * 2 * b;
                if (node == 'b') to_a += to_b * 2;
            }
            return to_a;
        };
        const real in_time = swept("dcb");
        show("a, b, c, d", Numbers({a.item(), b.item(), c.item(), d.item()}));
        note("to_a, to_b, to_c: what has come to each so far. Of d itself it is 1.");

        const double from_d = c.item(), from_c = 2 * b.item() * b.item();  // the two parts of b's gradient
        predict(
            "The sweep visits d, then b, then c. a gets",
            {right(2 * from_d),
             wrong(2 * (from_d + from_c), "That is the truth. But b sends before c has told it anything."),
             wrong(2 * from_c, "That is what c has to say, and it comes too late."),
             wrong(from_d, "So much b knows. It sends on 2 times that."),
             wrong(0, "b already knows something: d came first, and d reads b.")},
            hint(
                "When it is b's turn, who has told it something, and who has not?",
                say("Go through the three lines in that order, with b = {} and c = {}.", b.item(), c.item())),
            say("From d it hears {} at once. What c has to say comes too late to be passed on.", from_d));
        const real too_early = swept("dbc");
        d.backward();
        auto orders = table({"visited", "a gets"});
        orders.row("d, b, then c", too_early);
        orders.row("d, c, then b", in_time);
        orders.row("by the engine", a.grad());
        note("Nothing crashes. The number is wrong. A node (here b, c or d) must wait for all its readers.");
        check_equal("newest first: 24 a^2", a.grad(), 24 * a_is * a_is);
        check_equal("our own sweep, newest first", in_time, a.grad());
        check_equal("too early: a third of it", 3 * too_early, 24 * a_is * a_is);

        step("Backward a second time is refused; forward and backward a second time adds.");
        std::string refusal = "it was not refused";
        try {
            code(1);
            d.backward();
        } catch (const Error& error) {
            refusal = error.what();
        }
        note(refusal);
        note("Back through a product both factors are needed; then they are let go.");
        check("the refusal names the operation", refusal ==
                                                     "[backward] a backward pass has already used 'mul' and "
                                                     "freed its saved values; run the forward pass again");
        show("a.grad", gradient(a));
        code(1);
        (2 * a * (2 * a) * (2 * a)).backward();  // the same d, computed again
        show("a.grad", gradient(a));
        check_equal("two graphs, twice the gradient", a.grad(), 2 * 24 * a_is * a_is);
        a.zero_grad();
        show("after a.zero_grad()", gradient(a));
        check("no gradient, not 0", !a.has_grad());

        const double years = std::ldexp(1e-9, n) / 31557600;
        predict(say("x = x + x, {} times over: 2^{} paths. How many nodes does backward visit?",
                    n == 60 ? "sixty" : to_text(n), n),
                {right(say("{}", n)),
                 wrong(say("{}", 2 * n),
                       "Each is read twice. But it is visited once, with both gradients added."),
                 wrong(say("{}", n * n),
                       "Nobody looks at pairs of nodes: each waits for its readers, and is done."),
                 wrong(say("2^{}", n),
                       say("So many paths there are{}. A node adds them before it sends.",
                           years < 2 ? "" : say(", for {} years at a nanosecond each", std::lround(years))))},
                hint("How many nodes are there?", "A path is no node: many paths lead through one."),
                "Each x = x + x makes one node, and a node is visited once.");
        auto x = parameter(real(1));
        std::uint64_t paths = 1;
        auto top = x;
        for (int doubling = 0; doubling < n; ++doubling) {
            top = top + top;
            paths = paths + paths;  // twice as many
        }
        int visited = 0;
        top.backward([&](const auto&) { ++visited; });
        show("paths", std::to_string(paths));
        show("visits", visited);
        check_equal(say("{} visits", n), visited, n);
        check_equal("one for each path", x.grad(), real(std::ldexp(1.0, n)));
        check(say("paths: 2^{}", n), double(paths) == std::ldexp(1.0, n));
    }

    void drawn(Picture& picture) const {
        auto a = parameter(a_is);
        auto b = 2 * a;
        auto c = pow(a, 2);
        auto d = b * c;
        picture.name(a, "a").name(b, "b = 2 a").name(c, "c = a^2").name(d, "d = b c");
        picture.backward(d);
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    void check_slope(real slope) const {
        check_equal("by hand: d = 2 a^3, so 6 a^2", slope, 6 * a_is * a_is);
        const double h = 1.0 / 1024;  // the chord from a - h to a + h is steeper than the tangent by 2 h^2
        const double chord = (2 * std::pow(a_is + h, 3) - 2 * std::pow(a_is - h, 3)) / (2 * h);
        check_close("by nudging a", slope, chord, 2.1 * h * h);
    }
};

const RegisterLesson<TheDiamond> lesson({.number = 2,
                                         .slug = "the-diamond",
                                         .title = "the diamond",
                                         .minutes = 15,
                                         .steps = 6,
                                         .dtype = "float64",
                                         .parameters = {
                                             whole_number("values", "a", 5, 1, 9),
                                             whole_number("steps", "doublings x = x + x", 60, 5, 60)}});

}  // namespace
