// one_training() returns the weights of a small training run as one number, which is equal in all builds.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "tally/base/checksum.hpp"
#include "tally/base/random.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

namespace tally::test {

// These numbers must be equal for all compilers, optimisation levels and processors (tests/bits/compare).
inline constexpr std::uint64_t weights_in_float = 0xf95554f4fcc93d69, weights_in_double = 0xa80f2fd96041fcf5;

// Trains a model with convolution, attention, norms, dropout and all activations for five updates.
template <class S> std::uint64_t one_training() {
    const auto numbers = [](const Shape& shape, std::uint64_t stream) {
        std::vector<S> values(shape.size());
        random::detail::fill_normal<S>(values, 7, stream);
        return Array<S>(shape, values);
    };
    const std::int64_t items = 30;
    const Array<S> images = numbers({items, 2, 9, 9}, 100);
    std::vector<std::int32_t> classes;
    for (std::int32_t i = 0; i < items; ++i) classes.push_back(i * i % 10);
    const Array<std::int32_t> labels({items}, classes);

    Sequential<S> pixels(Conv2d<S>(2, 6, 3, {1, 1}), GELU<S>(), MaxPool2d<S>(2), Conv2d<S>(6, 16, 2, {1, 2}),
                         Tanh<S>());
    SelfAttention<S> attention(16, 4, {1, 3});
    Sequential<S> head(LayerNorm<S>(16), Flatten<S>(), Dropout<S>(0.2, 5), Linear<S>(64, 300, {1, 4}),
                       ReLU<S>(), Linear<S>(300, 10, {1, 5}));
    std::vector<Var<Array<S>>> parameters = pixels.parameters();
    for (Module<S>* part : std::initializer_list<Module<S>*>{&attention, &head})
        for (const auto& p : part->parameters()) parameters.push_back(p);
    Adam<S> adam(parameters, {.learning_rate = 3e-3});
    Window<S> window(adam, {.max_norm = 1.0, .schedule = Schedule::cosine(3e-3, 5, 1e-4), .seed = 11});
    for (int update = 0; update < 5; ++update) {
        for (const Items& micro : split(Items::in_order(items), {7, 1, 12, 10})) {
            ForwardPass& pass = window.begin_micro_batch(micro.count());
            Var<Array<S>> h = pixels(constant(rows(images, micro)), pass);
            h = permute(reshape(h, detail::Axes{micro.count(), 16, -1}), {0, 2, 1});
            h = head(attention(sigmoid(h) * 2, pass), pass);
            window.add(cross_entropy(h, rows(labels, micro), {.smoothing = 0.1}));
        }
        window.finish();
    }
    std::uint64_t all = 0;
    for (const auto& p : parameters)
        all = all * 31 + detail::checksum_of(p.value().data(), p.value().size() * sizeof(S));
    return all;
}

}  // namespace tally::test
