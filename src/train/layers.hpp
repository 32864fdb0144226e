// Defines the layers of a model, with PyTorch's names, formulas and initial distributions.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tally/autograd/instances/layer_ops.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/base/random.hpp"
#include "tally/base/text.hpp"
#include "tally/checkpoint/chain.hpp"
#include "tally/tools/scope_name.hpp"
#include "tally/train/module.hpp"

namespace tally {

namespace detail {
// Returns a parameter with uniform values in [-bound, bound). The first value is the stream's number `first`.
template <class S>
Var<Array<S>> uniform_parameter(const Shape& shape, double bound, RngStream stream, std::uint64_t first = 0) {
    Array<S> values = Array<S>::empty(shape);
    const auto b = static_cast<S>(bound);
    random::detail::fill_uniform<S>(std::span(values.raw(), values.size()), stream.seed, stream.number, -b, b,
                                    first);
    return parameter(std::move(values));
}

// Options of Linear.
struct LinearOptions {
    bool bias = true;
};
}  // namespace detail

// `Linear` computes x (..., in) · weight (in, out) + bias (out). Initial values are uniform in ±1/sqrt(in).
template <class S> class Linear : public Layer<S> {
public:
    using Options = detail::LinearOptions;

    Linear(std::int64_t in, std::int64_t out, detail::RngStream stream, const Options& options = {}) {
        const double bound = in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
        weight = detail::uniform_parameter<S>({in, out}, bound, stream);
        if (options.bias) bias = detail::uniform_parameter<S>({out}, bound, stream, weight.value().size());
    }
    Linear(std::int64_t, std::int64_t, detail::RngStream,  // write {.bias = false}
           detail::Arithmetic auto) = delete;
    void list(typename Module<S>::Members& members) override {
        members.weight("weight", weight);
        members.parameter("bias", bias);
    }

    Var<Array<S>> weight, bias;

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override {
        return bias ? linear(std::move(x), weight, bias) : linear(std::move(x), weight);
    }
};

// ReLU applies relu(x).
template <class S> class ReLU : public Layer<S> {
public:
    void list(typename Module<S>::Members&) override {}

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override { return relu(std::move(x)); }
};

// Tanh applies tanh(x).
template <class S> class Tanh : public Layer<S> {
public:
    void list(typename Module<S>::Members&) override {}

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override { return tanh(std::move(x)); }
};

// GELU applies gelu(x).
template <class S> class GELU : public Layer<S> {
public:
    void list(typename Module<S>::Members&) override {}

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override { return gelu(std::move(x)); }
};

// The layer `Flatten` reshapes each item to one row.
template <class S> class Flatten : public Layer<S> {
public:
    void list(typename Module<S>::Members&) override {}

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override {
        const Shape& shape = x.shape();
        if (shape.rank() == 0) throw Error("[flatten] a single number is not a batch of items");
        std::int64_t width = 1;
        for (int axis = 1; axis < shape.rank(); ++axis) width *= shape[axis];
        return reshape(std::move(x), Shape{shape[0], width});
    }
};

// The layer `LayerNorm` returns layer_norm(x, weight, bias).
template <class S> class LayerNorm : public Layer<S> {
public:
    explicit LayerNorm(std::int64_t width, double eps = 1e-5)
        : weight(parameter(Array<S>::full({width}, S(1)))),
          bias(parameter(Array<S>::zeros({width}))),
          eps_(eps) {}
    void list(typename Module<S>::Members& members) override {
        members.parameter("weight", weight);
        members.parameter("bias", bias);
    }

    Var<Array<S>> weight, bias;

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override {
        return layer_norm(std::move(x), weight, bias, eps_);
    }

private:
    double eps_;
};

// In training, `Dropout` sets elements to 0 with probability p and divides the remaining elements by 1 - p.
// The first axis of x is the axis of the items. The dropped elements depend on the layer and on the item's
// index in the update, not on the micro-batch. Two calls in one forward pass drop the same elements.
template <class S> class Dropout : public Layer<S> {
public:
    explicit Dropout(double p = 0.5, std::optional<std::uint64_t> stream = {}) : p_(p), stream_(stream) {
        if (!(p >= 0 && p <= 1))
            throw Error("[dropout] the probability must be between 0 and 1; it is " + detail::to_text(p));
    }
    void list(typename Module<S>::Members&) override {}
    detail::LayerRng* stream() override { return &stream_; }

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass& pass) override {
        if (!detail::trains("dropout", pass)) return x;
        const std::int64_t rows = rows_per_item(x.shape(), pass);
        if (!is_recomputing())
            pass.draws.draw(stream_.number(), stream_.layer(), pass.seed, pass.first_item, rows);
        const auto first = static_cast<std::uint64_t>(pass.first_item * rows);
        return dropout(std::move(x), p_, {pass.seed, stream_.number(), first});
    }

private:
    // Returns the number of rows per item, which is above 1 after reshape(x, {items * places, width}).
    static std::int64_t rows_per_item(const Shape& shape, const ForwardPass& pass) {
        if (!pass.items || shape.rank() == 0 || shape[0] == *pass.items) return 1;
        if (*pass.items > 0 && shape[0] % *pass.items == 0) return shape[0] / *pass.items;
        throw Error("[dropout] " + to_string(shape) + " has " + std::to_string(shape[0]) +
                    " rows, but begin_micro_batch() was given " + std::to_string(*pass.items) +
                    " items; give begin_micro_batch() the number of items, which must divide the rows");
    }

