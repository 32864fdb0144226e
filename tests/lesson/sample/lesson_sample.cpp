// Shows a small lesson with all kinds of events, for tests of the kit. The environment variable SAMPLE_LESSON
// makes the lesson fail in a chosen way.
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "course/kit/lesson.hpp"

using namespace tally::lesson;

namespace {

std::string behaviour() {
    const char* asked = std::getenv("SAMPLE_LESSON");
    return asked == nullptr ? "" : asked;
}

struct Unfinished {  // a variable without a gradient
    bool has_grad() const { return false; }
    double grad() const { throw std::logic_error("no gradient"); }
};

template <class S> void sample() {
    const std::vector<S> full{S(-0.3536), S(0.020667), S(-0.6125)};
    const std::vector<S> sum{S(-1.0608), S(0.062), S(-1.8375)};

    step("One loss over all six rows, and its gradient. The σ² of it is ≤ 1.");
    code(2);
    const S first = S(0.140625);
    const S second = first * 2;

    show("w.grad", full);
    show("loss", first + second);
    show("before", gradient(Unfinished{}));
    graph("sample", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n", "digraph {}\n", "w -> loss");
    if (behaviour() == "fails") check("three is four", 3 == 4, "3 is not 4");

    step("Three micro-batches of 2 rows. The gradient is NOT cleared in between.");
    auto rows = table({"rows", "loss", "this micro-batch", "w.grad after it"});
    for (int k = 0; k < 3; ++k) {
        rows.row(std::to_string(2 * k) + "-" + std::to_string(2 * k + 1), S(0.1406) - S(k), full, sum);
    }

    predict("[-1.0608 0.0620 -1.8375] is the full-batch gradient times",
            {right("3"), wrong("1", "Nothing was cleared."), wrong("2", "That is the rows of a micro-batch."),
             wrong("6", "That is the rows of all."), wrong("no fixed factor", "Every row is there once.")},
            hint("Which rows are in it?", "Compare the weights of a row."),
            "each mean is divided by 2, the full one by 6");
    if (behaviour() == "abort") std::abort();
    if (behaviour() == "throws") throw std::runtime_error("[matmul] inner sizes differ: (2, 3) x (4)");
    if (behaviour() == "skips") skip("not today");
    const std::vector<S> thrice{full[0] * 3, full[1] * 3, full[2] * 3};
    check_close("sum of three = 3 x full", sum, thrice, 1.1e-6);

    if (behaviour() == "typed")
        predict("Half of 5 is", {right(2.5).within(0.01), wrong(5, "That is the sum.")},
                hint("What is twice that?", "5 / 2."), "5 / 2");
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

}  // namespace

int main(int argc, char** argv) {
    return run(argc, argv, {.number = 99, .slug = "sample", .title = "a sample", .minutes = 1, .steps = 5},
               sample<float>, sample<double>);
}
