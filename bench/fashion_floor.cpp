// One update of lesson 16 (micro-batches of 16, four an update) by tally, against the least a program can do:
// GEMMs that add where they should, fused loops, and no autograd. The gradients are compared first. With a
// number: so many updates a round.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "bench/timing.hpp"
#include "tally.hpp"
#include "train.hpp"

namespace {

using namespace tally;
using bench::Contestant;

constexpr std::int64_t micro = 16, steps = 4, pixels = fashion_pixels, hidden = 512, classes = 10;
constexpr float rate = 1e-3f;

struct Freed {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t(64)); }
};
using Buffer = std::unique_ptr<float[], Freed>;

Buffer buffer(std::int64_t numbers) {
    auto* p = static_cast<float*>(
        ::operator new[](static_cast<std::size_t>(numbers) * sizeof(float), std::align_val_t(64)));
    std::fill_n(p, numbers, 0.f);
    return Buffer(p);
}

// Weights, gradients, and what a layer gives and gets back for a micro-batch.
struct FloorLayer {
    std::int64_t in, out;
    Buffer w = buffer(in * out), b = buffer(out), dw = buffer(in * out), db = buffer(out),
           y = buffer(micro * out), dy = buffer(micro * out);

    void multiply(const float* x) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, int(micro), int(out), int(in), 1, x, int(in),
                    w.get(), int(out), 0, y.get(), int(out));
    }
    void add_bias(bool relu) {
        for (std::int64_t r = 0; r < micro; ++r) {
            float* __restrict row = y.get() + r * out;
            const float* __restrict bias = b.get();
            if (relu)
                for (std::int64_t j = 0; j < out; ++j) row[j] = std::max(row[j] + bias[j], 0.f);
            else
                for (std::int64_t j = 0; j < out; ++j) row[j] += bias[j];
        }
    }
    // The mask of ReLU and the gradient of the bias in one pass.
    void mask_and_bias(bool relu, bool first) {
        float* __restrict sum = db.get();
        if (first) std::fill_n(sum, out, 0.f);
        for (std::int64_t r = 0; r < micro; ++r) {
            float* __restrict d = dy.get() + r * out;
            const float* __restrict value = y.get() + r * out;
            if (relu)
                for (std::int64_t j = 0; j < out; ++j) sum[j] += d[j] = value[j] > 0 ? d[j] : 0.f;
            else
                for (std::int64_t j = 0; j < out; ++j) sum[j] += d[j];
        }
    }
    void back_to_weights(const float* x, bool first) {
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, int(in), int(out), int(micro), 1, x, int(in),
                    dy.get(), int(out), first ? 0 : 1, dw.get(), int(out));
    }
    void back_to_input(float* dx) const {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, int(micro), int(in), int(out), 1, dy.get(),
                    int(out), w.get(), int(out), 0, dx, int(in));
    }
    static void descend(float* __restrict value, const float* __restrict gradient, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) value[i] -= rate * gradient[i];
    }
    void step() {
        descend(w.get(), dw.get(), in * out);
        descend(b.get(), db.get(), out);
    }
};

struct Floor {
    FloorLayer layers[3] = {{pixels, hidden}, {hidden, hidden}, {hidden, classes}};
    float loss = 0;

    // Softmax, cross-entropy and its gradient, of the mean over a whole batch.
    void loss_and_gradient(const std::int32_t* labels) {
        FloorLayer& last = layers[2];
        for (std::int64_t r = 0; r < micro; ++r) {
            const float* y = last.y.get() + r * classes;
            float* d = last.dy.get() + r * classes;
            const float largest = *std::max_element(y, y + classes);
            float total = 0;
            for (std::int64_t j = 0; j < classes; ++j) total += d[j] = std::exp(y[j] - largest);
            loss += std::log(total) - (y[labels[r]] - largest);
            for (std::int64_t j = 0; j < classes; ++j) d[j] *= 1 / (total * (micro * steps));
            d[labels[r]] -= 1.f / (micro * steps);
        }
    }
    void pass(const float* x, const std::int32_t* labels, bool first) {
        const float* in = x;
        for (int l = 0; l < 3; ++l) {
            layers[l].multiply(in);
            layers[l].add_bias(l < 2);
            in = layers[l].y.get();
        }
        loss_and_gradient(labels);
        for (int l = 2; l >= 0; --l) {
            layers[l].mask_and_bias(l < 2, first);
            layers[l].back_to_weights(l ? layers[l - 1].y.get() : x, first);
            if (l) layers[l].back_to_input(layers[l - 1].dy.get());
        }
    }
    void step() {
        for (FloorLayer& layer : layers) layer.step();
    }
};

