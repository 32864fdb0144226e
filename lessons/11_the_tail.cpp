// Lesson 11: what an epoch leaves over: the last window is not full, and the last test batch is not either.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lesson/lesson.hpp"
#include "tally.hpp"
#include "train.hpp"

using namespace tally;
using namespace tally::lesson;

// A linear problem, y = X w: the loss of some items, and the weights after training.
template <class S>
struct Problem {
    Array<S> X, y;
    Loss<Array<S>> loss(const Items& items, const Var<Array<S>>& w) const {
        const Var<Array<S>> x = rows(X, items).to(options().device),
                            target = rows(y, items).to(options().device);
        return mse(matmul(x, w), target);
    }
};

// 60 items of three numbers, and targets with some noise.
template <class S>
Problem<S> generated() {
    const std::uint64_t seed = options().seed;
    const Array<S> X = random_normal<S>({60, 3}, seed, 1, S(0), S(1));
    const Array<S> noise = random_normal<S>({60}, seed, 2, S(0), S(0.5));
    const Var<Array<S>> truth = Array<S>({3}, {1, -2, 3});
    return {X, (matmul(Var<Array<S>>(X), truth) + Var<Array<S>>(noise)).value()};
}

// What divides the gradient of a window: a number of micro-batches fixed beforehand, as in the published
// listing, or what has come, with a policy for a window that is not full.
enum class Rule { listing, scale, drop, carry };

template <class S>
struct Trained {
    std::vector<std::vector<S>> after;  // w at the end of each epoch
    std::int64_t updates = 0;
};

// From w = 0, `size` items at a time, an update after every n-th.
template <class S>
Trained<S> train(const Problem<S>& problem, Rule rule, std::int64_t size, int n, int epochs, double rate) {
    const auto w = parameter(Array<S>::zeros({problem.X.shape()[1]}, options().device));
    Sgd<S> sgd({w}, {.learning_rate = rate});
    const auto micro_batches = split(in_order(problem.X.shape()[0]), size);
    Trained<S> trained;
    if (rule == Rule::listing) {
        for (int epoch = 0; epoch < epochs; ++epoch) {
            for (std::size_t batch = 0; batch < micro_batches.size(); ++batch) {
                (problem.loss(micro_batches[batch], w).mean() / n).backward();
                if ((batch + 1) % std::size_t(n) != 0 && batch + 1 != micro_batches.size()) continue;
                sgd.step();
                sgd.zero_grad();
                ++trained.updates;
            }
            trained.after.push_back(w.value().to_vector());
        }
        return trained;
    }
    const Tail tail = rule == Rule::drop ? Tail::drop : rule == Rule::carry ? Tail::carry : Tail::scale;
    Window<S> window(sgd, {.micro_batches = n, .tail = tail});
    for (int epoch = 0; epoch < epochs; ++epoch) {
        for (const Items& items : micro_batches) {
            window.add(problem.loss(items, w));
            if (window.full()) window.finish();
        }
        window.flush();
        trained.after.push_back(w.value().to_vector());
    }
    trained.updates = window.updates();
    return trained;
}

template <class S>
Picture drawn() {
    Watch watch;
    auto w = parameter(Array<S>({3}, {0.5, -1.25, 0.75}, options().device));
    const Var<Array<S>> tail = Array<S>({2, 3}, {-1.5, 0.75, -0.625, -0.2466, -0.5010, -1.4250}, options().device);
    Picture picture("A tail of two micro-batches: divided by two, not by four");
    picture.name(w, "w");
    for (const auto& micro : split(tail, 1)) {
        auto loss = mean(matmul(micro, w)) / 2;
        picture.name(micro, "1 row").name(loss, "loss / 2");
        picture.backward(loss);
    }
    return picture;
}

template <class S>
double furthest(const std::vector<S>& a, const std::vector<S>& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
    return most;
}

constexpr std::pair<Rule, const char*> rules[] = {{Rule::listing, "divided by N"},
                                                  {Rule::scale, "Tail::scale"},
                                                  {Rule::drop, "Tail::drop"},
                                                  {Rule::carry, "Tail::carry"}};

template <class S>
void the_tail() {
    predict("60 000 images, 16 at a time, an update after every 4th. The last update of an epoch has",
            {"4 micro-batches", "2", "1"}, answer(2), "60000 / 16 = 3750, and 3750 / 4 = 937.5.");
    auto epoch = table({"images at a time", "batches", "each update", "updates", "the last has"});
    std::vector<std::int64_t> updates, last;
    for (const std::int64_t n : {1, 4}) {
        const auto micro_batches = split(in_order(60000), 64 / n);
        const auto windows = split(in_order(std::int64_t(micro_batches.size())), n);
        updates.push_back(std::int64_t(windows.size()));
        last.push_back(windows.back().count());
        epoch.row(64 / n, std::int64_t(micro_batches.size()), n, updates.back(), last.back());
        if (n == 4) check_equal("60000 / 16 micro-batches", std::int64_t(micro_batches.size()), 3750);
        if (n == 1) show("items in the last 64", micro_batches.back().count());
    }
    check_equal("938 updates either way", updates, {938, 938});
    check_equal("the tail: 3750 mod 4", last[1], 3750 % 4);

    predict("A published listing divides each loss by N = 4. The gradient of a tail of 2 is",
            {"right", "half of what it should be", "twice that"}, answer(2), "Two means, divided by four.");
    note("The toy's six rows, one at a time: 6 mod 4 = 2. The tail is rows 4 and 5.");
    const Var<Array<S>> tail =
        Array<S>({2, 3}, {-1.5, 0.75, -0.625, -0.2466, -0.5010, -1.4250}, options().device);
    const auto w = parameter(Array<S>({3}, {0.5, -1.25, 0.75}, options().device));
    code(1);
    for (const auto& row : split(tail, 1)) (mean(matmul(row, w)) / 4).backward();
    const std::vector<S> too_small = w.grad().to_vector();
    w.zero_grad();
    mean(matmul(tail, w)).backward();
    const std::vector<S> right = w.grad().to_vector();
    show("the listing's gradient", too_small);
    show("the mean over the tail", right);
    std::vector<S> half;
    for (const S component : right) half.push_back(component / 2);
    check_equal("exactly half", too_small, half);
    check_close("right", right, {-1.7466 / 2, 0.2490 / 2, -2.05 / 2}, gamma_bound<S>(9) * 2.05 / 2);
    const Picture picture = drawn<S>();
    graph("the-tail", picture.svg(), picture.dot());

    step("Four rules. What each of six rows counts in two epochs, by what it adds to w.");
    // Each row has a number of w for itself, and the loss -w: descent with rate 1 adds up what it counts.
    std::vector<S> identity(36);
    for (std::size_t i = 0; i < 6; ++i) identity[7 * i] = 1;
}

int main(int argc, char** argv) {
    return run(argc, argv, {.number = 11, .slug = "the-tail", .title = "the tail", .minutes = 20, .steps = 5},
               the_tail<float>, the_tail<double>);
}
