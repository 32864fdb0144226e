// A small lesson with all kinds of events, for tests of the kit. The environment variable SAMPLE_LESSON makes
// it fail in a chosen way.
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "course/kit/talk.hpp"

static std::string behaviour() {
    const char* asked = std::getenv("SAMPLE_LESSON");
    return asked == nullptr ? "" : asked;
}

struct Unfinished {  // a variable without a gradient
    bool has_grad() const { return false; }
    double grad() const { throw std::logic_error("no gradient"); }
};

using namespace tally::lesson;

LESSON() {
    const std::vector<float> full{-0.3536f, 0.020667f, -0.6125f}, sum{-1.0608f, 0.062f, -1.8375f};

    step("One loss over all six rows, and its gradient. The σ² of it is ≤ 1.");
    code(2);
    const float first = 0.140625f;
    const float second = first * 2;

    show("w.grad", full, "loss", first + second, "before", gradient(Unfinished{}));
    graph("sample", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n", "digraph {}\n", "w -> loss");
    if (behaviour() == "fails") check("three is four", 3 == 4, "3 is not 4");

    step("Three micro-batches of 2 rows. The gradient is NOT cleared in between.");
    auto rows = table({"rows", "loss", "this micro-batch", "w.grad after it"});
    for (int k = 0; k < 3; ++k)
        rows.row(say("{}-{}", 2 * k, 2 * k + 1), 0.1406f - static_cast<float>(k), full, sum);

    ask("the-factor");
    if (behaviour() == "abort") std::abort();
    if (behaviour() == "throws") throw std::runtime_error("[matmul] inner sizes differ: (2, 3) x (4)");
    if (behaviour() == "skips") skip("not today");
    const std::vector<float> thrice{full[0] * 3, full[1] * 3, full[2] * 3};
    check_close("sum of three = 3 x full", sum, thrice, 1.1e-6);

    const auto ask_for_a_number = [] { ask("half"); };  // in a line that does not count as a step
    if (behaviour() == "typed")
        ask_for_a_number();
    else
        step("The way there.");
    double total = 0;
    for (auto i : progress("adding numbers", 1000)) {
        total += static_cast<double>(i);
        if (behaviour() == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long work
    }
    check_equal("0 + 1 + ... + 999", total, 499500.0);
    plot("a parabola", std::vector<double>{1, 4, 9, 16, 25, 36});
    if (behaviour() == "short") return;

    step("A cloud.");
    note("Points in the plane, one mark for each series.");
    plot("a cloud", {{"noise", {0, 1, 2, 3}, {1, -1, 2, 0}}, {"truth", {1.5}, {0.5}}});
}
