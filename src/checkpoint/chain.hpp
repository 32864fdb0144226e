// Splits a chain of functions into checkpointed segments, given the number of segments or a memory limit.
// The last segment is not checkpointed, because backward() would immediately run this segment again.
//
//     Tensor y = checkpoint_sequential(layers, 4, x);
//     const auto cut = fit_into(layers, x, 64 << 20);   // measures each layer; to_string(cut) explains it
//     y = checkpoint_sequential(layers, cut.sizes, x);
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tally/autograd/observer.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

// A Chain is a list of functions that are called in sequence, such as the layers of a network.
template <class T> using Chain = std::vector<std::function<Var<T>(Var<T>)>>;

// Splits the layers into segments whose sizes differ by at most one. The longer segments come first.
std::vector<std::size_t> even_segments(std::size_t layers, std::size_t segments);
namespace detail {
std::vector<std::size_t> even_segments(std::size_t layers, std::size_t segments, const char* call);
std::size_t default_segment_count(std::size_t layers);  // the square root: the least memory for equal layers
template <class T> Var<T> run_chain(const Chain<T>& chain, std::size_t from, std::size_t to, Var<T> x) {
    for (; from < to; ++from) x = chain[from](std::move(x));
    return x;
}
void require_segments(const std::vector<std::size_t>& sizes, std::size_t layers);
}  // namespace detail

// Runs the chain in segments of the given sizes. All segments except the last are checkpointed.
template <class T>
Var<T> checkpoint_sequential(const Chain<T>& chain, const std::vector<std::size_t>& sizes, Var<T> x) {
    detail::require_segments(sizes, chain.size());
    std::size_t from = 0;
    for (std::size_t i = 0; i + 1 < sizes.size(); from += sizes[i++]) {
        const auto first = chain.begin() + static_cast<std::ptrdiff_t>(from);
        Chain<T> segment(first, first + static_cast<std::ptrdiff_t>(sizes[i]));
        x = checkpoint([segment = std::move(segment)](
                           const Var<T>& h) { return detail::run_chain(segment, 0, segment.size(), h); },
                       std::move(x));
    }
    return detail::run_chain(chain, from, chain.size(), std::move(x));
}

// Runs the chain in `segments` segments, by default in default_segment_count() segments.
template <class T> Var<T> checkpoint_sequential(const Chain<T>& chain, std::size_t segments, Var<T> x) {
    const auto sizes = detail::even_segments(chain.size(), segments, "checkpoint_sequential");
    return checkpoint_sequential(chain, sizes, std::move(x));
}

template <class T> Var<T> checkpoint_sequential(const Chain<T>& chain, Var<T> x) {
    return checkpoint_sequential(chain, detail::default_segment_count(chain.size()), std::move(x));
}

namespace detail {
// LayerBytes contains the measured memory of one layer.
struct LayerBytes {
    std::size_t internal = 0;                        // saved for backward(), without the input and the result
    std::size_t input = 0, result = 0;               // the sizes of the input and the result
    bool keeps_input = false, keeps_result = false;  // whether the layer's backward functions save them
    std::size_t transient = 0;                       // needed only during the forward or backward function
};

// A Segmentation contains the segments of a chain and their predicted cost.
struct Segmentation {
    std::vector<std::size_t> sizes;       // layers per segment
    std::size_t bytes = 0;                // the predicted peak, without parameters and their gradients
    std::size_t without_checkpoints = 0;  // the predicted peak without checkpoints
    std::size_t recomputed = 0;           // the number of layers that run again
};
}  // namespace detail

// Returns one line with the segments and the predicted peaks with and without checkpoints.
std::string to_string(const detail::Segmentation& cut);

namespace detail {
// Predicts the memory peak of a chain. While a segment runs, all earlier segments' inputs are in memory.
std::size_t predicted_bytes(const std::vector<LayerBytes>& layers, const std::vector<std::size_t>& sizes);
}  // namespace detail
// Returns the segments that recompute the fewest layers and need at most `bytes` of memory. If no segments
// fit, throws OutOfMemory with the smallest number of bytes that suffices.
detail::Segmentation fit_into(const std::vector<detail::LayerBytes>& layers, std::size_t bytes,
                              Device device = Device::cpu);

namespace detail {
// Measures each layer in two forward runs and one backward run. Parameters get no gradients. Resets the peak.
template <class T> std::vector<detail::LayerBytes> measure_layers(const Chain<T>& chain, const Var<T>& x) {
    struct SavedSet : Observer {
        std::set<std::pair<const memory::detail::Storage*, std::size_t>> buffers;
        void on_forward(const ForwardEvent& operation) override {
            for (const detail::ValueInfo& each : operation.saved)
                if (each.storage && memory::detail::memory_class(each.storage) == MemoryClass::saved)
                    buffers.emplace(each.storage, each.bytes);
        }
    };
    // These two values suspend the checkpointed function that may be running.
    const ScopedValue<Interceptor*> without_interceptor(context.interceptor, nullptr);
    const ScopedValue<bool> computing(skip_compute, false);
    const detail::EnableGrad recording;
    std::vector<detail::LayerBytes> measured;
    T value = x.value();
    const Device device = value.device();
    for (const auto& layer : chain) {
        const Var<T> input(value.clone(), detail::State::leaf);
        {
            const NoGrad off;
            value = layer(input).value();
        }
        const std::size_t before = memory::in_use(device);
        memory::reset_peak(device);
        SavedSet saved_set;
        detail::LayerBytes bytes;
        Var<T> total;
        {
            const Observer::Scope on(saved_set);
            const Var<T> result = layer(input);
            bytes.input = input.value().storage()->bytes;
            bytes.result = result.value().storage()->bytes;
            for (const auto& [storage, size] : saved_set.buffers) {
                if (storage == input.value().storage())
                    bytes.keeps_input = true;
                else if (storage == result.value().storage())
                    bytes.keeps_result = true;
                else
                    bytes.internal += size;
            }
            total = sum(result);
        }
        if (total.requires_grad()) grad(total, {input});
        const std::size_t peak = memory::peak(device) - before,
                          held = bytes.internal + (bytes.keeps_result ? bytes.result : 0);
        bytes.transient = peak - std::min(peak, held);
        measured.push_back(bytes);
    }
    return measured;
}
}  // namespace detail

template <class T> detail::Segmentation fit_into(const Chain<T>& chain, const Var<T>& x, std::size_t bytes) {
    return fit_into(detail::measure_layers(chain, x), bytes, x.value().device());
}

}  // namespace tally