    double p_;
    detail::LayerRng stream_;
};

// `Embedding` returns a row of a table (entries, width) for each index. Initially entries are standard
// normal. The row `padding` is zero and is never updated. A negative `padding` counts from the end.
template <class S> class Embedding : public Module<S> {
public:
    Embedding(std::int64_t, std::int64_t, detail::RngStream,
              std::floating_point auto) = delete;  // because `padding` is a row number
    Embedding(std::int64_t entries, std::int64_t width, detail::RngStream stream,
              std::optional<std::int64_t> padding = {})
        : padding_(padding) {
        const Shape shape{entries, width};
        if (padding && (*padding < -entries || *padding >= entries))
            throw Error("[embedding] the padding " + std::to_string(*padding) + " is outside the rows of " +
                        to_string(shape));
        std::vector<S> values(shape.size());
        random::detail::fill_normal<S>(values, stream.seed, stream.number);
        if (padding) {
            const std::int64_t row = *padding < 0 ? *padding + entries : *padding;
            std::fill_n(values.begin() + row * width, width, S(0));
        }
        weight = parameter(Array<S>(shape, values));
    }
    void list(typename Module<S>::Members& members) override { members.parameter("weight", weight); }

    Var<Array<S>> operator()(const Array<std::int32_t>& indices) const {
        return embedding(weight, indices, padding_);
    }

    Var<Array<S>> weight;

private:
    std::optional<std::int64_t> padding_;
};

namespace detail {
// Options of SelfAttention.
struct SelfAttentionOptions {
    bool causal = false;
};
}  // namespace detail

