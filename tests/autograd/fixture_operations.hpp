// Tables that map the name of a fixture to the tested operation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fixtures.hpp"
#include "here.hpp"
#include "tally/tally.hpp"

namespace tally::test {

// The class Inputs stores the inputs of a fixture as variables.
template <class T> struct Inputs {
    const Fixture& fixture;
    std::map<std::string, Var<T>> variables = {};

    const Var<T>& operator[](const char* name) const { return variables.at(name); }
    double number() const { return fixture.attributes.at("number").at(0); }
};

template <class T> struct Outcome {
    Outcome(Var<T> y) : result(std::move(y)) {}
    Outcome(const Loss<T>& loss) : result(loss.sum), count(loss.count) {}
    Var<T> result, count;
};

template <class T> using Table = std::map<std::string, std::function<Outcome<T>(const Inputs<T>&)>>;

template <class T> const Table<T>& elementwise() {  // this table is for numbers and arrays
    using In = const Inputs<T>&;
    // clang-format off
    static const Table<T> table{
        {"neg", [](In in) { return -in["x"]; }},
        {"exp", [](In in) { return exp(in["x"]); }},
        {"log", [](In in) { return log(in["x"]); }},
        {"log1p", [](In in) { return log1p(in["x"]); }},
        {"expm1", [](In in) { return expm1(in["x"]); }},
        {"softplus", [](In in) { return softplus(in["x"]); }},
        {"silu", [](In in) { return silu(in["x"]); }},
        {"sqrt", [](In in) { return sqrt(in["x"]); }},
        {"tanh", [](In in) { return tanh(in["x"]); }},
        {"sigmoid", [](In in) { return sigmoid(in["x"]); }},
        {"relu", [](In in) { return relu(in["x"]); }},
        {"gelu", [](In in) { return gelu(in["x"]); }},
        {"abs", [](In in) { return abs(in["x"]); }},
        {"sin", [](In in) { return sin(in["x"]); }},
        {"cos", [](In in) { return cos(in["x"]); }},
        {"clamp", [](In in) { return clamp(in["x"], in.fixture.number("lo", -detail::unbounded), in.fixture.number("hi", detail::unbounded)); }},
        {"add_number", [](In in) { return in["x"] + in.number(); }},
        {"number_add", [](In in) { return in.number() + in["x"]; }},
        {"sub_number", [](In in) { return in["x"] - in.number(); }},
        {"number_minus", [](In in) { return in.number() - in["x"]; }},
        {"mul_number", [](In in) { return in["x"] * in.number(); }},
        {"number_mul", [](In in) { return in.number() * in["x"]; }},
        {"div_number", [](In in) { return in["x"] / in.number(); }},
        {"number_over", [](In in) { return in.number() / in["x"]; }},
        {"pow_number", [](In in) { return pow(in["x"], in.number()); }},
        {"add", [](In in) { return in["a"] + in["b"]; }},
        {"sub", [](In in) { return in["a"] - in["b"]; }},
        {"mul", [](In in) { return in["a"] * in["b"]; }},
        {"div", [](In in) { return in["a"] / in["b"]; }},
        {"pow", [](In in) { return pow(in["a"], in["b"]); }},
        {"maximum", [](In in) { return maximum(in["a"], in["b"]); }},
        {"minimum", [](In in) { return minimum(in["a"], in["b"]); }},
        {"squared_difference", [](In in) { return detail::squared_difference(in["a"], in["b"]); }},
    };
    // clang-format on
    return table;
}

inline Shape shape_attribute(const Fixture& f) { return Shape(f.integers("shape")); }

inline Array<std::int32_t> integers(const Fixture& f, const char* name, Device device = here()) {
    const Numbers& n = f.indices.at(name);
    return {n.shape, std::vector<std::int32_t>(n.values.begin(), n.values.end()), device};
}

template <class T> std::vector<Var<T>> listed(const Inputs<T>& in) {
    std::vector<Var<T>> parts;
    for (const auto& [name, part] : in.variables) parts.push_back(part);
    return parts;
}

template <class S> Var<Array<S>> numbers(const Array<std::int32_t>& places) {
    const std::vector<std::int32_t> each = places.to_vector();
    return constant(Array<S>(places.shape(), std::vector<S>(each.begin(), each.end()), here()));
}

template <class S> const Table<Array<S>>& structured() {
    using T = Array<S>;
    using In = const Inputs<T>&;
    // clang-format off
    static const Table<T> table{
        {"where", [](In in) { return where(integers(in.fixture, "mask"), in["a"], in["b"]); }},
        {"sum", [](In in) { return sum(in["x"], in.fixture.integers("axes"), {in.fixture.has("keepdims")}); }},
        {"mean", [](In in) { return mean(in["x"], in.fixture.integers("axes"), {in.fixture.has("keepdims")}); }},
        {"max", [](In in) { return max(in["x"], in.fixture.integers("axes"), {in.fixture.has("keepdims")}); }},
        {"logsumexp", [](In in) { return logsumexp(in["x"], in.fixture.integers("axes"), {in.fixture.has("keepdims")}); }},
        {"var", [](In in) { return var(in["x"], in.fixture.integers("axes"), {in.fixture.has("unbiased"), in.fixture.has("keepdims")}); }},
        {"prod", [](In in) { return prod(in["x"], in.fixture.integers("axes"), {in.fixture.has("keepdims")}); }},
        {"cumsum", [](In in) { return cumsum(in["x"], in.fixture.integer("axis")); }},
        {"argmax", [](In in) { return numbers<S>(argmax(in["x"], in.fixture.integer("axis"), {in.fixture.has("keepdims")})); }},
        {"softmax", [](In in) { return softmax(in["x"], in.fixture.integer("axis")); }},
        {"log_softmax", [](In in) { return log_softmax(in["x"], in.fixture.integer("axis")); }},
        {"reshape", [](In in) { return reshape(in["x"], shape_attribute(in.fixture)); }},
        {"transpose", [](In in) { return transpose(in["x"], in.fixture.integers("axes").at(0), in.fixture.integers("axes").at(1)); }},
        {"permute", [](In in) { return permute(in["x"], in.fixture.integers("axes")); }},
        {"slice", [](In in) { return slice(in["x"], in.fixture.integer("axis"), in.fixture.integer("from"), in.fixture.integer("to")); }},
        {"broadcast_to", [](In in) { return broadcast_to(in["x"], shape_attribute(in.fixture)); }},
        {"rows", [](In in) { return rows(in["x"], integers(in.fixture, "index", Device::cpu)); }},
        {"concat", [](In in) { return concat(listed<T>(in), in.fixture.integer("axis")); }},
        {"stack", [](In in) { return stack(listed<T>(in), in.fixture.integer("axis")); }},
        {"squeeze", [](In in) { return squeeze(in["x"], in.fixture.integers("axes")); }},
        {"unsqueeze", [](In in) { return unsqueeze(in["x"], in.fixture.integer("axis")); }},
        {"matmul", [](In in) { return matmul(in["a"], in["b"], {in.fixture.has("transpose_a"), in.fixture.has("transpose_b")}); }},
        {"linear", [](In in) { return linear(in["x"], in["w"], in["b"]); }},
        {"linear_relu", [](In in) { return linear_relu(in["x"], in["w"], in["b"]); }},
        {"layer_norm", [](In in) { return layer_norm(in["x"], in["gain"], in["bias"], in.fixture.number("eps", 0)); }},
        {"mse", [](In in) { return mse(in["x"], in["target"]); }},
        {"binary_cross_entropy", [](In in) { return binary_cross_entropy(in["x"], in["target"]); }},
        {"cross_entropy", [](In in) {
            const auto ignored = static_cast<std::int32_t>(in.fixture.number("ignore_index", -100));
            return cross_entropy(in["x"], integers(in.fixture, "labels"),
                                 {.ignore = ignored, .smoothing = in.fixture.number("smoothing", 0)});
        }},
        {"info_nce", [](In in) { return info_nce(in["q"], in["k"], in.fixture.number("temperature", 0)); }},
        {"embedding", [](In in) {
            const Fixture& f = in.fixture;
            const std::optional<std::int64_t> padding = f.has("padding") ? std::optional(f.integer("padding")) : std::nullopt;
            return embedding(in["weight"], integers(f, "index", Device::cpu), padding);
        }},
        {"dropout", [](In in) {
            const auto whole = [&](const char* name) { return static_cast<std::uint64_t>(in.fixture.integer(name)); };
            return dropout(in["x"], in.fixture.number("p", 0), {whole("seed"), whole("layer"), whole("first")});
        }},
        {"batch_norm", [](In in) {
            const double eps = in.fixture.number("eps", 0);
            if (!in.variables.count("mean")) return batch_norm(in["x"], in["gain"], in["bias"], eps).y;
            RunningStatistics<S> running(1);
            running.mean = in["mean"].value();
            running.variance = in["var"].value();
            return batch_norm(in["x"], in["gain"], in["bias"], running, eps);
        }},
        {"conv2d", [](In in) {
            const auto stride = in.fixture.integer("stride"), padding = in.fixture.integer("padding");
            return in.variables.count("bias") ? conv2d(in["x"], in["weight"], in["bias"], stride, padding)
                                              : conv2d(in["x"], in["weight"], stride, padding);
        }},
        {"max_pool2d", [](In in) { return max_pool2d(in["x"], in.fixture.integer("size"), static_cast<std::int64_t>(in.fixture.number("stride", 0))); }},
    };
    // clang-format on
    return table;
}

template <class S>
const std::function<Outcome<Array<S>>(const Inputs<Array<S>>&)>& operation(const std::string& name) {
    const auto& table = elementwise<Array<S>>().count(name) ? elementwise<Array<S>>() : structured<S>();
    const auto found = table.find(name);
    if (found == table.end())
        throw std::runtime_error("no operation is listed for tests/fixtures/" + name + ".txt");
    return found->second;
}

}  // namespace tally::test
