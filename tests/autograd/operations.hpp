// Returns every operation with random operands. The random seed also determines the shapes, axes and flags.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "tally/tally.hpp"

namespace tally::test {

template <class S> struct Problem {
    using Vars = std::vector<Var<Array<S>>>;
    std::vector<Array<S>> inputs;
    std::function<Var<Array<S>>(const Vars&)> f;
};

template <class S> struct OperationCase {
    const char* name;
    std::function<Problem<S>(Random&)> draw;
};

template <class S> std::vector<OperationCase<S>> all_operations() {
    using V = Var<Array<S>>;
    using Vars = std::vector<V>;
    std::vector<OperationCase<S>> all;

    // A test checks that this list contains every operation.
    const auto one = [&](const char* name, V (*f)(V), double low = -2, double high = 2) {
        all.push_back({name, [=](Random& r) {
                           return Problem<S>{{r.array<S>(r.shape(3), low, high)},
                                             [f](const Vars& x) { return f(x[0]); }};
                       }});
    };
    const auto two = [&](const char* name, V (*f)(V, V), double low = -2, double high = 2) {
        all.push_back({name, [=](Random& r) {
                           const Shape out = r.shape(4, 3);
                           const Shape other = r.within(out);
                           Array<S> a = r.array<S>(out, low, high), b = r.array<S>(other, low, high);
                           if (r.coin()) std::swap(a, b);
                           if (r.whole(0, 4) == 0)  // both operands are broadcast
                               a = r.array<S>({2, 1, 3}, low, high), b = r.array<S>({1, 2, 1}, low, high);
                           return Problem<S>{{a, b}, [f](const Vars& x) { return f(x[0], x[1]); }};
                       }});
    };
    one("neg", [](V x) { return -x; });
    one("exp", [](V x) { return exp(x); });
    one(
        "log", [](V x) { return log(x); }, 0.5, 3);
    one(
        "log1p", [](V x) { return log1p(x); }, -0.5, 3);
    one("expm1", [](V x) { return expm1(x); });
    one("softplus", [](V x) { return softplus(x); });
    one("silu", [](V x) { return silu(x); });
    one(
        "sqrt", [](V x) { return sqrt(x); }, 0.5, 3);
    one("tanh", [](V x) { return tanh(x); });
    one("sigmoid", [](V x) { return sigmoid(x); });
    one("relu", [](V x) { return relu(x); });
    one("gelu", [](V x) { return gelu(x); });
    one("abs", [](V x) { return abs(x); });
    one("sin", [](V x) { return sin(x); });
    one("cos", [](V x) { return cos(x); });
    one("add_number", [](V x) { return x + 0.75; });
    one("sub_number", [](V x) { return x - 0.75; });
    one("number_minus", [](V x) { return 0.75 - x; });
    one("mul_number", [](V x) { return 0.75 * x; });
    one("div_number", [](V x) { return x / 3; });
    one(
        "number_over", [](V x) { return 3 / x; }, 0.5, 2);
    one(
        "pow_number", [](V x) { return pow(x, 2.5); }, 0.5, 2);
    one("pow_number 0", [](V x) { return pow(x, 0); });
    one("clamp", [](V x) { return clamp(x, -1, 0.5); });
    one("clamp from below", [](V x) { return clamp(x, -1); });
    two("add", [](V a, V b) { return a + b; });
    two("sub", [](V a, V b) { return a - b; });
    two("mul", [](V a, V b) { return a * b; });
    two(
        "div", [](V a, V b) { return a / b; }, 0.5, 2);
    two(
        "pow", [](V a, V b) { return pow(a, b); }, 0.5, 2);
    two("maximum", [](V a, V b) { return maximum(a, b); });
    two("minimum", [](V a, V b) { return minimum(a, b); });
    two("squared_difference", [](V a, V b) { return detail::squared_difference(a, b); });
    const auto compared = [&](const char* name, V (*f)(V, V), double low, double high) {
        all.push_back({name, [=](Random& r) {
                           const Shape shape = r.shape(4, 3);
                           return Problem<S>{{r.array<S>(shape, low, high), r.array<S>(shape, low, high)},
                                             [f](const Vars& x) { return f(x[0], x[1]); }};
                       }});
    };
    compared(
        "binary_cross_entropy", [](V a, V b) { return binary_cross_entropy(a, b).sum / 7; }, 0.2, 0.8);
    compared(
        "mse", [](V a, V b) { return mse(a, b).sum / 7; }, -2, 2);
    all.push_back({"where", [](Random& r) {
                       const Shape out = r.shape(3);
                       const auto condition = r.integers(r.within(out), 0, 1);
                       return Problem<S>{{r.array<S>(r.within(out)), r.array<S>(out)},
                                         [condition](const Vars& x) { return where(condition, x[0], x[1]); }};
                   }});

    const auto reduce = [&](const char* name, V (*f)(V, const detail::Axes&, bool), bool some) {
        all.push_back({name, [=](Random& r) {
                           Shape shape = r.shape(4, 3);
                           if (some)  // the operation needs at least one element
                               while (shape.size() == 0) shape = r.shape(4, 3);
                           detail::Axes axes;
                           for (int axis = 0; axis < shape.rank(); ++axis)
                               if (r.coin()) axes.push_back(r.coin() ? axis : axis - shape.rank());
                           const bool keepdims = r.coin();
                           return Problem<S>{{r.array<S>(shape)},
                                             [=](const Vars& x) { return f(x[0], axes, keepdims); }};
                       }});
    };
    reduce(
        "sum", [](V x, const detail::Axes& axes, bool keep) { return sum(x, axes, {.keepdims = keep}); },
        false);
    reduce(
        "mean", [](V x, const detail::Axes& axes, bool keep) { return mean(x, axes, {.keepdims = keep}); },
        true);
    reduce(
        "max", [](V x, const detail::Axes& axes, bool keep) { return max(x, axes, {.keepdims = keep}); },
        true);
    reduce(
        "logsumexp",
        [](V x, const detail::Axes& axes, bool keep) { return logsumexp(x, axes, {.keepdims = keep}); },
        true);

    reduce(
        "var",
        [](V x, const detail::Axes& axes, bool keep) {
            return var(x, axes, {.unbiased = false, .keepdims = keep});
        },
        true);
    reduce(
        "var, unbiased",
        [](V x, const detail::Axes&, bool keep) {
            return var(stack<S>({x, x * x}), 0, {.keepdims = keep});
        },
        false);
    reduce(
        "prod", [](V x, const detail::Axes& axes, bool keep) { return prod(x, axes, {.keepdims = keep}); },
        false);
    all.push_back({"prod with zeros", [](Random& r) {
                       const Shape shape{r.whole(1, 3), r.whole(2, 5)};
                       std::vector<S> values;
                       while (values.size() < shape.size())
                           values.push_back(detail::as<S>(r.whole(0, 2) == 0 ? 0 : r.between(-2, 2)));
                       return Problem<S>{{Array<S>(shape, values, here())},
                                         [](const Vars& x) { return prod(x[0], 1); }};
                   }});

    const auto along = [&](const char* name, V (*f)(V, std::int64_t)) {
        all.push_back(
            {name, [=](Random& r) {
                 Shape shape = r.shape(3);
                 while (shape.rank() == 0) shape = r.shape(3);
                 const std::int64_t axis = r.whole(-shape.rank(), shape.rank() - 1);
                 return Problem<S>{{r.array<S>(shape)}, [=](const Vars& x) { return f(x[0], axis); }};
             }});
    };
    along("softmax", [](V x, std::int64_t axis) { return softmax(x, axis); });
    along("log_softmax", [](V x, std::int64_t axis) { return log_softmax(x, axis); });
    along("cumsum", [](V x, std::int64_t axis) { return cumsum(x, axis); });
    along("stack", [](V x, std::int64_t axis) { return stack<S>({x, x * 2, x}, axis); });
    along("unsqueeze", [](V x, std::int64_t axis) { return unsqueeze(x, axis); });
    along("slice", [](V x, std::int64_t axis) {
        const std::int64_t extent = x.shape()[detail::checked_axis("slice", axis, x.shape())];
        return slice(x, axis, extent / 3, extent - extent / 4);
    });
    along("concat", [](V x, std::int64_t axis) { return concat<S>({x, x * 2, x}, axis); });
    along("transpose", [](V x, std::int64_t axis) { return transpose(x, 0, axis); });
    along("split", [](V x, std::int64_t) {
        V total = sum(x);
        double weight = 1;
        for (const V& part : split(x, 2)) total = total + sum(part * part) * (weight += 1);
        return total;
    });
    along("rows", [](V x, std::int64_t) {
        const auto last = static_cast<std::int32_t>(x.shape()[0] - 1);
        const std::vector<std::int32_t> picked =
            last < 0 ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{last, 0, last, last / 2};
        return rows(x, Array<std::int32_t>({static_cast<std::int64_t>(picked.size())}, picked));
    });
    one("reshape", [](V x) { return reshape(x, {static_cast<std::int64_t>(x.value().size()), 1, 1}); });
    one("squeeze", [](V x) { return squeeze(x); });
    one("broadcast_to", [](V x) {
        std::vector<std::int64_t> extents(x.shape().begin(), x.shape().end());
        for (auto& extent : extents)
            if (extent == 1) extent = 3;
        extents.insert(extents.begin(), 2);
        return broadcast_to(x, Shape(extents));
    });
    one("permute", [](V x) {
        detail::Axes order;
        for (int axis = x.shape().rank(); axis-- > 0;) order.push_back(axis);
        return permute(x, order);
    });

    all.push_back(
        {"matmul", [](Random& r) {
             const std::int64_t most = r.whole(0, 3) == 0 ? 24 : 4;
             const auto extent = [&] { return r.whole(0, 9) == 0 ? 0 : r.whole(most > 4 ? 12 : 1, most); };
             const std::int64_t m = extent(), k = extent(), n = extent();
             const bool ta = r.coin(), tb = r.coin();
             const Shape a = ta ? Shape{k, m} : Shape{m, k}, b = tb ? Shape{n, k} : Shape{k, n};
             return Problem<S>{{r.array<S>(a), r.array<S>(b)}, [=](const Vars& x) {
                                   return matmul(x[0], x[1], {.transpose_a = ta, .transpose_b = tb});
                               }};
         }});
    all.push_back(
        {"matmul of vectors", [](Random& r) {
             const std::int64_t k = r.whole(1, 4), n = r.whole(1, 3);
             const std::int64_t kind = r.whole(0, 2);
             const Shape a = kind == 1 ? Shape{n, k} : Shape{k}, b = kind == 2 ? Shape{k, n} : Shape{k};
             return Problem<S>{{r.array<S>(a), r.array<S>(b)},
                               [](const Vars& x) { return matmul(x[0], x[1]); }};
         }});
    all.push_back({"matmul batched", [](Random& r) {
                       const std::int64_t m = r.whole(1, 3), k = r.whole(1, 3), n = r.whole(1, 3);
                       const bool ta = r.coin(), tb = r.coin();
                       const Shape batch{r.whole(0, 3), r.whole(1, 2)};
                       const auto with = [&](const Shape& outer, std::int64_t p, std::int64_t q) {
                           std::vector<std::int64_t> extents(outer.begin(), outer.end());
                           extents.push_back(p);
                           extents.push_back(q);
                           return Shape(extents);
                       };
                       Shape outer_a = batch, outer_b = r.within(batch);
                       if (r.coin()) std::swap(outer_a, outer_b);
                       const Shape a = ta ? with(outer_a, k, m) : with(outer_a, m, k),
                                   b = tb ? with(outer_b, n, k) : with(outer_b, k, n);
                       return Problem<S>{{r.array<S>(a), r.array<S>(b)}, [=](const Vars& x) {
                                             return matmul(x[0], x[1],
                                                           {.transpose_a = ta, .transpose_b = tb});
                                         }};
                   }});
    all.push_back({"linear", [](Random& r) {
                       std::vector<std::int64_t> x{r.whole(1, 3), r.whole(0, 3), r.whole(1, 4)};
                       x.erase(x.begin(), x.begin() + r.whole(0, 2));
                       const std::int64_t out = r.whole(1, 4);
                       return Problem<S>{
                           {r.array<S>(Shape(x)), r.array<S>({x.back(), out}), r.array<S>({out})},
                           [](const Vars& v) { return linear(v[0], v[1], v[2]); }};
                   }});
    all.push_back({"linear_relu", [](Random& r) {
                       const std::int64_t in = r.whole(1, 3), out = r.whole(1, 4);
                       return Problem<S>{
                           {r.array<S>({r.whole(0, 6), in}), r.array<S>({in, out}), r.array<S>({out})},
                           [](const Vars& v) { return linear_relu(v[0], v[1], v[2]); }};
                   }});
    all.push_back({"linear without bias", [](Random& r) {
                       const std::int64_t in = r.whole(0, 4), out = r.whole(1, 4);
                       return Problem<S>{{r.array<S>({r.whole(1, 4), in}), r.array<S>({in, out})},
                                         [](const Vars& v) { return linear(v[0], v[1]); }};
                   }});
    all.push_back({"layer_norm", [](Random& r) {
                       const std::int64_t width = r.coin() ? r.whole(2, 5) : r.whole(6, 50);
                       Shape shape{r.whole(0, 3), width};
                       if (r.coin()) shape = Shape{2, r.whole(1, 2), width};
                       return Problem<S>{{r.array<S>(shape), r.array<S>({width}), r.array<S>({width})},
                                         [](const Vars& v) { return layer_norm(v[0], v[1], v[2]); }};
                   }});
    all.push_back(
        {"cross_entropy", [](Random& r) {
             const std::int64_t count = r.whole(1, 5), classes = r.coin() ? r.whole(1, 5) : r.whole(6, 50);
             std::vector<std::int32_t> labels{0};  // at least one label is counted
             while (static_cast<std::int64_t>(labels.size()) < count)
                 labels.push_back(r.whole(0, 3) == 0 ? -100
                                                     : static_cast<std::int32_t>(r.whole(0, classes - 1)));
             const double smoothing = r.coin() ? r.between(0, 1) : 0;
             return Problem<S>{{r.array<S>({count, classes})}, [=](const Vars& v) {
                                   return cross_entropy(v[0], Array<std::int32_t>({count}, labels, here()),
                                                        {.smoothing = smoothing})
                                       .mean();
                               }};
         }});
    all.push_back({"info_nce", [](Random& r) {
                       const Shape shape{r.whole(1, 5), r.whole(1, 4)};
                       const double temperature = r.between(0.3, 3);
                       return Problem<S>{{r.array<S>(shape), r.array<S>(shape)}, [=](const Vars& v) {
                                             return info_nce(v[0], v[1], temperature).mean();
                                         }};
                   }});
    all.push_back({"embedding", [](Random& r) {
                       const std::int64_t entries = r.whole(1, 5);
                       const auto indices = r.integers(r.shape(2), 0, entries - 1).to(Device::cpu);
                       return Problem<S>{{r.array<S>({entries, r.whole(0, 3)})},
                                         [=](const Vars& v) { return embedding(v[0], indices); }};
                   }});
    all.push_back(
        {"dropout", [](Random& r) {
             Shape shape = r.shape(3);
             while (shape.rank() == 0) shape = r.shape(3);
             const double p = r.whole(0, 5) == 0 ? 1 : r.between(0, 0.9);
             const detail::DropoutKey items{7, 1, static_cast<std::uint64_t>(r.whole(0, 9))};
             return Problem<S>{{r.array<S>(shape)}, [=](const Vars& v) { return dropout(v[0], p, items); }};
         }});
    const auto normed = [&](const char* name, auto f) {
        all.push_back({name, [=](Random& r) {
                           const std::int64_t features = r.whole(1, 20);
                           Shape shape{r.whole(2, 5), features};
                           if (r.coin()) shape = Shape{r.whole(1, 3), features, r.whole(2, 3), r.whole(1, 9)};
                           return Problem<S>{
                               {r.array<S>(shape), r.array<S>({features}), r.array<S>({features})},
                               [=](const Vars& v) { return f(v[0], v[1], v[2]); }};
                       }});
    };
    normed("batch_norm", [](V x, V gain, V bias) { return batch_norm(x, gain, bias, 0.1).y; });
    normed("batch_norm in evaluation", [](V x, V gain, V bias) {
        RunningStatistics<S> running(x.shape()[1], here());
        running.mean = Array<S>::full({x.shape()[1]}, S(0.5), here());
        return batch_norm(x, gain, bias, running);
    });
    const auto convolved = [&](const char* name, bool biased) {
        all.push_back({name, [=](Random& r) {
                           const std::int64_t in = r.whole(1, 2), out = r.whole(1, 3),
                                              padding = r.whole(0, 2), stride = r.whole(1, 2);
                           const std::int64_t height = r.whole(1, 5), width = r.whole(1, 5);
                           const Shape weight{out, in, r.whole(1, std::min<std::int64_t>(3, height)),
                                              r.whole(1, std::min<std::int64_t>(3, width))};
                           std::vector<Array<S>> inputs{r.array<S>({r.whole(0, 3), in, height, width}),
                                                        r.array<S>(weight)};
                           if (biased) inputs.push_back(r.array<S>({out}));
                           return Problem<S>{inputs, [=](const Vars& v) {
                                                 return biased ? conv2d(v[0], v[1], v[2], stride, padding)
                                                               : conv2d(v[0], v[1], stride, padding);
                                             }};
                       }});
    };
    convolved("conv2d", true);
    convolved("conv2d without bias", false);
    all.push_back({"max_pool2d", [](Random& r) {
                       const std::int64_t size = r.whole(1, 3), stride = r.whole(0, 3);
                       const Shape shape{r.whole(0, 2), r.whole(1, 2), r.whole(size, 6), r.whole(size, 6)};
                       return Problem<S>{{r.array<S>(shape)},
                                         [=](const Vars& v) { return max_pool2d(v[0], size, stride); }};
                   }});
    all.push_back({"custom", [](Random& r) {
                       return Problem<S>{
                           {r.array<S>({3}), r.array<S>({3})}, [](const Vars& v) {
                               return custom(
                                   "hypotenuse",
                                   [](const Array<S>& a, const Array<S>& b) {
                                       return map(functor::Sqrt{},
                                                  zip(functor::Add{}, zip(functor::Mul{}, a, a),
                                                      zip(functor::Mul{}, b, b)));
                                   },
                                   [](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& y,
                                      const Array<S>& a, const Array<S>& b) {
                                       if (to.needs_grad(0))
                                           to.add(0, zip(functor::Div{}, zip(functor::Mul{}, dy, a), y));
                                       if (to.needs_grad(1))
                                           to.add(1, zip(functor::Div{}, zip(functor::Mul{}, dy, b), y));
                                   },
                                   v[0], v[1]);
                           }};
                   }});
    return all;
}

extern template std::vector<OperationCase<float>> all_operations<float>();
extern template std::vector<OperationCase<double>> all_operations<double>();

}  // namespace tally::test
