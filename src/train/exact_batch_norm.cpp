// Implements exact batch norm in three forward passes (exact_batch_norm.hpp).
#include "tally/train/exact_batch_norm.hpp"

#include <string>
#include <utility>

#include "tally/train/image_layers.hpp"

namespace tally {
namespace {

// Returns the index of the model's only batch-norm layer.
template <class S> std::size_t only_batch_norm(Sequential<S>& model) {
    std::string names;
    std::vector<const Module<S>*> found;
    for (const auto& [name, module] : detail::modules(model))
        if (dynamic_cast<const BatchNorm<S>*>(module)) {
            names += (found.empty() ? "'" : ", '") + name.substr(0, name.size() - 1) + "'";
            found.push_back(module);
        }
    if (found.empty())
        throw Error("[exact_batch_norm] the model has no batch norm; add() its micro-batches to the window");
    if (found.size() > 1)
        throw Error(
            "[exact_batch_norm] the model has " + std::to_string(found.size()) + " batch norms, " + names +
            ": the statistics of each must include the whole window before the next batch norm can run; "
            "keep one, and replace the others by layers that normalise each item, such as LayerNorm");
    for (std::size_t i = 0; i < model.size(); ++i)
        if (&model.layer(i) == found[0]) return i;
    throw Error(
        "[exact_batch_norm] the model's batch norm " + names +
        " is inside another module, which cannot run in parts; make it a layer of the Sequential itself");
}

template <class S> void add_gradient(const Var<Array<S>>& parameter, const Array<S>& gradient) {
    if (!parameter.requires_grad()) return;
    accumulate_into(parameter.node()->into(), gradient);
    detail::account_as(parameter.node()->gradient, MemoryClass::gradient);
}

template <class S> void require_whole_window(const Window<S>& window) {
    if (window.micro_batches() > 0)
        throw Error("[exact_batch_norm] the window holds " + std::to_string(window.micro_batches()) +
                    " micro-batches, which were normalised separately; pass all micro-batches in one call");
    if (window.options().non_finite == NonFinite::drop_micro)
        throw Error(
            "[exact_batch_norm] a micro-batch cannot be dropped after it has changed the statistics; choose "
            "NonFinite::raise or drop_window");
    if (window.options().sum == Sum::exact)
        throw Error(
            "[exact_batch_norm] the statistics and their gradients depend on the order of the micro-batches, "
            "which Sum::exact does not permit; choose Sum::running");
    if (window.options().noise)
        throw Error(
            "[exact_batch_norm] items that share their statistics are not independent draws, which noise() "
            "assumes; turn off the option .noise");
}

// Returns running statistics that equal the batch statistics `all`.
template <class S> RunningStatistics<S> fixed_at(const detail::BatchStatistics<S>& all) {
    if (all.count < 2)
        throw Error("[exact_batch_norm] " + std::to_string(static_cast<std::int64_t>(all.count)) +
                    " values per feature have no variance; add at least 2 values per feature");
    RunningStatistics<S> fixed(all.mean.shape()[0], all.mean.device());
    fixed.mean = all.mean;
    fixed.variance = all.variance;
    return fixed;
}

// Calls the layers with the indices `from` to `to` - 1.
template <class S> Var<Array<S>> through(Sequential<S>& model, std::size_t from, std::size_t to,
                                         Var<Array<S>> x, ForwardPass& pass) {
    for (std::size_t i = from; i < to; ++i) x = model.layer(i)(std::move(x), pass);
    return x;
}

// Records checksums of the batch norm's input in forward pass 1, and compares them in forward passes 2 and 3.
template <class S> class InputChecksums {
public:
    Var<Array<S>> note(Var<Array<S>> x) {
        sums_.push_back(sum(x.value()));
        return x;
    }
    Var<Array<S>> expect(std::size_t k, Var<Array<S>> x) const {
        if (sum(x.value()) == sums_[k]) return x;
        throw Error("[exact_batch_norm] the batch norm's input of micro-batch " + std::to_string(k) +
                    " differs in a later pass; make input(items) depend on the items alone, because it is "
                    "called three times");
    }

private:
    static std::uint64_t sum(const Array<S>& x) {  // 0 on a GPU, because the host would have to wait
        return x.device() == Device::cpu ? detail::checksum(x) : 0;
    }

    std::vector<std::uint64_t> sums_;
};

}  // namespace

template <class S> void add_with_exact_batch_norm(
    Window<S>& window, Sequential<S>& model, const std::vector<Items>& micro_batches,
    const std::function<Var<Array<S>>(const Items&)>& input,
    const std::function<Loss<Array<S>>(const Var<Array<S>>& y, const Items&)>& loss) {
    using V = Var<Array<S>>;
    const std::size_t at = only_batch_norm(model);
    auto& norm = static_cast<BatchNorm<S>&>(model.layer(at));
    require_whole_window(window);
    window.add_in_passes([&] {
        // Forward pass 1 computes the statistics.
        const ForwardPass& begun = window.begin_micro_batch(0);  // forward pass 2 counts micro-batches
        std::vector<std::int64_t> first_items;
        std::int64_t first_item = begun.first_item;
        const auto before = [&](std::size_t k) {  // drops side effects, because forward pass 2 adds them
            ForwardPass apart = begun.again(first_items[k], micro_batches[k].count());
            return through(model, 0, at, input(micro_batches[k]), apart);
        };
        InputChecksums<S> checksums;
        detail::BatchStatistics<S> all;
        for (std::size_t k = 0; k < micro_batches.size(); ++k) {
            const NoGrad off;
            first_items.push_back(first_item);
            first_item += micro_batches[k].count();
            const V x = checksums.note(before(k));
            all = all.pooled_with(detail::batch_statistics(x, norm.weight.value(), norm.bias.value()));
        }
        RunningStatistics<S> fixed = fixed_at(all);

        // Forward pass 2 treats the statistics as constants. The gradients of the new leaves `gain` and
        // `bias` are Σ dy x̂ and Σ dy.
        const V gain(norm.weight.value(), detail::State::leaf), bias(norm.bias.value(), detail::State::leaf);
        for (std::size_t k = 0; k < micro_batches.size(); ++k) {
            ForwardPass& pass = window.begin_micro_batch(micro_batches[k].count());
            if (k == 0) norm.leave(pass, all);
            V x = checksums.expect(k, through(model, 0, at, input(micro_batches[k]), pass));
            V y = batch_norm(std::move(x), gain, bias, fixed, norm.eps());
            y = through(model, at + 1, model.size(), std::move(y), pass);
            window.add(loss(y, micro_batches[k]));
        }
        if (!gain.has_grad()) return;  // the loss does not depend on the layer
        window.backward([&] {
            add_gradient(norm.weight, gain.grad());
            add_gradient(norm.bias, bias.grad());
        });

        // Forward pass 3 adds the gradient through the statistics. The gradient -gain / deviation * (Σ dy +
        // x̂ Σ dy x̂) / N is computed as a batch norm of x with a different gain and bias.
        const Array<S> deviation = map(functor::Sqrt{}, map(functor::AddNumber{norm.eps()}, all.variance)),
                       factor = map(functor::MulNumber{-1 / all.count},
                                    zip(functor::Div{}, gain.value(), deviation));
        const V along(zip(functor::Mul{}, factor, gain.grad())),
            total(zip(functor::Mul{}, factor, bias.grad()));
        for (std::size_t k = 0; k < micro_batches.size(); ++k) {
            const V x = checksums.expect(k, before(k));
            if (!x.requires_grad()) return;
            const Array<S> rest = batch_norm(x.detach(), along, total, fixed, norm.eps()).value();
            window.backward([&] { x.backward(rest); });
        }
    });
}

#define TALLY_MADE_FOR(S)                                      \
    template void add_with_exact_batch_norm(                   \
        Window<S>&, Sequential<S>&, const std::vector<Items>&, \
        const std::function<Var<Array<S>>(const Items&)>&,     \
        const std::function<Loss<Array<S>>(const Var<Array<S>>&, const Items&)>&);
TALLY_MADE_FOR(float)
TALLY_MADE_FOR(double)
#undef TALLY_MADE_FOR

}  // namespace tally
