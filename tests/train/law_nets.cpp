// Defines the table of layers and operations, and the constructor of a Net, which makes a random network.
#include "law_nets.hpp"

#include <algorithm>
#include <tuple>

namespace tally::test {

template <class S>
Net<S>::Net(std::uint64_t from, const std::vector<std::size_t>& wanted, std::int64_t least_items)
    : random(from), large(random.whole(0, 9) == 0), seed(from) {
    items = std::max(least_items, large ? random.whole(20, random.coin() ? 300 : 70) : random.whole(2, 14));
    if (random.whole(0, 4) == 0) {
        const std::int64_t entries = random.whole(2, 9), places = random.whole(1, 4);
        table.emplace(entries, size(), stream(),
                      random.coin() ? std::optional<std::int64_t>(0) : std::nullopt);
        tokens = random.integers({items, places}, 0, entries - 1);
        extents = {places, table->weight.shape()[1]};
        used.emplace_back("Embedding");
    } else {
        const std::int64_t rank = random.whole(1, 3);
        if (rank == 3)
            extents = {random.whole(1, 3), random.whole(1, large ? 12 : 5), random.whole(1, large ? 12 : 5)};
        else if (rank == 2)
            extents = {random.whole(1, 5), random.whole(1, 3) * 2};
        else
            extents = {size()};
        std::vector<std::int64_t> all{items};
        all.insert(all.end(), extents.begin(), extents.end());
        x = random.array<S>(Shape(all));
    }
    const auto& table_of_kinds = kinds<S>();
    for (const std::size_t kind : wanted) add(table_of_kinds[kind]);
    for (std::int64_t more = random.whole(0, 3); more-- > 0;)
        add(table_of_kinds[static_cast<std::size_t>(
            random.whole(0, static_cast<std::int64_t>(table_of_kinds.size()) - 1))]);
    reshape_to(Form::vector);
    loss_kind = static_cast<int>(random.whole(0, 3));
    const bool labelled = loss_kind == 1 || loss_kind == 2;
    const std::int64_t out = labelled ? random.whole(2, 5) : random.coin() ? 1 : size();
    if (out == 1) used.emplace_back("an output of width 1");
    body.add(Linear<S>(width(), out, stream()));
    used.emplace_back("Linear");
    target = random.array<S>({items, out}, 0.1, 0.9);
    labels = random.integers({items}, 1, std::max<std::int64_t>(out - 1, 1));
    if (loss_kind == 2 && items > 2) *(labels.writable() + 1) = 0;  // label 0 is ignored
    used.emplace_back(std::vector<const char*>{"mse", "cross_entropy",
                                               "cross_entropy, smoothed, some ignored",
                                               "binary_cross_entropy"}[static_cast<std::size_t>(loss_kind)]);
    if (table) parameters.push_back(table->weight);
    for (const V& p : body.parameters()) parameters.push_back(p);
}

namespace {

// Computes x + tanh(f(x)).
template <class S> class Residual : public Layer<S> {
public:
    explicit Residual(Linear<S> inner) : inner_(std::move(inner)) {}
    void list(typename Module<S>::Members& members) override { members.child("inner", inner_); }

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass& pass) override { return x + tanh(inner_(x, pass)); }

private:
    Linear<S> inner_;
};

template <class S, class F> void elementwise(Net<S>& net, F f) {
    net.function({}, [f](const auto& v, const auto&) { return f(v); });
}

template <class S> void linear_to(Net<S>& net, std::int64_t out, bool bias) {
    net.body.add(Linear<S>(net.width(), out, net.stream(), {.bias = bias}));
    net.extents.back() = out;
}

template <class S> void convolve(Net<S>& net, bool bias) {
    const std::int64_t side =
        std::min<std::int64_t>({3, net.extents[1], net.extents[2], net.random.whole(1, 3)});
    const std::int64_t out = net.random.whole(1, net.large ? 9 : 3), padding = net.random.whole(0, 1),
                       stride = net.random.whole(1, 2);
    net.body.add(Conv2d<S>(net.extents[0], out, side, net.stream(), {stride, padding, bias}));
    net.extents = {out, (net.extents[1] + 2 * padding - side) / stride + 1,
                   (net.extents[2] + 2 * padding - side) / stride + 1};
}

// Adds every element-wise operation to the table. The operand is a parameter or a layer's output.
template <class S> std::vector<Kind<S>> with_every_formula(std::vector<Kind<S>> all) {
    using N = Net<S>;
    using V = Var<Array<S>>;
    // Every element-wise function is defined for each number that `tame` can return.
    static const auto tame = [](const V& x) { return abs(tanh(x)) + 0.5; };
    [&]<class... F>(std::tuple<F...>*) {
        const auto kind = []<class G>(G*) {
            return Kind<S>{G::name, Form::any, [](N& n) {
                               const auto f = [] {
                                   if constexpr (requires { G{0.0, 0.0}; })
                                       return G{0.6, 1.2};
                                   else if constexpr (requires { G{0.0}; })
                                       return G{2.5};
                                   else
                                       return G{};
                               }();
                               elementwise(n, [f](const V& x) { return apply(f, tame(x)); });
                           }};
        };
        (all.push_back(kind(static_cast<F*>(nullptr))), ...);
    }(static_cast<detail::UnaryOps*>(nullptr));
    [&]<class... F>(std::tuple<F...>*) {
        const auto kind = []<class G>(G*) {
            return Kind<S>{G::name, Form::any, [](N& n) {
                               const bool first = n.random.coin(), single = n.random.whole(0, 3) == 0;
                               n.function({n.drawn(single ? Shape{} : Shape{n.width()}, 0.1, 0.9)},
                                          [first](const V& x, const std::vector<V>& p) {
                                              const V a = tame(x) / 2;  // a is between 0.25 and 0.75
                                              return first ? apply(G{}, V(p[0]), V(a))
                                                           : apply(G{}, V(a), V(p[0]));
                                          });
                           }};
        };
        (all.push_back(kind(static_cast<F*>(nullptr))), ...);
    }(static_cast<detail::BinaryOps*>(nullptr));
    return all;
}

}  // namespace

