// A Tower is a network of layers h = tanh(h W). It counts the runs of its layers and measures memory.
#pragma once

#include <map>
#include <numeric>
#include <set>

#include "drawn.hpp"

namespace {
inline std::vector<real> numbers_of(const std::vector<Tensor>& weights, bool gradients) {
    std::vector<real> all;
    for (const Tensor& W : weights)
        for (const real number : gradients ? W.grad().to_vector() : W.value().to_vector())
            all.push_back(number);
    return all;
}

struct Tower {
    Tensor x;
    std::vector<Tensor> weights;
    Chain<Array<real>> layers;
    std::vector<int> runs;

    // Each layer applies h = tanh(h W) `deep` times.
    explicit Tower(std::size_t n, std::int64_t items = 16, std::int64_t width = 16, int deep = 1)
        : x(constant(drawn({items, width}, 0, 1))), runs(n) {
        for (std::size_t i = 0; i < n; ++i) {
            weights.push_back(parameter(drawn({width, width}, i + 1, 1.5 / std::sqrt(double(width)))));
            layers.push_back([this, i, deep, W = weights.back()](Tensor h) {
                ++runs[i];
                for (int times = 0; times < deep; ++times) h = tanh(matmul(h, W));
                return h;
            });
            weights.back().backward(
                Array<real>::zeros({width, width}, options().device));  // makes a gradient
        }
    }
    Tower(const Tower&) = delete;

    std::vector<real> gradients() const { return numbers_of(weights, true); }
};

// Shows the buffers that forward(x) saves: their number, their bytes, and the operations that read them.
template <class Forward> void show_saved(const char* title, const Tensor& x, const Forward& forward) {
    const SavedValues saved;
    const Tensor y = forward(x);
    Table all = table({"buffers", "bytes", title});
    struct Kind {
        std::string readers;
        std::set<const void*> buffers = {};
        std::size_t bytes = 0;
    };
    std::map<const void*, std::string> readers;
    for (const SavedValues::Entry& entry : saved.entries()) {
        std::string& text = readers[entry.storage];
        text += (text.empty() ? "" : ", ") + entry.op;
        text += entry.why == SavedValues::Why::parameter ? " (weights, in memory anyway)"
                : entry.why == SavedValues::Why::output  ? " (its result)"
                                                         : " (its operand)";
    }
    std::vector<Kind> kinds;  // in the order of the operations
    for (const SavedValues::Entry& entry : saved.entries()) {
        const std::string& text = readers[entry.storage];
        auto kind = std::find_if(kinds.begin(), kinds.end(), [&](auto& one) { return one.readers == text; });
        if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {text});
        if (kind->buffers.insert(entry.storage).second && entry.why != SavedValues::Why::parameter)
            kind->bytes += entry.bytes;
    }
    for (const Kind& kind : kinds) all.row(kind.buffers.size(), kind.bytes, kind.readers);
}
}  // namespace