// `SelfAttention` is multi-head self-attention over x (items, places, width), where a place is a position in
// a sequence. A place attends to all places, or with `causal` only to itself and to earlier places.
template <class S> class SelfAttention : public Layer<S> {
public:
    using Options = detail::SelfAttentionOptions;

    SelfAttention(std::int64_t width, std::int64_t heads, detail::RngStream stream,
                  const Options& options = {})
        : width_(width), heads_(heads), causal_(options.causal) {
        if (heads < 1 || width < 1 || width % heads != 0)
            throw Error("[attention] a width of " + std::to_string(width) + " cannot be divided among " +
                        std::to_string(heads) + " heads");
        const auto in = static_cast<double>(width);
        in_weight = detail::uniform_parameter<S>({width, 3 * width}, std::sqrt(6 / (4 * in)), stream);
        in_bias = parameter(Array<S>::zeros({3 * width}));
        out_weight =
            detail::uniform_parameter<S>({width, width}, 1 / std::sqrt(in), stream, in_weight.value().size());
        out_bias = parameter(Array<S>::zeros({width}));
    }
    SelfAttention(std::int64_t, std::int64_t, detail::RngStream,  // write {.causal = true}
                  detail::Arithmetic auto) = delete;
    void list(typename Module<S>::Members& members) override {
        members.weight("in_proj_weight", in_weight);
        members.parameter("in_proj_bias", in_bias);
        members.weight("out_proj.weight", out_weight);
        members.parameter("out_proj.bias", out_bias);
    }

    Var<Array<S>> in_weight, in_bias;  // queries, keys and values side by side
    Var<Array<S>> out_weight, out_bias;

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override {
        const Shape shape = x.shape();
        if (shape.rank() != 3 || shape[2] != width_)
            throw Error("[attention] requires (items, places, " + std::to_string(width_) + "), but got " +
                        to_string(shape));
        const std::int64_t items = shape[0], places = shape[1], depth = width_ / heads_;
        const Shape each{items, heads_, places, depth};
        const auto together =
            permute(reshape(linear(std::move(x), in_weight, in_bias), Shape{items, places, 3, heads_, depth}),
                    {2, 0, 3, 1, 4});
        const auto part = [&](std::int64_t which) {
            return reshape(slice(together, 0, which, which + 1), each);
        };
        auto scores = matmul(part(0) / std::sqrt(static_cast<double>(depth)), part(1), {.transpose_b = true});
        if (causal_) scores = where(not_later(places), std::move(scores), never());
        auto y = matmul(softmax(std::move(scores)), part(2));
        return linear(reshape(permute(std::move(y), {0, 2, 1, 3}), shape), out_weight, out_bias);
    }

private:
    Array<std::int32_t> not_later(std::int64_t places) const {
        std::vector<std::int32_t> mask;
        for (std::int64_t from = 0; from < places; ++from)
            for (std::int64_t to = 0; to < places; ++to) mask.push_back(to <= from);
        return Array<std::int32_t>({places, places}, mask, in_weight.value().device());
    }
    Var<Array<S>> never() const {
        return constant(Array<S>::full({}, -std::numeric_limits<S>::infinity(), in_weight.value().device()));
    }

    std::int64_t width_, heads_;
    bool causal_;
};