// The same as in lesson 16.
struct Network {
    Linear<float> first{pixels, hidden, {1, 1}}, second{hidden, hidden, {1, 2}},
        last{hidden, classes, {1, 3}};

    std::vector<Tensor> all() const {
        return {first.weight, first.bias, second.weight, second.bias, last.weight, last.bias};
    }
    Tensor operator()(Tensor x) const {
        x = linear_relu(std::move(x), first.weight, first.bias);
        x = linear_relu(std::move(x), second.weight, second.bias);
        return linear(std::move(x), last.weight, last.bias);
    }
};

[[noreturn]] void fail(const char* what, double by) {
    std::printf("%s differ by %g\n", what, by);
    std::exit(1);
}

void compare(const char* what, const Floor& floor, const std::vector<const Array<float>*>& arrays,
             bool gradients, double bound) {
    double worst = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        const FloorLayer& layer = floor.layers[i / 2];
        const Buffer& expected =
            i % 2 == 0 ? (gradients ? layer.dw : layer.w) : (gradients ? layer.db : layer.b);
        const auto got = arrays[i]->span();
        for (std::size_t j = 0; j < got.size(); ++j)
            worst = std::max(worst, std::abs(double(got[j]) - double(expected[j])));
    }
    if (!(worst <= bound)) fail(what, worst);
    std::printf("%s: max|difference| %.1e\n", what, worst);
}

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t updates = argc > 1 ? std::atoll(argv[1]) : 10;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 101;
    const Pictures<float> data = generated_pictures<float>(updates * micro * steps, 1);
    const std::vector<Items> parts = split(in_order(data.count()), micro);

    Network network;
    Sgd<float> sgd(network.all(), {.learning_rate = rate});
    Window<float> window(sgd, {.total = double(micro * steps)});
    const auto add = [&](const Items& part) {
        window.add(cross_entropy(network(rows(data.images, part)), rows(data.labels, part)));
    };
    const auto by_tally = [&] {
        for (const Items& part : parts) {
            add(part);
            if (window.micro_batches() == steps) window.finish();
        }
    };

    Floor floor;
    const std::vector<Tensor> parameters = network.all();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const auto value = parameters[i].value().span();
        FloorLayer& layer = floor.layers[i / 2];
        std::copy(value.begin(), value.end(), (i % 2 == 0 ? layer.w : layer.b).get());
    }
    const auto floor_pass = [&](std::int64_t i) {
        floor.pass(data.images.data() + i * micro * pixels, data.labels.data() + i * micro, i % steps == 0);
    };
    const auto by_floor = [&] {
        for (std::int64_t i = 0; i < updates * steps; ++i) {
            floor_pass(i);
            if (i % steps == steps - 1) floor.step();
        }
    };

    std::vector<const Array<float>*> values, gradients;
    for (std::int64_t i = 0; i < steps; ++i) {
        add(parts[std::size_t(i)]);
        floor_pass(i);
    }
    for (const Tensor& parameter : parameters) {
        values.push_back(&parameter.value());
        gradients.push_back(&parameter.grad());
    }
    compare("gradients", floor, gradients, true, 1e-7);
    window.discard();
    by_tally();
    by_floor();
    compare("weights after a round", floor, values, false, 1e-6);

    const std::vector<Contestant> both{{"the floor", by_floor, 1, double(updates)},
                                       {"tally", by_tally, 1, double(updates)}};
    const auto times = bench::measure(both, rounds);
    std::printf("an update of 4 x 16 images, 784-512-512-10, in %d rounds of %d\n", rounds, int(updates));
    for (std::size_t i = 0; i < both.size(); ++i)
        std::printf("  %-10s %10.1f us   fastest %10.1f us   %6.3f x\n", both[i].name.c_str(),
                    bench::median(times[i]) / 1e3, *std::min_element(times[i].begin(), times[i].end()) / 1e3,
                    bench::times_longer(times[i], times[0]));
}
