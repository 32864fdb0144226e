// Encoding all, and each part again.
#include "tally/train/grad_cache.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "tally/autograd/ops/shape.hpp"

namespace tally {
namespace {

template <class S> class Cache {
public:
    using V = Var<Array<S>>;
    using Encode = std::function<V(std::size_t encoder, std::size_t part, bool second)>;

    // Encodes all, part by part.
    Cache(std::size_t encoders, std::size_t parts, Encode encode)
        : encode_(std::move(encode)), rows_(encoders) {
        if (encoders == 0 || parts == 0)
            throw Error("[cached] wants encoders and parts; there are " + std::to_string(encoders) + " and " +
                        std::to_string(parts));
        const NoGrad off;
        std::vector<std::vector<V>> made(encoders);
        for (std::size_t part = 0; part < parts; ++part)
            for (std::size_t encoder = 0; encoder < encoders; ++encoder) {
                V y = encode_(encoder, part, false);
                if (y.shape().rank() == 0)
                    throw Error("[cached] encoder " + std::to_string(encoder) +
                                " gives a single number; wants a row for each item");
                rows_[encoder].push_back(y.shape()[0]);
                made[encoder].push_back(std::move(y));
            }
        for (std::vector<V>& each : made) {
            all_.emplace_back(concat(each).value(), detail::State::leaf);
            each.clear();
        }
    }

    const detail::Representations<S>& all() const { return all_; }

    // Once the loss has gone backward: each part again, by sweep(y, gradient). The last encoder first, as
    // one graph would.
    template <class BackwardPass> void backward(BackwardPass sweep) const {
        for (std::size_t encoder = all_.size(); encoder-- > 0;) {
            if (!all_[encoder].has_grad()) continue;
            std::int64_t row = 0;
            for (std::size_t part = 0; part < rows_[encoder].size(); ++part) {
                const std::int64_t to = row + rows_[encoder][part];
                const V y = encode_(encoder, part, true);
                expect_same(encoder, part, all_[encoder].value().slice_rows(row, to), y.value());
                if (y.requires_grad()) sweep(y, all_[encoder].grad().slice_rows(row, to));
                row = to;
            }
        }
    }

private:
    static void expect_same(std::size_t encoder, std::size_t part, const Array<S>& first,
                            const Array<S>& second) {
        const bool looked_at = first.device() == Device::cpu;  // elsewhere the host would have to wait
        if (detail::same_shape_and_device(first, second) &&
            (!looked_at || first.size() == 0 ||
             std::memcmp(first.data(), second.data(), first.size() * sizeof(S)) == 0))
            return;
        throw Error("[cached] encoder " + std::to_string(encoder) + " makes something else of part " +
                    std::to_string(part) + " the second time (" + detail::describe(first) + ", then " +
                    detail::describe(second) +
                    "): what is random must be a function of the items, and nothing may change in between");
    }

    Encode encode_;
    std::vector<std::vector<std::int64_t>> rows_;  // of each encoder's parts
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
        detail::backward_calls = before;  // all parts are one backward() to what counts them
        y.backward(gradient);
    });
    return detach(value);
}

template <class S>
void add_cached(Window<S>& window, const std::vector<Items>& parts,
                const std::vector<std::function<Var<Array<S>>(const Items&, ForwardPass&)>>& encoders,
                const std::function<Loss<Array<S>>(const detail::Representations<S>&)>& loss,
                const MicroBatchOptions& options) {
    if (window.options().non_finite == NonFinite::drop_micro)
        throw Error(
            "[cached] a loss of all items has no micro-batch that could be dropped; choose NonFinite::raise "
            "or "
            "drop_window");
    if (window.options().noise)
        throw Error(
            "[cached] items that are compared with each other are no independent draws, which noise() "
            "assumes; leave it off");
    ForwardPass* pass = nullptr;  // of the whole micro-batch; a part begins where the one before ends
    std::vector<std::int64_t> first_items;
    const Cache<S> cache(
        encoders.size(), parts.size(), [&](std::size_t encoder, std::size_t part, bool second) {
            const Items& items = parts[part];
            if (second) {
                ForwardPass same = pass->again(first_items[part], items.count());
                Var<Array<S>> y = encoders[encoder](items, same);  // its effects are there already
                detail::expect_made_in_pass("[cached] encoder " + std::to_string(encoder), *y.node());
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
    window.transaction([&] {
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
                             const MicroBatchOptions&);
TALLY_MADE_FOR(float)
TALLY_MADE_FOR(double)
#undef TALLY_MADE_FOR

}  // namespace tally