// The class `Sequential` calls its layers in order. The names of the layers are 0, 1, 2, ...
template <class S> class Sequential : public Layer<S> {
public:
    Sequential() = default;
    template <std::derived_from<Layer<S>>... Layers> explicit Sequential(Layers... layers) {
        (add(std::move(layers)), ...);
    }
    template <std::derived_from<Layer<S>> Added> void add(Added layer) {
        layers_.push_back(std::make_shared<Added>(std::move(layer)));
        detail::collect_members(*this);
        if (how_) checkpoint(Checkpointing(*how_));
    }
    std::size_t size() const { return layers_.size(); }
    Layer<S>& layer(std::size_t i) const {
        if (i >= size())
            throw Error("[module] layer(" + std::to_string(i) + ") of a Sequential of " +
                        std::to_string(size()) + " layers; they are numbered from 0");
        return *layers_[i];
    }

    // Returns each layer as a function of its input, for checkpoints. Each function stores a copy of `pass`.
    // Only the first run of a function adds side effects and random draws to `pass`.
    Chain<Array<S>> chain(ForwardPass& pass) const {
        Chain<Array<S>> functions;
        for (std::size_t i = 0; i < layers_.size(); ++i)
            functions.push_back([i, layer = layers_[i], of = &pass,
                                 same = std::make_shared<const ForwardPass>(pass.again())](Var<Array<S>> x) {
                ForwardPass own = same->again();
                x = run(i, *layer, std::move(x), own);
                if (!is_recomputing()) {
                    of->effects.join(std::move(own.effects));
                    of->draws.join(own.draws);
                }
                return x;
            });
        return functions;
    }
    // Makes forward() save only the input of each segment. The backward pass recomputes all segments except
    // the last, and gets equal bits. With a limit in bytes, the next forward() measures the layers' memory.
    bool checkpoint(const Checkpointing& how) override {
        if (how.segments > 0 && how.bytes > 0)
            throw Error("[checkpoint] .segments = " + std::to_string(how.segments) + " and .bytes = " +
                        std::to_string(how.bytes) + " exclude each other; set one of them");
        if (layers_.empty()) return false;
        const std::size_t segments = how.segments > 0 ? how.segments : detail::default_segment_count(size());
        sizes_ = how.bytes > 0 ? std::vector<std::size_t>()
                               : detail::even_segments(size(), segments, "checkpoint");
        bytes_ = how.bytes;
        how_ = how;
        return true;
    }
    void checkpoint_segments(std::vector<std::size_t> sizes) {
        detail::require_segments(sizes, size());
        sizes_ = std::move(sizes);
        bytes_ = 0;
        how_.reset();
    }
    // Returns the segments that forward() has chosen for a limit in bytes, or nothing before forward().
    const std::optional<detail::Segmentation>& segmentation() const { return segmentation_; }

    void list(typename Module<S>::Members& members) override {
        for (std::size_t i = 0; i < layers_.size(); ++i) members.child(std::to_string(i), *layers_[i]);
    }

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass& pass) override {
        if (detail::context.recording && bytes_ > 0) measure(x, pass);
        if (detail::context.recording && !sizes_.empty())
            return checkpoint_sequential(chain(pass), sizes_, std::move(x));
        for (std::size_t i = 0; i < layers_.size(); ++i) x = run(i, *layers_[i], std::move(x), pass);
        return x;
    }

private:
    static Var<Array<S>> run(std::size_t i, Layer<S>& layer, Var<Array<S>> x, ForwardPass& pass) {
        std::optional<ScopeName> here;  // so that an observer can name the layer
        if (instrumentation::detail::observer)
            here.emplace(std::to_string(i) + " " + detail::layer_type_name(typeid(layer)),
                         detail::no_location);
        return layer(std::move(x), pass);
    }
    void measure(const Var<Array<S>>& x, const ForwardPass& pass) {
        ForwardPass unseen = pass.again();
        segmentation_ = fit_into(chain(unseen), x, bytes_);
        sizes_ = segmentation_->sizes;
        bytes_ = 0;
    }

    std::vector<std::shared_ptr<Layer<S>>>
        layers_;                      // the functions of chain() share these layers, and may live longer
    std::vector<std::size_t> sizes_;  // lengths of the segments; empty without checkpointing
    std::size_t bytes_ = 0;           // limit; 0 after measure() has chosen segments
    std::optional<detail::Segmentation> segmentation_;
    std::optional<Checkpointing> how_;  // add() applies these options to the longer sequence
};

extern template class Linear<float>;
extern template class Linear<double>;
extern template class ReLU<float>;
extern template class ReLU<double>;
extern template class Tanh<float>;
extern template class Tanh<double>;
extern template class GELU<float>;
extern template class GELU<double>;
extern template class Flatten<float>;
extern template class Flatten<double>;
extern template class LayerNorm<float>;
extern template class LayerNorm<double>;
extern template class Dropout<float>;
extern template class Dropout<double>;
extern template class Embedding<float>;
extern template class Embedding<double>;
extern template class SelfAttention<float>;
extern template class SelfAttention<double>;
extern template class Sequential<float>;
extern template class Sequential<double>;

}  // namespace tally
