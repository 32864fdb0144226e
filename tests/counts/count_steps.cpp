// Counts the cost of a training step in buffers and bytes, and in instructions under callgrind.
//
//     count_steps            prints allocations and bytes of every step as lines: NAME WHAT NUMBER
//     count_steps NAME       runs the step `steps` times in counted_steps(), which callgrind measures
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tally/memory/pool.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

namespace {

using namespace tally;

constexpr int steps = 20;

struct Step {
    std::string name;
    std::function<void()> run;
};

Step toy() {
    const Tensor x = uniform<float>({6, 3}, -1, 1, {.seed = 1, .stream = 0});
    const Tensor w = parameter({0.5f, -1.25f, 0.75f});
    return {"toy", [=] {
                w.zero_grad();
                mean(matmul(x, w)).backward();
            }};
}

Step toy_in_three() {
    const Tensor x = uniform<float>({6, 3}, -1, 1, {.seed = 1, .stream = 0});
    const Tensor w = parameter({0.5f, -1.25f, 0.75f});
    return {"toy-in-three", [=] {
                w.zero_grad();
                for (const Tensor& micro : split(x, 2)) (mean(matmul(micro, w)) / 3).backward();
            }};
}

// The 128 operations process only 16 numbers, so nearly all time is spent in recording and in backward().
Step chain() {
    const Tensor x = parameter(uniform<float>({16}, -1, 1, {.seed = 1, .stream = 0}).value());
    return {"chain", [=] {
                x.zero_grad();
                Tensor y = x;
                for (int i = 0; i < 64; ++i) y = tanh(y * 0.5f);
                sum(y).backward();
            }};
}

Step chain_of_numbers() {
    const Scalar x = parameter(0.3);
    return {"chain-of-numbers", [=] {
                x.zero_grad();
                Scalar y = x;
                for (int i = 0; i < 200; ++i) y = tanh(y * 0.5 + x);
                y.backward();
            }};
}

// Makes an update with 2 micro-batches of 4 rows. The network is so small that no product uses BLAS.
Step small_network() {
    struct State {
        Linear<float> first{16, 16, {1, 1}}, last{16, 10, {1, 2}};
        Sgd<float> sgd{{first.weight, first.bias, last.weight, last.bias}, {.learning_rate = 1e-3}};
        Window<float> window{sgd, {.micro_batches = 2, .total = 8}};
        Array<float> x = uniform<float>({8, 16}, -1, 1, {.seed = 1, .stream = 3}).value();
        Array<std::int32_t> labels{{8}, {0, 1, 2, 3, 4, 5, 6, 7}};
    };
    const auto s = std::make_shared<State>();
    return {"small-network", [s] {
                for (std::int64_t from = 0; from < 8; from += 4) {
                    Tensor x = linear_relu(constant(s->x.slice_rows(from, from + 4)), s->first.weight,
                                           s->first.bias);
                    x = linear(std::move(x), s->last.weight, s->last.bias);
                    s->window.add(cross_entropy(std::move(x), s->labels.slice_rows(from, from + 4)));
                }
                s->window.finish();
            }};
}

// Adds up the bytes that operations write, and the bytes that they save for backward.
struct Moved : Observer {
    std::size_t written = 0, kept = 0;
    void on_forward(const ForwardEvent& operation) override {
        written += detail::output_bytes(operation);
        kept += detail::newly_saved_bytes(operation);
    }
};

void count(const Step& step) {
    step.run();  // allocates gradients and fills the cache
    step.run();
    memory::reset_peak();
    const memory::Report before = memory::report();
    step.run();
    const memory::Report after = memory::report();
    Moved moved;
    {
        const Observer::Scope looking(moved);
        step.run();
    }
    const auto print = [&](const char* what, std::uint64_t number) {
        std::printf("%s %s %llu\n", step.name.c_str(), what, static_cast<unsigned long long>(number));
    };
    print("buffers", after.allocations - before.allocations);
    if (!TALLY_ASAN)  // AddressSanitizer disables the cache to find uses after free
        print("new-buffers", after.allocations - after.reused - (before.allocations - before.reused));
    print("bytes-written", moved.written);
    print("bytes-kept", moved.kept);
    print("peak-bytes", after.peak - before.in_use);
}

}  // namespace

extern "C" [[gnu::noinline]] void counted_steps(const std::function<void()>& run) {
    for (int i = 0; i < steps; ++i) run();
}

int main(int argc, char** argv) {
    const std::vector<Step> all{toy(), toy_in_three(), chain(), chain_of_numbers(), small_network()};
    for (const Step& step : all) {
        if (argc == 1) count(step);
        if (argc == 1 || step.name != argv[1]) continue;
        step.run();
        step.run();
        counted_steps(step.run);
        std::printf("%d\n", steps);
        return 0;
    }
    return argc == 1 ? 0 : 2;
}
