// Splits a chain of layers into segments, and predicts the memory that the segments need.
#include "tally/checkpoint/chain.hpp"

#include <cmath>
#include <numeric>
#include <optional>

#include "tally/base/error.hpp"
#include "tally/base/text.hpp"

namespace tally {

std::vector<std::size_t> even_segments(std::size_t layers, std::size_t segments) {
    return detail::even_segments(layers, segments, "even_segments");
}

std::vector<std::size_t> detail::even_segments(std::size_t layers, std::size_t segments, const char* call) {
    detail::require(layers > 0, call, "the chain has no layers; add at least one");
    detail::require(segments > 0 && segments <= layers, call, layers, layers == 1 ? " layer" : " layers",
                    " cannot be cut into ", segments, " segments; choose ",
                    layers == 1 ? "" : "between 1 and ", layers);
    std::vector<std::size_t> sizes(segments, layers / segments);
    for (std::size_t i = 0; i < layers % segments; ++i) ++sizes[i];
    return sizes;
}

std::size_t detail::default_segment_count(std::size_t layers) {
    return std::max<std::size_t>(
        1, static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(layers)))));
}

void detail::require_segments(const std::vector<std::size_t>& sizes, std::size_t layers) {
    const std::size_t sum = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    if (sizes.empty()) throw Error("checkpoint_sequential", "the list of segments is empty");
    if (std::find(sizes.begin(), sizes.end(), 0u) != sizes.end())
        throw Error("checkpoint_sequential", "a segment has 0 layers; pass at least 1 for each");
    if (sum != layers)
        throw Error("checkpoint_sequential", "the segments have ", sum, " layers, the chain has ", layers);
}

namespace {

// Returns the peak of a segment: the input, all saved values, and the largest transient memory of a layer. If the
// segment runs again, the gradient of its result is in memory, too.
std::size_t segment_peak(const std::vector<detail::LayerBytes>& layers, std::size_t from, std::size_t to) {
    std::size_t held = layers[from].input, transient = 0;
    for (std::size_t i = from; i < to; ++i) {
        held += layers[i].internal;
        if (layers[i].keeps_result || (i + 1 < to && layers[i + 1].keeps_input)) held += layers[i].result;
        transient = std::max(transient, layers[i].transient);
    }
    return held + transient + (to < layers.size() ? layers[to - 1].result : 0);
}

}  // namespace

std::size_t detail::predicted_bytes(const std::vector<detail::LayerBytes>& layers,
                                    const std::vector<std::size_t>& sizes) {
    std::size_t peak = 0, snapshot_bytes = 0, from = 0;
    for (const std::size_t size : sizes) {
        peak = std::max(peak, snapshot_bytes + segment_peak(layers, from, from + size));
        snapshot_bytes += layers[from].input;
        from += size;
    }
    return peak;
}

namespace {

std::optional<detail::Segmentation> cut_within(const std::vector<detail::LayerBytes>& layers,
                                               std::size_t bytes) {
    const std::size_t n = layers.size();
    // A snapshot is the input of a segment. If the layers [0, i) can be cut into segments that fit,
    // snapshot_bytes[i] is the smallest size of their snapshots, and begins[i] is the first layer of the last
    // segment. Fewer bytes are always better, because they leave more memory for later segments.
    std::vector<std::optional<std::size_t>> snapshot_bytes(n);
    std::vector<std::size_t> begins(n);
    snapshot_bytes[0] = 0;
    for (std::size_t to = 0; to < n; ++to) {
        for (std::size_t from = 0; from < to; ++from) {
            if (!snapshot_bytes[from] || *snapshot_bytes[from] + segment_peak(layers, from, to) > bytes)
                continue;
            const std::size_t held = *snapshot_bytes[from] + layers[from].input;
            if (snapshot_bytes[to] && *snapshot_bytes[to] <= held) continue;
            snapshot_bytes[to] = held;
            begins[to] = from;
        }
        // The last segment does not run again, so its earliest possible start minimises recomputation.
        if (!snapshot_bytes[to] || *snapshot_bytes[to] + segment_peak(layers, to, n) > bytes) continue;
        detail::Segmentation cut{.sizes = {n - to}, .recomputed = to};
        for (std::size_t end = to; end > 0; end = begins[end])
            cut.sizes.insert(cut.sizes.begin(), end - begins[end]);
        cut.bytes = detail::predicted_bytes(layers, cut.sizes);
        cut.without_checkpoints = detail::predicted_bytes(layers, {n});
        return cut;
    }
    return std::nullopt;
}

}  // namespace

detail::Segmentation fit_into(const std::vector<detail::LayerBytes>& layers, std::size_t bytes,
                              Device device) {
    if (layers.empty()) throw Error("[fit_into] the chain has no layers; add at least one");
    if (auto cut = cut_within(layers, bytes)) return std::move(*cut);
    std::size_t too_few = bytes, enough = detail::predicted_bytes(layers, {layers.size()});
    while (enough - too_few > 1) {
        const std::size_t middle = too_few + (enough - too_few) / 2;
        (cut_within(layers, middle) ? enough : too_few) = middle;
    }
    throw OutOfMemory("[fit_into] no cut of " + std::to_string(layers.size()) + " layers fits into " +
                          detail::format_bytes(bytes) + "; the least is " + std::to_string(enough) +
                          " bytes (" + detail::format_bytes(enough) + "). Use smaller micro-batches",
                      device, enough, memory::in_use(device));
}

std::string to_string(const detail::Segmentation& cut) {
    const std::size_t layers = std::accumulate(cut.sizes.begin(), cut.sizes.end(), std::size_t{0});
    std::string text =
        std::to_string(cut.sizes.size()) + (cut.sizes.size() == 1 ? " segment of " : " segments of ");
    for (std::size_t i = 0; i < cut.sizes.size(); ++i)
        text += (i == 0 ? "" : i + 1 == cut.sizes.size() ? " and " : ", ") + std::to_string(cut.sizes[i]);
    return text + (layers == 1 ? " layer: " : " layers: ") + detail::format_bytes(cut.bytes) +
           " instead of " + detail::format_bytes(cut.without_checkpoints) + "; " +
           std::to_string(cut.recomputed) + " of " + std::to_string(layers) +
           (layers == 1 ? " layer runs again" : " layers run again");
}

}  // namespace tally