template <class S> const std::vector<Kind<S>>& kinds() {
    using N = Net<S>;
    using V = Var<Array<S>>;
    using P = std::vector<V>;
    static const std::vector<Kind<S>> all = with_every_formula<S>({
        {"Linear", Form::any, [](N& n) { linear_to(n, n.size(), true); }},
        {"Linear without bias", Form::any, [](N& n) { linear_to(n, n.size(), false); }},
        {"Linear of width 1", Form::any, [](N& n) { linear_to(n, 1, true); }},
        {"linear_relu", Form::any,
         [](N& n) {
             const std::int64_t out = n.size();
             n.function({n.drawn({n.width(), out}), n.drawn({out})},
                        [](const V& x, const P& p) { return linear_relu(x, p[0], p[1]); });
             n.extents.back() = out;
         }},
        {"matmul", Form::vector,
         [](N& n) {
             const std::int64_t out = n.size();
             n.function({n.drawn({n.width(), out})}, [](const V& x, const P& p) { return matmul(x, p[0]); });
             n.extents.back() = out;
         }},
        {"matmul, transposed parameter", Form::vector,
         [](N& n) {
             const std::int64_t out = n.size();
             n.function({n.drawn({out, n.width()})},
                        [](const V& x, const P& p) { return matmul(x, p[0], {.transpose_b = true}); });
             n.extents.back() = out;
         }},
        {"matmul, batched, one parameter", Form::sequence,
         [](N& n) {
             const std::int64_t out = n.size();
             n.function({n.drawn({n.width(), out})}, [](const V& x, const P& p) { return matmul(x, p[0]); });
             n.extents.back() = out;
         }},
        {"matmul of two activations", Form::sequence,
         [](N& n) {
             n.function({}, [](const V& x, const P&) {
                 return matmul(softmax(matmul(x, x, {.transpose_b = true})), x);
             });
         }},
        {"SelfAttention", Form::sequence,
         [](N& n) {
             if (n.width() % 2) linear_to(n, 4, true);
             n.body.add(
                 SelfAttention<S>(n.width(), n.width() % 2 ? 1 : 2, n.stream(), {.causal = n.random.coin()}));
         }},
        {"Conv2d", Form::image, [](N& n) { convolve(n, true); }},
        {"Conv2d without bias", Form::image, [](N& n) { convolve(n, false); }},
        {"MaxPool2d", Form::image,
         [](N& n) {
             const std::int64_t side = std::min<std::int64_t>({2, n.extents[1], n.extents[2]});
             n.body.add(MaxPool2d<S>(side));
             n.extents = {n.extents[0], n.extents[1] / side, n.extents[2] / side};
         }},
        {"LayerNorm", Form::any, [](N& n) { n.body.add(LayerNorm<S>(n.width())); }},
        {"Dropout", Form::any, [](N& n) { n.body.add(Dropout<S>(0.3)); }},
        {"ReLU", Form::any, [](N& n) { n.body.add(ReLU<S>()); }},
        {"Tanh", Form::any, [](N& n) { n.body.add(Tanh<S>()); }},
        {"GELU", Form::any, [](N& n) { n.body.add(GELU<S>()); }},
        {"Residual", Form::any,
         [](N& n) { n.body.add(Residual<S>(Linear<S>(n.width(), n.width(), n.stream()))); }},
        {"a gain", Form::any,
         [](N& n) { n.function({n.drawn({n.width()})}, [](const V& x, const P& p) { return x * p[0]; }); }},
        {"a scalar gain", Form::any,
         [](N& n) {
             const Shape one = n.random.coin() ? Shape{} : Shape{1};
             n.function({n.drawn(one, 0.5, 1.5)}, [](const V& x, const P& p) { return x * p[0]; });
         }},
        {"a shift, from the left", Form::any,
         [](N& n) {
             n.function({n.drawn({1, n.width()})}, [](const V& x, const P& p) { return p[0] - x; });
         }},
        {"minimum with a scalar", Form::any,
         [](N& n) {
             n.function({n.drawn(Shape{})}, [](const V& x, const P& p) { return minimum(x, p[0]); });
         }},
        {"broadcast_to of a parameter", Form::vector,
         [](N& n) {
             n.function({n.drawn({n.width()})},
                        [](const V& x, const P& p) { return x + broadcast_to(p[0], x.shape()); });
         }},
        {"where with a parameter", Form::any,
         [](N& n) {
             std::vector<std::int32_t> mask(static_cast<std::size_t>(n.width()));
             for (std::int32_t& m : mask) m = n.random.coin();
             const Array<std::int32_t> keep({n.width()}, mask);
             n.function({n.drawn({n.width()})},
                        [keep](const V& x, const P& p) { return where(keep, x, p[0]); });
         }},
        {"softmax", Form::any, [](N& n) { elementwise(n, [](const V& x) { return softmax(x) * 3; }); }},
        {"softmax along another axis", Form::sequence,
         [](N& n) { elementwise(n, [](const V& x) { return softmax(x, 1) + x; }); }},
        {"cumsum", Form::any, [](N& n) { elementwise(n, [](const V& x) { return cumsum(x, -1) / 4; }); }},
        {"prod", Form::any,
         [](N& n) { elementwise(n, [](const V& x) { return x - prod(tanh(x), -1, {.keepdims = true}); }); }},
        {"log_softmax", Form::any, [](N& n) { elementwise(n, [](const V& x) { return log_softmax(x); }); }},
        {"logsumexp", Form::any,
         [](N& n) { elementwise(n, [](const V& x) { return x - logsumexp(x, -1, {.keepdims = true}); }); }},
        {"mean of a row", Form::any,
         [](N& n) { elementwise(n, [](const V& x) { return x - mean(x, -1, {.keepdims = true}); }); }},
        {"sum of a row", Form::any,
         [](N& n) { elementwise(n, [](const V& x) { return tanh(sum(x, -1, {.keepdims = true}) * x); }); }},
        {"sum over places", Form::sequence,
         [](N& n) {
             elementwise(n, [](const V& x) { return tanh(sum(x, {1})); });
             n.extents.erase(n.extents.begin());
         }},
        {"max of a row", Form::any,
         [](N& n) { elementwise(n, [](const V& x) { return x - max(x, -1, {.keepdims = true}); }); }},
        {"concat and slice", Form::any,
         [](N& n) {
             elementwise(n, [](const V& x) {
                 const int last = x.shape().rank() - 1;
                 const V both = concat(std::vector<V>{x, tanh(x)}, last);
                 return slice(both, last, 1, x.shape()[last] + 1);
             });
         }},
        {"rows", Form::any,
         [](N& n) {
             elementwise(n, [](const V& x) {
                 std::vector<std::int32_t> reversed(static_cast<std::size_t>(x.shape()[0]));
                 std::iota(reversed.rbegin(), reversed.rend(), 0);
                 const Array<std::int32_t> last_first({x.shape()[0]}, reversed);
                 return rows(tanh(rows(x, last_first)), last_first);
             });
         }},
        {"permute", Form::sequence,
         [](N& n) {
             elementwise(n, [](const V& x) { return permute(x, {0, 2, 1}); });
             std::swap(n.extents[0], n.extents[1]);
         }},
    });
    return all;
}

template const std::vector<Kind<float>>& kinds();
template const std::vector<Kind<double>>& kinds();
template struct Net<float>;
template struct Net<double>;

}  // namespace tally::test
