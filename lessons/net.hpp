// A Net is a network of layers tanh(h W), which Adam trains to return 0 for every input.
#pragma once

#include <chrono>

#include "drawn.hpp"

namespace {
inline Tensor random_items(std::int64_t items, std::int64_t width) {
    return constant(drawn({items, width}, 0, 1));
}

struct Net {
    std::vector<Tensor> weights;
    Chain<Array<real>> layers;
    Adam<real> adam;

    Net(std::size_t layer_count, std::int64_t width)
        : weights(drawn_weights(layer_count, width)), adam(weights) {
        for (const Tensor& W : weights) layers.push_back([W](const Tensor& h) { return tanh(matmul(h, W)); });
    }
    std::vector<real> numbers() const {
        std::vector<real> all;
        for (const Tensor& W : weights)
            for (const real number : W.value().to_vector()) all.push_back(number);
        return all;
    }

private:
    static std::vector<Tensor> drawn_weights(std::size_t layer_count, std::int64_t width) {
        std::vector<Tensor> all;
        for (std::size_t i = 0; i < layer_count; ++i)
            all.push_back(parameter(drawn({width, width}, i + 1, 1.5 / std::sqrt(double(width)))));
        return all;
    }
};

inline std::size_t bytes_of(const Tensor& x) { return x.value().storage()->bytes; }

// Returns the most bytes in use while f runs, beyond those in use before.
template <class F> std::size_t peak_of(const F& f) {
    const Device device = options().device;
    const std::size_t before = memory::in_use(device);
    memory::reset_peak(device);
    f();
    return memory::peak(device) - before;
}

// Returns the shortest time of five runs of f, in milliseconds.
template <class F> double quickest_of_five(const F& f) {
    double quickest = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 5; ++round) {
        const auto start = std::chrono::steady_clock::now();
        f();
        const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
        quickest = std::min(quickest, time.count());
    }
    return quickest;
}

struct AtPeak {
    std::size_t weights, gradients, averages, saved, all;  // bytes
    std::vector<real> trained;
    std::string svg, strip;
};
// Makes two updates of a new Net by update(net, x, each, 1), and returns what is in use at the peak of the second.
template <class Update> AtPeak second_update(const Tensor& x, std::int64_t each, const Update& update) {
    const Device device = options().device;
    Net net(4, 32);
    update(net, x, each, 1);
    const std::size_t between = memory::report(device).in_use_by[int(MemoryClass::temporary)] - bytes_of(x);
    memory::reset_peak(device);
    const Timeline timeline(device);
    update(net, x, each, 1);
    const auto& [weights, gradients, saved, temporary] = timeline.peak().at.in_use_by;
    return {weights,
            gradients,
            between,
            saved,
            timeline.peak().bytes,
            net.numbers(),
            timeline.svg("One update of 64 items: bytes in use", {"Adam's averages", between}),
            timeline.strip({.columns = 60, .ascii = true})};
}

// Limits the memory of the device to `bytes` while it exists.
struct Budget {
    explicit Budget(std::size_t bytes) {
        memory::drop_cache(options().device);
        memory::set_budget(bytes, options().device);
    }
    ~Budget() {
        memory::drop_cache(options().device);
        memory::set_budget(0, options().device);
    }
};

// Formats the memory report like an out-of-memory message of PyTorch.
inline std::string in_words_of_pytorch(std::size_t asked) {
    using tally::detail::format_bytes;
    const memory::Report now = memory::report(options().device);
    return say("Tried to allocate {} ({} total capacity; {} already allocated; {} free)", format_bytes(asked),
               format_bytes(now.budget), format_bytes(now.in_use),
               format_bytes(now.budget - now.in_use - now.cached));
}
}  // namespace
