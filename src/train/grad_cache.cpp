// Implements GradCache: encodes all parts without a graph, and then each part again with a graph.
#include "tally/train/grad_cache.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "tally/autograd/ops/shape_ops.hpp"

namespace tally {
namespace {

template <class S> class Cache {
public:
    using V = Var<Array<S>>;
    using Encode = std::function<V(std::size_t encoder, std::size_t part, bool second)>;

    // Encodes all parts without a graph.
    Cache(std::size_t encoders, std::size_t parts, Encode encode)
        : encode_(std::move(encode)), rows_(encoders) {
        if (encoders == 0 || parts == 0)
            throw Error("[cached] requires encoders and parts; there are " + std::to_string(encoders) +
                        " and " + std::to_string(parts));
        const NoGrad off;
        std::vector<std::vector<V>> made(encoders);
        for (std::size_t part = 0; part < parts; ++part)
            for (std::size_t encoder = 0; encoder < encoders; ++encoder) {
                V y = encode_(encoder, part, false);
                if (y.shape().rank() == 0)
                    throw Error("[cached] encoder " + std::to_string(encoder) +
                                " returns a single number; return a row for each item");
                rows_[encoder].push_back(y.shape()[0]);
                made[encoder].push_back(std::move(y));
            }
        for (std::vector<V>& each : made) {
            all_.emplace_back(concat(each).value(), detail::State::leaf);
            each.clear();
        }
    }

    const detail::Representations<S>& all() const { return all_; }

    // Encodes each part again, and calls run_backward() with the output and its gradient. Call this function
    // after backward() of the loss. The last encoder runs first, as in backward() of a single graph.
    template <class RunBackward> void backward(RunBackward run_backward) const {
        for (std::size_t encoder = all_.size(); encoder-- > 0;) {
            if (!all_[encoder].has_grad()) continue;
            std::int64_t row = 0;
            for (std::size_t part = 0; part < rows_[encoder].size(); ++part) {
                const std::int64_t to = row + rows_[encoder][part];
                const V y = encode_(encoder, part, true);
                require_same_values(encoder, part, all_[encoder].value().slice_rows(row, to), y.value());
                if (y.requires_grad()) run_backward(y, all_[encoder].grad().slice_rows(row, to));
                row = to;
            }
        }
    }

private:
    static void require_same_values(std::size_t encoder, std::size_t part, const Array<S>& first,
                                    const Array<S>& second) {
        const bool compared = first.device() == Device::cpu;  // for a GPU the host would have to wait
        if (detail::same_shape_and_device(first, second) &&
            (!compared || first.size() == 0 ||
             std::memcmp(first.data(), second.data(), first.size() * sizeof(S)) == 0))
            return;
        throw Error("[cached] encoder " + std::to_string(encoder) + " returns another result for part " +
                    std::to_string(part) + " the second time (" + detail::describe(first) + ", then " +
                    detail::describe(second) +
                    "); make random numbers depend on the items, and change nothing between the two calls");
    }

    Encode encode_;
    std::vector<std::vector<std::int64_t>> rows_;  // the number of rows of each [encoder][part]
    detail::Representations<S> all_;
};

}  // namespace

template <class S>
Var<Array<S>> cached_backward(std::size_t parts,
                              const std::vector<std::function<Var<Array<S>>(std::size_t part)>>& encoders,
                              const std::function<Var<Array<S>>(const detail::Representations<S>&)>& loss) {
    const Cache<S> cache(encoders.size(), parts, [&](std::size_t encoder, std::size_t part, bool) {
        return encoders[encoder](part);
    });
    const Var<Array<S>> value = loss(cache.all());
    value.backward();
    const std::uint64_t before = detail::backward_calls - 1;
    cache.backward([before](const Var<Array<S>>& y, const Array<S>& gradient) {
        detail::backward_calls = before;  // all parts count as one backward()
        y.backward(gradient);
    });
    return value.detach();
}

template <class S>
void add_cached(Window<S>& window, const std::vector<Items>& parts,
                const std::vector<std::function<Var<Array<S>>(const Items&, ForwardPass&)>>& encoders,
                const std::function<Loss<Array<S>>(const detail::Representations<S>&)>& loss,
                const detail::MicroBatchOptions& options) {
    if (window.options().non_finite == NonFinite::drop_micro)
        throw Error(
            "[cached] a loss of all items has no micro-batch that could be dropped; choose NonFinite::raise "
            "or "
            "drop_window");
    if (window.options().noise)
        throw Error(
            "[cached] items that are compared with each other are not independent draws, which noise() "
            "assumes; turn off the option .noise");
    ForwardPass* pass = nullptr;  // of the whole micro-batch; each part continues the numbers of items
    std::vector<std::int64_t> first_items;
    const Cache<S> cache(
        encoders.size(), parts.size(), [&](std::size_t encoder, std::size_t part, bool second) {
            const Items& items = parts[part];
            if (second) {
                ForwardPass same = pass->again(first_items[part], items.count());
                Var<Array<S>> y = encoders[encoder](items, same);  // drops the side effects in `same`
                detail::require_made_in_pass("[cached] encoder " + std::to_string(encoder), *y.node());
                return y;
            }
            if (encoder == 0) {
                pass =
                    &(part == 0 ? window.begin_micro_batch(items.count()) : window.begin_part(items.count()));
                first_items.push_back(pass->first_item);
            }
            return encoders[encoder](items, *pass);
        });
    window.add(loss(cache.all()), options);
    window.add_in_passes([&] {
        cache.backward([&](const Var<Array<S>>& y, const Array<S>& gradient) {
            window.backward([&] { y.backward(gradient); });
        });
    });
}

#define TALLY_MADE_FOR(S)                                                                                  \
    template Var<Array<S>> cached_backward(                                                                \
        std::size_t, const std::vector<std::function<Var<Array<S>>(std::size_t)>>&,                        \
        const std::function<Var<Array<S>>(const detail::Representations<S>&)>&);                           \
    template void add_cached(Window<S>&, const std::vector<Items>&,                                        \
                             const std::vector<std::function<Var<Array<S>>(const Items&, ForwardPass&)>>&, \
                             const std::function<Loss<Array<S>>(const detail::Representations<S>&)>&,      \
                             const detail::MicroBatchOptions&);
TALLY_MADE_FOR(float)
TALLY_MADE_FOR(double)
#undef TALLY_MADE_FOR

}  // namespace tally
