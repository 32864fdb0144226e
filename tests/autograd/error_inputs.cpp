// Lists the public operations. For each operation, one function calls the operation and another function
// decides whether the call is valid.
#include "autograd/error_inputs.hpp"

namespace tally::test {

namespace {

using Whole = const std::vector<Array<std::int32_t>>&;

Extents extents(Random& r, std::int64_t least, std::int64_t most) {
    Extents drawn(static_cast<std::size_t>(r.whole(least, most)));
    for (auto& extent : drawn) extent = r.whole(0, 11) == 0 ? 0 : r.whole(1, 4);
    return drawn;
}

Extents repeating(Random& r, Extents out) {  // returns random extents that broadcast to `out`
    for (auto& extent : out)
        if (r.whole(0, 2) == 0) extent = 1;
    out.erase(out.begin(), out.begin() + r.whole(0, static_cast<std::int64_t>(out.size())));
    return out;
}

std::int64_t axis_of(Random& r, const Extents& x) {
    const auto rank = static_cast<std::int64_t>(x.size());
    return r.whole(-rank, rank - 1);
}

Wholes picked(Random& r, Extents shape, std::int64_t end) {
    Wholes drawn{std::move(shape), {}};
    if (end == 0) drawn.shape = {0};
    for (std::int64_t i = 0; i < product(drawn.shape); ++i)
        drawn.values.push_back(static_cast<std::int32_t>(r.whole(0, end - 1)));
    return drawn;
}

bool always(const Call&) { return true; }

void add_elementwise(std::vector<Operation64>& all) {
    const auto one = [&](const char* function, const char* name, Tensor64 (*f)(Tensor64)) {
        all.push_back({function, name,
                       [](Random& r) {
                           return Call{{extents(r, 0, 4)}, {}, {}, {}};
                       },
                       always, [f](const Call&, const Tensors& x, Whole) { f(x[0]); }});
    };
    const auto two = [&](const char* function, const char* name, Tensor64 (*f)(Tensor64, Tensor64)) {
        all.push_back({function, name,
                       [](Random& r) {
                           const Extents out = extents(r, 0, 4);
                           return Call{{out, repeating(r, out)}, {}, {}, {}};
                       },
                       [](const Call& c) { return broadcast_together(c.operands[0], c.operands[1]); },
                       [f](const Call&, const Tensors& x, Whole) { f(x[0], x[1]); }});
    };
    one("exp", "exp", [](Tensor64 x) { return exp(x); });
    one("log", "log", [](Tensor64 x) { return log(x); });
    one("log1p", "log1p", [](Tensor64 x) { return log1p(x); });
    one("expm1", "expm1", [](Tensor64 x) { return expm1(x); });
    one("softplus", "softplus", [](Tensor64 x) { return softplus(x); });
    one("silu", "silu", [](Tensor64 x) { return silu(x); });
    one("sqrt", "sqrt", [](Tensor64 x) { return sqrt(x); });
    one("tanh", "tanh", [](Tensor64 x) { return tanh(x); });
    one("sigmoid", "sigmoid", [](Tensor64 x) { return sigmoid(x); });
    one("relu", "relu", [](Tensor64 x) { return relu(x); });
    one("gelu", "gelu", [](Tensor64 x) { return gelu(x); });
    one("abs", "abs", [](Tensor64 x) { return abs(x); });
    one("sin", "sin", [](Tensor64 x) { return sin(x); });
    one("cos", "cos", [](Tensor64 x) { return cos(x); });
    one("operator-", "neg", [](Tensor64 x) { return -x; });
    two("operator+", "add", [](Tensor64 a, Tensor64 b) { return a + b; });
    two("operator-", "sub", [](Tensor64 a, Tensor64 b) { return a - b; });
    two("operator*", "mul", [](Tensor64 a, Tensor64 b) { return a * b; });
    two("operator/", "div", [](Tensor64 a, Tensor64 b) { return a / b; });
    two("pow", "pow", [](Tensor64 a, Tensor64 b) { return pow(a, b); });
    two("maximum", "maximum", [](Tensor64 a, Tensor64 b) { return maximum(a, b); });
    two("minimum", "minimum", [](Tensor64 a, Tensor64 b) { return minimum(a, b); });
    two("squared_difference", "squared_difference",
        [](Tensor64 a, Tensor64 b) { return detail::squared_difference(a, b); });
    all.push_back({"clamp", "clamp",
                   [](Random& r) {
                       return Call{{extents(r, 0, 3)}, {}, {-1, 1}, {}};
                   },
                   [](const Call& c) { return !std::isnan(c.numbers[0]) && !std::isnan(c.numbers[1]); },
                   [](const Call& c, const Tensors& x, Whole) { clamp(x[0], c.numbers[0], c.numbers[1]); }});
    all.push_back(
        {"where", "where",
         [](Random& r) {
             const Extents out = extents(r, 0, 4);
             return Call{{repeating(r, out), repeating(r, out)}, {}, {}, {picked(r, repeating(r, out), 2)}};
         },
         [](const Call& c) {
             Extents both;
             return broadcast_together(c.operands[0], c.operands[1], &both) &&
                    broadcast_together(c.indices[0].shape, both);
         },
         [](const Call&, const Tensors& x, Whole condition) { where(condition[0], x[0], x[1]); }});
}

void add_reductions(std::vector<Operation64>& all) {
    const auto reduction = [&](const char* name, Tensor64 (*f)(Tensor64, const detail::Axes&, bool),
                               bool not_empty) {
        all.push_back(
            {name, name,
             [not_empty](Random& r) {
                 Extents x = extents(r, 0, 4);
                 if (not_empty)
                     for (auto& extent : x) extent = std::max<std::int64_t>(extent, 1);
                 Call call{{x}, {}, {}, {}};
                 for (std::size_t axis = 0; axis < x.size(); ++axis)
                     if (r.coin())
                         call.whole.push_back(static_cast<std::int64_t>(axis) -
                                              (r.coin() ? static_cast<std::int64_t>(x.size()) : 0));
                 return call;
             },
             [not_empty](const Call& c) {
                 const Extents& x = c.operands[0];
                 if (!are_axes(c.whole, x)) return false;
                 if (!not_empty) return true;
                 std::int64_t reduced = 1, kept = 1;
                 for (std::size_t i = 0; i < x.size(); ++i) {
                     const bool gone =
                         c.whole.empty() || std::any_of(c.whole.begin(), c.whole.end(), [&](auto axis) {
                             return from_front(axis, x) == static_cast<std::int64_t>(i);
                         });
                     (gone ? reduced : kept) *= x[i];
                 }
                 return reduced > 0 || kept == 0;
             },
             [f](const Call& c, const Tensors& x, Whole) { f(x[0], c.whole, c.whole.size() % 2 == 1); }});
    };
    reduction(
        "sum",
        [](Tensor64 x, const detail::Axes& axes, bool keep) { return sum(x, axes, {.keepdims = keep}); },
        false);
    reduction(
        "mean",
        [](Tensor64 x, const detail::Axes& axes, bool keep) { return mean(x, axes, {.keepdims = keep}); },
        false);
    reduction(
        "max",
        [](Tensor64 x, const detail::Axes& axes, bool keep) { return max(x, axes, {.keepdims = keep}); },
        true);
    reduction(
        "logsumexp",
        [](Tensor64 x, const detail::Axes& axes, bool keep) {
            return logsumexp(x, axes, {.keepdims = keep});
        },
        false);
    reduction(
        "var",
        [](Tensor64 x, const detail::Axes& axes, bool keep) { return var(x, axes, {.keepdims = keep}); },
        false);
    reduction(
        "prod",
        [](Tensor64 x, const detail::Axes& axes, bool keep) { return prod(x, axes, {.keepdims = keep}); },
        false);
    const auto along = [&](const char* name, Tensor64 (*f)(Tensor64, std::int64_t)) {
        all.push_back({name, name,
                       [](Random& r) {
                           const Extents x = extents(r, 1, 4);
                           return Call{{x}, {axis_of(r, x)}, {}, {}};
                       },
                       [](const Call& c) { return is_axis(c.whole[0], c.operands[0]); },
                       [f](const Call& c, const Tensors& x, Whole) { f(x[0], c.whole[0]); }});
    };
    along("cumsum", [](Tensor64 x, std::int64_t axis) { return cumsum(x, axis); });
    all.push_back({"argmax", "argmax",
                   [](Random& r) {
                       Extents x = extents(r, 1, 4);
                       const std::int64_t axis = axis_of(r, x);
                       auto& reduced = x[static_cast<std::size_t>(from_front(axis, x))];
                       reduced = std::max<std::int64_t>(reduced, 1);
                       return Call{{x}, {axis}, {}, {}};
                   },
                   [](const Call& c) {
                       const Extents& x = c.operands[0];
                       if (!is_axis(c.whole[0], x)) return false;
                       Extents kept = x;
                       kept.erase(kept.begin() + from_front(c.whole[0], x));
                       return x[static_cast<std::size_t>(from_front(c.whole[0], x))] > 0 ||
                              product(kept) == 0;
                   },
                   [](const Call& c, const Tensors& x, Whole) { argmax(x[0], c.whole[0]); }});
    along("softmax", [](Tensor64 x, std::int64_t axis) { return softmax(x, axis); });
    along("log_softmax", [](Tensor64 x, std::int64_t axis) { return log_softmax(x, axis); });
}

void add_movers(std::vector<Operation64>& all) {
    all.push_back({"reshape", "reshape",
                   [](Random& r) {
                       const Extents x = extents(r, 0, 4);
                       return Call{{x}, Extents(x.rbegin(), x.rend()), {}, {}};
                   },
                   [](const Call& c) {
                       std::int64_t known = 1, open = 0;
                       for (const std::int64_t extent : c.whole) {
                           if (extent < -1 || extent > 1'000'000) return false;
                           extent == -1 ? ++open : known *= extent;
                       }
                       const std::int64_t size = product(c.operands[0]);
                       if (c.whole.size() > 6 || open > 1) return false;
                       return open ? known > 0 && size % known == 0 : known == size;
                   },
                   [](const Call& c, const Tensors& x, Whole) { reshape(x[0], c.whole); }});
    all.push_back({"permute", "permute",
                   [](Random& r) {
                       const Extents x = extents(r, 0, 4);
                       Call call{{x}, {}, {}, {}};
                       for (std::size_t axis = x.size(); axis-- > 0;)
                           call.whole.push_back(static_cast<std::int64_t>(axis) -
                                                (r.coin() ? static_cast<std::int64_t>(x.size()) : 0));
                       return call;
                   },
                   [](const Call& c) {
                       return c.whole.size() == c.operands[0].size() && are_axes(c.whole, c.operands[0]);
                   },
                   [](const Call& c, const Tensors& x, Whole) { permute(x[0], c.whole); }});
    all.push_back({"transpose", "transpose",
                   [](Random& r) {
                       const Extents x = extents(r, 1, 4);
                       return Call{{x}, {axis_of(r, x), axis_of(r, x)}, {}, {}};
                   },
                   [](const Call& c) {
                       return is_axis(c.whole[0], c.operands[0]) && is_axis(c.whole[1], c.operands[0]);
                   },
                   [](const Call& c, const Tensors& x, Whole) { transpose(x[0], c.whole[0], c.whole[1]); }});
    all.push_back({"broadcast_to", "broadcast_to",
                   [](Random& r) {
                       const Extents out = extents(r, 0, 4);
                       return Call{{repeating(r, out), out}, {}, {}, {}};
                   },
                   [](const Call& c) {
                       Extents both;
                       return broadcast_together(c.operands[0], c.operands[1], &both) &&
                              both == c.operands[1];
                   },
                   [](const Call&, const Tensors& x, Whole) { broadcast_to(x[0], x[1].shape()); }});
    all.push_back(
        {"slice", "slice",
         [](Random& r) {
             const Extents x = extents(r, 1, 4);
             const std::int64_t axis = axis_of(r, x),
                                extent = x[static_cast<std::size_t>(from_front(axis, x))],
                                from = r.whole(0, extent);
             return Call{{x}, {axis, from, r.whole(from, extent)}, {}, {}};
         },
         [](const Call& c) {
             const Extents& x = c.operands[0];
             return is_axis(c.whole[0], x) && 0 <= c.whole[1] && c.whole[1] <= c.whole[2] &&
                    c.whole[2] <= x[static_cast<std::size_t>(from_front(c.whole[0], x))];
         },
         [](const Call& c, const Tensors& x, Whole) { slice(x[0], c.whole[0], c.whole[1], c.whole[2]); }});
    all.push_back({"at", "at",
                   [](Random& r) {
                       Extents x = extents(r, 1, 4);
                       x[0] = r.whole(1, 3);
                       return Call{{x}, {r.whole(-x[0], x[0] - 1)}, {}, {}};
                   },
                   [](const Call& c) {
                       const Extents& x = c.operands[0];
                       return !x.empty() && -x[0] <= c.whole[0] && c.whole[0] < x[0];
                   },
                   [](const Call& c, const Tensors& x, Whole) { at(x[0], c.whole[0]); }});
    all.push_back({"concat", "concat",
                   [](Random& r) {
                       const Extents x = extents(r, 1, 4);
                       const std::int64_t axis = axis_of(r, x);
                       Call call{{x}, {axis}, {}, {}};
                       for (std::int64_t more = r.whole(0, 2); more-- > 0;) {
                           call.operands.push_back(x);
                           call.operands.back()[static_cast<std::size_t>(from_front(axis, x))] =
                               r.whole(0, 3);
                       }
                       return call;
                   },
                   [](const Call& c) {
                       if (!is_axis(c.whole[0], c.operands[0])) return false;
                       const auto along = static_cast<std::size_t>(from_front(c.whole[0], c.operands[0]));
                       return std::all_of(c.operands.begin(), c.operands.end(), [&](Extents part) {
                           if (part.size() != c.operands[0].size()) return false;
                           part[along] = c.operands[0][along];
                           return part == c.operands[0];
                       });
                   },
                   [](const Call& c, const Tensors& x, Whole) { concat<double>(x, c.whole[0]); }});
    all.push_back({"stack", "stack",
                   [](Random& r) {
                       const Extents x = extents(r, 0, 4);
                       const auto rank = static_cast<std::int64_t>(x.size());
                       return Call{std::vector<Extents>(static_cast<std::size_t>(r.whole(1, 3)), x),
                                   {r.whole(-rank - 1, rank)},
                                   {},
                                   {}};
                   },
                   [](const Call& c) {
                       const auto rank = static_cast<std::int64_t>(c.operands[0].size());
                       return -rank - 1 <= c.whole[0] && c.whole[0] <= rank &&
                              std::all_of(c.operands.begin(), c.operands.end(),
                                          [&](const Extents& part) { return part == c.operands[0]; });
                   },
                   [](const Call& c, const Tensors& x, Whole) { stack<double>(x, c.whole[0]); }});
    all.push_back({"unsqueeze", "unsqueeze",
                   [](Random& r) {
                       const Extents x = extents(r, 0, 4);
                       const auto rank = static_cast<std::int64_t>(x.size());
                       return Call{{x}, {r.whole(-rank - 1, rank)}, {}, {}};
                   },
                   [](const Call& c) {
                       const auto rank = static_cast<std::int64_t>(c.operands[0].size());
                       return -rank - 1 <= c.whole[0] && c.whole[0] <= rank;
                   },
                   [](const Call& c, const Tensors& x, Whole) { unsqueeze(x[0], c.whole[0]); }});
    all.push_back({"squeeze", "squeeze",
                   [](Random& r) {
                       Extents x = extents(r, 1, 4);
                       const std::int64_t axis = axis_of(r, x);
                       x[static_cast<std::size_t>(from_front(axis, x))] = 1;
                       return Call{{x}, {axis}, {}, {}};
                   },
                   [](const Call& c) {
                       const Extents& x = c.operands[0];
                       return are_axes(c.whole, x) &&
                              std::all_of(c.whole.begin(), c.whole.end(), [&](std::int64_t axis) {
                                  return x[static_cast<std::size_t>(from_front(axis, x))] == 1;
                              });
                   },
                   [](const Call& c, const Tensors& x, Whole) { squeeze(x[0], c.whole); }});
    all.push_back({"split", "split",
                   [](Random& r) {
                       return Call{{extents(r, 1, 3)}, {r.whole(1, 5)}, {}, {}};
                   },
                   [](const Call& c) { return !c.operands[0].empty() && c.whole[0] >= 1; },
                   [](const Call& c, const Tensors& x, Whole) { split(x[0], c.whole[0]); }});
    all.push_back({"split", "split",
                   [](Random& r) {
                       const Extents x = extents(r, 1, 3);
                       const std::int64_t first = r.whole(0, x[0]);
                       return Call{{x}, {first, x[0] - first}, {}, {}};
                   },
                   [](const Call& c) {
                       if (c.operands[0].empty()) return false;
                       std::int64_t left = c.operands[0][0];
                       for (const std::int64_t size : c.whole) {
                           if (size < 0 || size > left) return false;
                           left -= size;
                       }
                       return left == 0;
                   },
                   [](const Call& c, const Tensors& x, Whole) { split(x[0], c.whole); }});
    all.push_back({"rows", "rows",
                   [](Random& r) {
                       const Extents x = extents(r, 1, 3);
                       return Call{{x}, {}, {}, {picked(r, {r.whole(0, 4)}, x[0])}};
                   },
                   [](const Call& c) {
                       return !c.operands[0].empty() && c.indices[0].shape.size() == 1 &&
                              c.indices[0].below(c.operands[0][0], -c.operands[0][0]);
                   },
                   [](const Call&, const Tensors& x, Whole index) { rows(x[0], index[0]); }});
    all.push_back({"embedding", "embedding",
                   [](Random& r) {
                       const Extents x = extents(r, 1, 3);
                       return Call{{x}, {}, {}, {picked(r, extents(r, 0, 3), x[0])}};
                   },
                   [](const Call& c) {
                       return !c.operands[0].empty() && c.indices[0].below(c.operands[0][0]) &&
                              c.indices[0].shape.size() + c.operands[0].size() <= 7;
                   },
                   [](const Call&, const Tensors& x, Whole index) { embedding(x[0], index[0]); }});
    all.push_back(
        {"embedding", "embedding",
         [](Random& r) {
             Extents x = extents(r, 1, 3);
             x[0] = r.whole(1, 4);
             return Call{{x}, {r.whole(-x[0], x[0] - 1)}, {}, {picked(r, {2}, x[0])}};
         },
         [](const Call& c) {
             return !c.operands[0].empty() && c.indices[0].below(c.operands[0][0]) &&
                    -c.operands[0][0] <= c.whole[0] && c.whole[0] < c.operands[0][0];
         },
         [](const Call& c, const Tensors& x, Whole index) { embedding(x[0], index[0], c.whole[0]); }});
}

void add_products(std::vector<Operation64>& all) {
    for (const bool turned_a : {false, true})
        for (const bool turned_b : {false, true})
            all.push_back({"matmul", "matmul",
                           [=](Random& r) {
                               const std::int64_t m = r.whole(0, 3), k = r.whole(1, 3), n = r.whole(1, 3);
                               const Extents batch = extents(r, 0, 2);
                               Extents a = repeating(r, batch), b = repeating(r, batch);
                               a.insert(a.end(), {turned_a ? k : m, turned_a ? m : k});
                               b.insert(b.end(), {turned_b ? n : k, turned_b ? k : n});
                               return Call{{a, b}, {}, {}, {}};
                           },
                           [=](const Call& c) {
                               return product_fits(c.operands[0], c.operands[1], turned_a, turned_b);
                           },
                           [=](const Call&, const Tensors& x, Whole) {
                               matmul(x[0], x[1], {.transpose_a = turned_a, .transpose_b = turned_b});
                           }});
    const auto layer = [&](const char* name, bool biased, auto f) {
        all.push_back({name, name,
                       [biased](Random& r) {
                           const Extents x = extents(r, 1, 4);
                           const std::int64_t out = r.whole(1, 4);
                           Call call{{x, {x.back(), out}}, {}, {}, {}};
                           if (biased) call.operands.push_back({out});
                           return call;
                       },
                       layer_fits, [f](const Call&, const Tensors& x, Whole) { f(x); }});
    };
    layer("linear", true, [](const Tensors& x) { linear(x[0], x[1], x[2]); });
    layer("linear", false, [](const Tensors& x) { linear(x[0], x[1]); });
    layer("linear_relu", true, [](const Tensors& x) { linear_relu(x[0], x[1], x[2]); });
}

void add_windows(std::vector<Operation64>& all) {
    for (const bool biased : {false, true})
        all.push_back({"conv2d", "conv2d",
                       [biased](Random& r) {
                           const std::int64_t in = r.whole(1, 2), out = r.whole(1, 3);
                           Call call{{{r.whole(0, 2), in, r.whole(2, 5), r.whole(2, 5)},
                                      {out, in, r.whole(1, 2), r.whole(1, 2)}},
                                     {r.whole(1, 3), r.whole(0, 2)},
                                     {},
                                     {}};
                           if (biased) call.operands.push_back({out});
                           return call;
                       },
                       convolution_fits,
                       [biased](const Call& c, const Tensors& x, Whole) {
                           biased ? conv2d(x[0], x[1], x[2], c.whole[0], c.whole[1])
                                  : conv2d(x[0], x[1], c.whole[0], c.whole[1]);
                       }});
    all.push_back({"max_pool2d", "max_pool2d",
                   [](Random& r) {
                       return Call{{{r.whole(0, 2), r.whole(1, 2), r.whole(3, 6), r.whole(3, 6)}},
                                   {r.whole(1, 3), r.whole(1, 3)},
                                   {},
                                   {}};
                   },
                   [](const Call& c) {
                       return c.operands[0].size() == 4 &&
                              windows_fit(c.operands[0], c.whole[0], c.whole[0],
                                          c.whole[1] == 0 ? c.whole[0] : c.whole[1], 0);
                   },
                   [](const Call& c, const Tensors& x, Whole) { max_pool2d(x[0], c.whole[0], c.whole[1]); }});
}

void add_norms(std::vector<Operation64>& all) {
    all.push_back(
        {"layer_norm", "layer_norm",
         [](Random& r) {
             const Extents x = extents(r, 1, 4);
             return Call{{x, {x.back()}, {x.back()}}, {}, {1e-5}, {}};
         },
         [](const Call& c) {
             const Extents& x = c.operands[0];
             return !x.empty() && c.operands[1] == Extents{x.back()} && c.operands[2] == Extents{x.back()} &&
                    eps_fits(c.numbers[0]);
         },
         [](const Call& c, const Tensors& x, Whole) { layer_norm(x[0], x[1], x[2], c.numbers[0]); }});
    const auto features = [](Random& r) {
        Extents x = extents(r, 2, 4);
        if (product(x) == (x[1])) x[0] = 2;
        return Call{{x, {x[1]}, {x[1]}}, {}, {1e-5}, {}};
    };
    all.push_back(
        {"batch_norm", "batch_norm", features,
         [](const Call& c) {
             if (!features_fit(c) || !eps_fits(c.numbers[0])) return false;
             Extents values = c.operands[0];
             values[1] = 1;
             return product(values) != 1;
         },
         [](const Call& c, const Tensors& x, Whole) { batch_norm(x[0], x[1], x[2], c.numbers[0]); }});
    all.push_back({"batch_norm", "batch_norm", features,
                   [](const Call& c) { return features_fit(c) && eps_fits(c.numbers[0]); },
                   [](const Call& c, const Tensors& x, Whole) {
                       const Extents known(x[1].shape().begin(), x[1].shape().end());
                       const RunningStatistics<double> running(known.empty() ? 1 : known[0]);
                       batch_norm(x[0], x[1], x[2], running, c.numbers[0]);
                   }});
    all.push_back({"batch_statistics", "batch_norm",
                   [=](Random& r) {
                       Call call = features(r);
                       call.numbers.clear();
                       return call;
                   },
                   features_fit,
                   [](const Call&, const Tensors& x, Whole) {
                       detail::batch_statistics(x[0], x[1].value(), x[2].value());
                   }});
    all.push_back({"pooled_with", "batch_norm",
                   [](Random& r) {
                       const Extents of{r.whole(1, 4)};
                       return Call{{of, of}, {}, {}, {}};
                   },
                   [](const Call& c) { return c.operands[0] == c.operands[1]; },
                   [](const Call&, const Tensors& x, Whole) {
                       RunningStatistics<double>::Batch{x[0].value(), x[0].value(), 2}.pooled_with(
                           {x[1].value(), x[1].value(), 3});
                   }});
    all.push_back(
        {"dropout", "dropout",
         [](Random& r) {
             return Call{{extents(r, 1, 4)}, {}, {r.between(0, 1)}, {}};
         },
         [](const Call& c) { return !c.operands[0].empty() && c.numbers[0] >= 0 && c.numbers[0] <= 1; },
         [](const Call& c, const Tensors& x, Whole) {
             dropout(x[0], c.numbers[0], {1, 2, 3});
         }});
}

void add_losses(std::vector<Operation64>& all) {
    const auto compared = [&](const char* name, Loss<Array<double>> (*f)(Tensor64, Tensor64)) {
        all.push_back({name, name,
                       [](Random& r) {
                           const Extents x = extents(r, 0, 4);
                           return Call{{x, x}, {}, {}, {}};
                       },
                       [](const Call& c) { return c.operands[0] == c.operands[1]; },
                       [f](const Call&, const Tensors& x, Whole) { f(x[0], x[1]); }});
    };
    compared("mse", [](Tensor64 a, Tensor64 b) { return mse(a, b); });
    compared("binary_cross_entropy", [](Tensor64 a, Tensor64 b) { return binary_cross_entropy(a, b); });
    all.push_back({"cross_entropy", "cross_entropy",
                   [](Random& r) {
                       const std::int64_t rows = r.whole(0, 4), classes = r.whole(1, 4);
                       return Call{{{rows, classes}}, {}, {r.between(0, 1)}, {picked(r, {rows}, classes)}};
                   },
                   [](const Call& c) {
                       const Extents& x = c.operands[0];
                       return x.size() == 2 && c.indices[0].shape == Extents{x[0]} &&
                              c.indices[0].below(x[1]) && c.numbers[0] >= 0 && c.numbers[0] <= 1;
                   },
                   [](const Call& c, const Tensors& x, Whole labels) {
                       cross_entropy(x[0], labels[0], {.smoothing = c.numbers[0]});
                   }});
    all.push_back({"info_nce", "info_nce",
                   [](Random& r) {
                       const Extents x{r.whole(1, 4), r.whole(1, 4)};
                       return Call{{x, x}, {}, {r.between(0.1, 2)}, {}};
                   },
                   [](const Call& c) {
                       return c.operands[0].size() == 2 && c.operands[0] == c.operands[1] &&
                              c.numbers[0] > 0 && std::isfinite(c.numbers[0]) && c.operands[0][0] > 0;
                   },
                   [](const Call& c, const Tensors& x, Whole) { info_nce(x[0], x[1], c.numbers[0]); }});
}

}  // namespace

std::vector<Operation64> operations_and_rules() {
    std::vector<Operation64> all;
    add_elementwise(all);
    add_reductions(all);
    add_movers(all);
    add_products(all);
    add_windows(all);
    add_norms(all);
    add_losses(all);
    return all;
}

}  // namespace tally::test
