// What {.overlap = true} hides of the sums of a window: the same training with and without it, update by update in turn.
// usage: mpirun -n 2 bench_overlap [LAYERS WIDTH ITEMS UPDATES]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/timing.hpp"
#include "tally/core.hpp"
#include "tally/processes.hpp"
#include "tally/train.hpp"

namespace {

using namespace tally;

double seconds() {
    using Clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Square layers, one bucket for each, and windows of two micro-batches.
struct Training {
    std::vector<Tensor> weights;
    Sgd<float> sgd;
    Ranks<float> ranks;
    Window<float> window;
    std::vector<double> all, in_finish;

    Training(Processes& processes, bool overlap, int layers, int width)
        : weights(drawn(layers, width)),
          sgd(weights, {.learning_rate = 1e-3}),
          ranks(processes, {.bucket = static_cast<std::size_t>(width) * static_cast<std::size_t>(width),
                            .overlap = overlap}),
          window(sgd, {.micro_batches = 2}, &ranks) {}
    static std::vector<Tensor> drawn(int layers, int width) {
        std::vector<Tensor> weights;
        for (int i = 0; i < layers; ++i)
            weights.push_back(parameter(random_uniform<float>(
                {width, width}, {.seed = 1, .stream = std::uint64_t(i)}, -0.05F, 0.05F)));
        return weights;
    }
    void update(const Array<float>& x) {
        const double begin = seconds();
        for (int micro = 0; micro < 2; ++micro) {
            Tensor h = constant(x);
            for (const Tensor& weight : weights) h = relu(matmul(h, weight));
            window.add({sum(h * h), constant(Array<float>::full({}, 1))});
        }
        const double computed = seconds();
        window.finish();
        all.push_back(seconds() - begin);
        in_finish.push_back(seconds() - computed);
    }
};

}  // namespace

int main(int count, char** words) {
    const auto number = [&](int i, int otherwise) { return count > i ? std::atoi(words[i]) : otherwise; };
    const int layers = number(1, 8), width = number(2, 512), items = number(3, 256), updates = number(4, 30);
    Processes processes({.patience = 60});
    const Array<float> x =
        random_uniform<float>({items, width}, {.seed = 2, .stream = std::uint64_t(processes.rank())}, 0, 1);
    Training apart(processes, false, layers, width), overlapped(processes, true, layers, width);
    for (int update = -1; update < updates; ++update) {
        for (Training* training : {&apart, &overlapped}) {
            processes.meet("an update");
            training->update(x);
            if (update < 0) training->all.clear(), training->in_finish.clear();  // the first one warms up
        }
    }
    overlapped.ranks.expect_same_weights();
    if (processes.rank() != 0) return 0;
    for (const Training* training : {&apart, &overlapped})
        std::printf("%s: %.1f ms an update, %.1f of them in finish()\n",
                    training == &apart ? "at the window's end" : "while backward runs",
                    1e3 * bench::median(training->all), 1e3 * bench::median(training->in_finish));
    std::printf(
        "%.0f %% of the bytes went while backward ran\n",
        200.0 * static_cast<double>(processes.sent().early) / static_cast<double>(processes.sent().numbers));
}
