// A Net is a random network for the tests of equal bits. A Net can contain every layer and operation of the
// table in docs/architecture.md, with sizes below and above the block sizes of kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

namespace tally::test {

// Defines a layer that applies a function to its input and to its own parameters.
template <class S> class FunctionLayer : public Layer<S> {
public:
    using V = Var<Array<S>>;
    using Body = std::function<V(const V& x, const std::vector<V>& parameters)>;
    FunctionLayer(std::vector<V> own, Body body) : parameters_(std::move(own)), body_(std::move(body)) {}
    void list(typename Module<S>::Members& members) override {
        for (std::size_t i = 0; i < parameters_.size(); ++i)
            members.parameter(std::to_string(i), parameters_[i]);
    }

protected:
    V forward(V x, ForwardPass&) override { return body_(x, parameters_); }

private:
    std::vector<V> parameters_;
    Body body_;
};

// The shape of an item is (n), (places, n) or (channels, height, width).
enum class Form { any, vector, sequence, image };

template <class S> struct Net;

template <class S> struct Kind {
    const char* name;
    Form form;
    void (*add)(Net<S>&);
};

// A Net stores a random network and its data. Two nets with the same seed are equal.
template <class S> struct Net {
    using V = Var<Array<S>>;
    using Parameters = std::vector<V>;

    Net(std::uint64_t seed, const std::vector<std::size_t>& wanted, std::int64_t least_items = 0);

    Random random;
    bool large;  // true for few nets, whose sizes are near the boundaries of blocks
    Sequential<S> body;
    std::vector<std::int64_t> extents;  // an item's shape after the layers added so far
    std::optional<Embedding<S>> table;
    Array<S> x, target;
    Array<std::int32_t> tokens, labels;
    Parameters parameters;
    std::int64_t items = 0;
    int loss_kind = 0;
    std::uint64_t streams = 0, seed;
    std::vector<std::string> used;

    Form form() const {
        return extents.size() == 1 ? Form::vector : extents.size() == 2 ? Form::sequence : Form::image;
    }
    std::int64_t width() const { return extents.back(); }
    detail::RngStream stream() { return {seed, ++streams}; }
    std::int64_t size() {
        if (large) {
            const std::vector<std::int64_t> edges{12, 13,  16,  17,  31,  32,  33,  63,  64,  65,  70,
                                                  96, 127, 128, 129, 192, 193, 255, 256, 257, 300, 1025};
            return edges[static_cast<std::size_t>(
                random.whole(0, static_cast<std::int64_t>(edges.size()) - 1))];
        }
        return random.whole(0, 9) == 0 ? random.whole(15, 34) : random.whole(1, 9);
    }
    V drawn(const Shape& shape, double low = -1, double high = 1) {
        return parameter(random.array<S>(shape, low, high));
    }
    void function(Parameters own, typename FunctionLayer<S>::Body made) {
        body.add(FunctionLayer<S>(std::move(own), std::move(made)));
    }
    void reshape_to(Form wanted) {
        if (wanted == Form::any || wanted == form()) return;
        if (form() != Form::vector) {
            body.add(Flatten<S>());
            extents = {std::accumulate(extents.begin(), extents.end(), std::int64_t(1), std::multiplies<>())};
            used.push_back("Flatten");
        }
        if (wanted == Form::vector) return;
        extents.insert(extents.begin(), wanted == Form::image ? 2 : 1, 1);
        for (std::int64_t factor : {3, 2})
            if (extents.back() % factor == 0) {
                extents.back() /= factor;
                extents[extents.size() == 3 ? 1 : 0] *= factor;
                break;
            }
        function({}, [to = extents](const V& v, const Parameters&) {
            detail::Axes axes{v.shape()[0]};
            axes.insert(axes.end(), to.begin(), to.end());
            return reshape(v, axes);
        });
        used.push_back("reshape");
    }
    void add(const Kind<S>& kind) {
        reshape_to(kind.form);
        kind.add(*this);
        used.emplace_back(kind.name);
    }

    Loss<Array<S>> loss(std::int64_t from, std::int64_t to, ForwardPass& pass) {
        V h = table ? (*table)(tokens.slice_rows(from, to)) : constant(x.slice_rows(from, to));
        h = body(std::move(h), pass);
        const V wanted = constant(target.slice_rows(from, to));
        if (loss_kind == 0) return mse(h, wanted);
        if (loss_kind == 1) return cross_entropy(h, labels.slice_rows(from, to));
        if (loss_kind == 2)
            return cross_entropy(h, labels.slice_rows(from, to), {.ignore = 0, .smoothing = 0.1});
        return binary_cross_entropy(sigmoid(h), wanted);
    }
};

// Returns all layers and operations that a Net may contain, and all ways in which a Net may use a parameter.
template <class S> const std::vector<Kind<S>>& kinds();

extern template struct Net<float>;  // defined in law_nets.cpp
extern template struct Net<double>;

}  // namespace tally::test
