// Compares every operation with the reference values in tests/fixtures, which PyTorch computed.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <limits>
#include <regex>
#include <tuple>
#include <utility>

#include "autograd/fixture_operations.hpp"
#include "catch.hpp"
#include "fixtures.hpp"
#include "tally/tally.hpp"

namespace tally::test {
namespace {

const std::filesystem::path source_dir = TALLY_SOURCE_DIR;

const std::map<std::string, std::vector<Fixture>>& fixtures() {
    static const auto all = read_fixtures(source_dir / "tests" / "fixtures");
    return all;
}

// ---- comparing ----

// If an operation only moves, selects or negates numbers, its results must equal PyTorch's, including the
// sign of zero.
const std::set<std::string> moving{
    "reshape", "transpose", "permute",   "slice",      "concat", "rows",    "broadcast_to", "where",
    "neg",     "abs",       "embedding", "max_pool2d", "stack",  "squeeze", "unsqueeze",    "argmax"};
const std::set<std::string> summing_back{"rows", "broadcast_to", "embedding", "max_pool2d"};
const std::set<std::string> rounding_once{
    "relu",       "clamp",        "max",        "maximum",    "minimum",    "add",
    "sub",        "mul",          "div",        "sqrt",       "add_number", "number_add",
    "sub_number", "number_minus", "mul_number", "number_mul", "div_number"};

// Returns true if PyTorch and tally must compute equal gradients, without rounding errors.
bool exact_gradient(const Fixture& f) {
    const std::string& op = f.operation;
    if (summing_back.count(op) || f.tags.count("broadcast")) return false;
    return moving.count(op) || rounding_once.count(op) || op == "sum" || op == "mean";
}

enum class Closeness { bits, equal, relative, scaled };

// The terms of a sum may cancel. With `scaled`, the error of a sum is therefore divided by `scale`, or by the
// expected number if this number is larger.
struct Measure {
    Closeness closeness;
    double tolerance, scale;

    bool agree(double got, double want) const {
        if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
        if (closeness == Closeness::bits && std::signbit(got) != std::signbit(want)) return false;
        if (got == want) return true;
        if (closeness < Closeness::relative || std::isinf(got) || std::isinf(want)) return false;
        return std::abs(got - want) <=
               tolerance * std::max(std::abs(want), closeness == Closeness::scaled ? scale : 0.0);
    }
};

double largest(const std::vector<double>& values) {
    double most = 0;
    for (double v : values)
        if (std::isfinite(v)) most = std::max(most, std::abs(v));
    return most;
}

Measure measure(const Fixture& f, const std::vector<double>& want, bool forward) {
    Closeness closeness = Closeness::scaled;
    const std::string& op = f.operation;
    if (forward && moving.count(op))
        closeness = Closeness::bits;
    else if (forward ? rounding_once.count(op) > 0 : exact_gradient(f))
        closeness = Closeness::equal;
    else if (elementwise<double>().count(op) && op != "gelu" && forward)
        closeness = Closeness::relative;
    constexpr double rounding = std::numeric_limits<float>::epsilon() / 2.0;
    return {closeness, f.single_precision ? (op == "batch_norm" ? 64 : 32) * rounding : 1e-12,
            std::min(1.0, std::max(largest(want), largest(f.seed.values)))};
}

// Describes the first difference, or returns an empty string. `times` is the number of backward passes whose
// gradients were added.
template <class S> std::string difference(const Fixture& f, const std::string& what, const Array<S>& got,
                                          const Numbers& want, bool forward, double times = 1) {
    if (got.shape() != want.shape)
        return what + " has the shape " + to_string(got.shape()) + ", not " + to_string(want.shape);
    const Measure m = measure(f, want.values, forward);
    const std::vector<S> elements = got.to_vector();
    for (std::size_t i = 0; i < want.values.size(); ++i) {
        const double g = static_cast<double>(elements[i]), w = times * want.values[i];
        if (m.agree(g, w)) continue;
        std::ostringstream text;
        text.precision(17);
        text << what << "[" << i << "] is " << g << ", not " << w;
        for (const auto& [name, numbers] : f.inputs)
            if (numbers.shape == want.shape) text << "; " << name << "[" << i << "] = " << numbers.values[i];
        return text.str();
    }
    return {};
}

// ---- running one case ----

template <class S> Array<S> array_of(const Numbers& n) {
    std::vector<S> values(n.values.size());
    std::transform(n.values.begin(), n.values.end(), values.begin(),
                   [](double v) { return static_cast<S>(v); });
    return {n.shape, values, here()};
}

// Makes parameters from all inputs with an expected gradient, or from one input with the name `only`.
template <class S> Inputs<Array<S>> inputs_of(const Fixture& f, const std::string& only = "") {
    Inputs<Array<S>> in{f};
    for (const auto& [name, numbers] : f.inputs) {
        const bool is_parameter = f.gradients.count(name) && (only.empty() || only == name);
        in.variables.emplace(name,
                             is_parameter ? parameter(array_of<S>(numbers)) : constant(array_of<S>(numbers)));
    }
    return in;
}

template <class S> std::string disagreement(const Fixture& f) {
    const auto& compute = operation<S>(f.operation);
    if (f.raises) {
        try {
            // Reading the values waits for the device, which then reports errors of its kernels.
            compute(inputs_of<S>(f)).result.value().to_vector();
        } catch (const Error&) {
            return {};
        }
        return "is accepted, but PyTorch refuses it";
    }
    const Inputs<Array<S>> in = inputs_of<S>(f);
    std::string found;
    const auto gradients = [&](const Inputs<Array<S>>& from, const std::string& when, double times) {
        for (const auto& [name, want] : f.gradients) {
            if (!found.empty() || !from[name.c_str()].requires_grad()) continue;
            if (!from[name.c_str()].has_grad())
                found = "no gradient arrived at " + name + when;
            else
                found = difference(f, "grad " + name + when, from[name.c_str()].grad(), want, false, times);
        }
    };

    const Outcome<Array<S>> first = compute(in);
    found = difference(f, "output", first.result.value(), f.output, true);
    if (found.empty() && f.count && static_cast<double>(first.count.item()) != *f.count)
        found = "count is " + std::to_string(first.count.item()) + ", not " + std::to_string(*f.count);
    if (!found.empty() || f.gradients.empty()) return found;
    first.result.backward(array_of<S>(f.seed));
    gradients(in, "", 1);
    compute(in).result.backward(array_of<S>(f.seed));  // the second backward pass adds to the gradient
    gradients(in, " after two passes", 2);
    for (const auto& [name, variable] : in.variables) variable.zero_grad();
    compute(in).result.backward(array_of<S>(f.seed));  // this backward pass overwrites the old gradient
    gradients(in, " after zero_grad", 1);
    if (f.gradients.size() > 1)
        for (const auto& [name, want] : f.gradients) {
            const Inputs<Array<S>> alone = inputs_of<S>(f, name);
            compute(alone).result.backward(array_of<S>(f.seed));
            gradients(alone, " when only this input needs one", 1);
        }
    return found;
}

// Computes an elementwise fixture with scalars, and describes the first difference.
template <class S> std::string scalar_disagreement(const Fixture& f) {
    const auto& compute = elementwise<S>().at(f.operation);
    Array<S> output = Array<S>::zeros(f.output.shape);
    std::map<std::string, Array<S>> gradients;
    for (const auto& [name, want] : f.gradients) gradients.emplace(name, Array<S>::zeros(want.shape));
    for (std::size_t i = 0; i < f.output.values.size(); ++i) {
        Inputs<S> in{f};
        for (const auto& [name, numbers] : f.inputs)
            in.variables.emplace(name, parameter(static_cast<S>(numbers.values[i])));
        const Var<S> y = compute(in).result;
        y.backward(static_cast<S>(f.seed.values[i]));
        output.writable()[i] = y.value();
        for (auto& [name, gradient] : gradients) gradient.writable()[i] = in[name.c_str()].grad();
    }
    std::string found = difference(f, "output", output, f.output, true);
    for (const auto& [name, want] : f.gradients)
        if (found.empty()) found = difference(f, "grad " + name, gradients.at(name), want, false);
    return found;
}

// ---- where tally differs from PyTorch on purpose ----

struct Departure {
    struct Place {
        std::string what;  // "output", or the input whose gradient differs
        std::size_t element;
        double instead;
    };
    std::string why;
    std::vector<Place> places;  // if empty, tally accepts the input and returns NaN
};

constexpr double inf = std::numeric_limits<double>::infinity();

const std::map<std::string, Departure>& departures() {
    const std::string pow =
        "PyTorch takes sqrt(x) for x ** 0.5 and 1 / sqrt(x) for x ** -0.5; tally follows IEEE 754's pow";
    const std::string probability =
        "PyTorch looks at every probability; tally does not, and what is wrong stays visible as NaN";
    const std::string ignored = "an ignored row counts for nothing, whatever it holds";
    const std::string product =
        "an element that is NaN is not among the others, whose product its gradient is";
    const std::string variance =
        "PyTorch takes the mean for a constant; an infinite one moves nothing by NaN";
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    static const std::map<std::string, Departure> all{
        {"prod/nan-axis-1", {product, {{"x", 0, -0.514}}}},
        {"var/infinity-axes-1", {variance, {{"x", 0, nan}, {"x", 2, nan}, {"x", 3, nan}, {"x", 4, nan}}}},
        {"pow_number/edges-to-0.5", {pow, {{"output", 3, inf}, {"x", 1, inf}, {"x", 3, 0}}}},
        {"pow_number/edges-to-0.5-float32", {pow, {{"output", 3, inf}, {"x", 1, -inf}, {"x", 3, 0}}}},
        {"pow_number/edges-to--0.5", {pow, {{"output", 1, inf}, {"output", 3, 0}}}},
        {"binary_cross_entropy/impossible", {probability, {}}},
        {"binary_cross_entropy/negative", {probability, {}}},
        {"binary_cross_entropy/nan", {probability, {}}},
        {"cross_entropy/ignored-row-is-nan", {ignored, {{"x", 2, 0}, {"x", 3, 0}}}},
    };
    return all;
}

// Replaces PyTorch's values by documented values if tally differs from PyTorch on purpose.
Fixture meant(Fixture f) {
    const auto found = departures().find(f.name);
    if (found == departures().end()) return f;
    for (const auto& [what, element, instead] : found->second.places)
        (what == "output" ? f.output : f.gradients.at(what)).values.at(element) = instead;
    if (found->second.places.empty()) {
        f.raises = false;
        f.output = {{}, {std::numeric_limits<double>::quiet_NaN()}};
    }
    return f;
}

bool same_shapes(const Fixture& f) {
    return std::all_of(f.inputs.begin(), f.inputs.end(),
                       [&](const auto& input) { return input.second.shape == f.output.shape; });
}

const std::set<std::string> laws{"toy", "split_mse", "split_cross_entropy"};

template <class Check> void each_case(bool single_precision, Check check) {
    for (const auto& [op, cases] : fixtures()) {
        if (laws.count(op)) continue;
        for (const Fixture& f : cases) {
            if (f.single_precision != single_precision) continue;
            INFO(f.name);
            std::string found;
            try {
                found = check(meant(f));
            } catch (const std::exception& thrown) {
                found = std::string("throws: ") + thrown.what();
            }
            CHECK(found == "");
        }
    }
}

// ---- the laws ----

template <class S> double toy(const Fixture& f, const Inputs<Array<S>>& in) {
    const Shape& shape = in["x"].shape();
    double total = 0;
    for (const auto& micro : split(in["x"], shape[0] / f.integer("parts"))) {
        const auto loss = mean(matmul(micro, in["w"])) / static_cast<double>(f.integer("divisor"));
        total += static_cast<double>(loss.item());
        loss.backward();
    }
    return total;
}

template <class S> double split_mse(const Fixture& f, const Inputs<Array<S>>& in) {
    const auto xs = split(in["x"], f.integers("sizes")), targets = split(in["target"], f.integers("sizes"));
    double total = 0;
    for (std::size_t i = 0; i < xs.size(); ++i) {
        const auto hidden = tanh(linear(xs[i], in["w1"], in["b1"]));
        const auto loss =
            mse(linear(hidden, in["w2"], in["b2"]), targets[i]).sum / in["target"].value().size();
        total += static_cast<double>(loss.item());
        loss.backward();
    }
    return total;
}

template <class S> double split_cross_entropy(const Fixture& f, const Inputs<Array<S>>& in) {
    const Numbers& all = f.indices.at("labels");
    const auto counted =
        std::count_if(all.values.begin(), all.values.end(), [](double label) { return label >= 0; });
    const auto xs = split(in["x"], f.integers("sizes"));
    auto from = all.values.begin();
    double total = 0;
    for (const auto& micro : xs) {
        const auto to = from + micro.shape()[0];
        const Array<std::int32_t> labels({micro.shape()[0]}, std::vector<std::int32_t>(from, to), here());
        const auto loss = cross_entropy(matmul(micro, in["w"]), labels).sum / counted;
        total += static_cast<double>(loss.item());
        loss.backward();
        from = to;
    }
    return total;
}

template <class S>
void check_law(const std::string& law, double (*accumulate)(const Fixture&, const Inputs<Array<S>>&)) {
    for (const Fixture& f : fixtures().at(law)) {
        if (f.single_precision != std::is_same_v<S, float>) continue;
        INFO(f.name);
        const Inputs<Array<S>> in = inputs_of<S>(f);
        const double total = accumulate(f, in);
        CHECK(measure(f, f.output.values, true).agree(total, f.output.values.at(0)));
        for (const auto& [name, want] : f.gradients)
            CHECK(difference(f, "grad " + name, in[name.c_str()].grad(), want, false) == "");
    }
}

// ---- completeness of the fixtures ----

template <class... F> std::set<std::string> names(std::type_identity<std::tuple<F...>>) {
    return {std::string(F::name)...};
}

// Searches the source text for calls like record<"softmax">(...), and returns the names of operations.
std::set<std::string> recorded() {
    std::set<std::string> found;
    const std::regex recording("record(_many)?<\"(\\w+)\">");
    for (const auto& entry : std::filesystem::directory_iterator(source_dir / "src" / "autograd" / "ops")) {
        std::ifstream file(entry.path());
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        for (auto hit = std::sregex_iterator(text.begin(), text.end(), recording);
             hit != std::sregex_iterator(); ++hit)
            found.insert((*hit)[2]);
    }
    return found;
}

}  // namespace

TEST_CASE("every operation: agrees with PyTorch in double", "[fixtures]") {
    each_case(false, disagreement<double>);
}

TEST_CASE("every operation: agrees with PyTorch in float", "[fixtures]") {
    each_case(true, disagreement<float>);
}

TEST_CASE("scalars: agree with PyTorch where arrays do", "[fixtures]") {
    const auto scalars = [](auto compare) {
        return [compare](const Fixture& f) {
            return elementwise<double>().count(f.operation) && !f.raises && same_shapes(f) ? compare(f)
                                                                                           : std::string();
        };
    };
    each_case(false, scalars(scalar_disagreement<double>));
    each_case(true, scalars(scalar_disagreement<float>));
}

TEST_CASE("every operation: differs from PyTorch only where departures() lists the case", "[fixtures]") {
    std::size_t seen = 0;
    for (const auto& [op, cases] : fixtures())
        for (const Fixture& f : cases) {
            if (!departures().count(f.name)) continue;
            INFO(f.name << ": " << departures().at(f.name).why);
            CHECK((f.single_precision ? disagreement<float>(f) : disagreement<double>(f)) != "");
            ++seen;
        }
    CHECK(seen == departures().size());
}

TEMPLATE_TEST_CASE("RunningStatistics: agree with PyTorch after one commit", "[fixtures]", float, double) {
    std::size_t seen = 0;
    for (const Fixture& f : fixtures().at("batch_norm")) {
        if (f.single_precision != std::is_same_v<TestType, float> || !f.has("running_mean")) continue;
        INFO(f.name);
        const Inputs<Array<TestType>> in = inputs_of<TestType>(f);
        const Shape features = in["gain"].shape();
        RunningStatistics<TestType> running(features[0], here());
        running.commit(batch_norm(in["x"], in["gain"], in["bias"]).statistics);
        const auto& attr = f.attributes;
        CHECK(difference(f, "mean", running.mean, {features, attr.at("running_mean")}, true) == "");
        CHECK(difference(f, "variance", running.variance, {features, attr.at("running_var")}, true) == "");
        ++seen;
    }
    CHECK(seen > 0);
}

TEMPLATE_TEST_CASE("accumulated micro-batches: reach the gradient that PyTorch computes", "[fixtures]", float,
                   double) {
    check_law<TestType>("toy", toy<TestType>);
    check_law<TestType>("split_mse", split_mse<TestType>);
    check_law<TestType>("split_cross_entropy", split_cross_entropy<TestType>);
}

TEST_CASE("fixtures: every operation has at least 8, with its edge cases", "[fixtures]") {
    std::set<std::string> needed = recorded();
    CHECK(needed.size() >= 15);  // fails if the search finds nothing
    for (const auto& more :
         {names(std::type_identity<detail::UnaryOps>()), names(std::type_identity<detail::BinaryOps>())})
        needed.insert(more.begin(), more.end());
    for (const std::string& op : needed) {
        INFO(op);
        CHECK(fixtures().count(op) == 1);
    }

    std::size_t total = 0;
    for (const auto& [op, cases] : fixtures()) {
        INFO(op);
        CHECK(cases.size() >= 8);
        total += cases.size();
        if (laws.count(op)) continue;
        std::set<std::string> edges, dtypes;
        for (const Fixture& f : cases) {
            edges.insert(f.tags.begin(), f.tags.end());
            dtypes.insert(f.single_precision ? "float32" : "float64");
        }
        std::set<std::string> expected{"0", "-0", "empty", "size-1"};
        if (op != "binary_cross_entropy") expected.insert({"inf", "-inf", "nan"});
        if (elementwise<double>().count(op)) expected.insert("rank-0");
        if (std::set<std::string>{"max", "maximum", "minimum", "clamp", "softmax", "max_pool2d", "argmax"}
                .count(op))
            expected.insert("ties");
        if (fixtures().at(op)[0].inputs.count("b") && elementwise<double>().count(op))
            expected.insert("broadcast");
        for (const std::string& edge : expected) {
            INFO(edge);
            CHECK(edges.count(edge) == 1);
        }
        CHECK(dtypes.size() == 2);
    }
    CHECK(total >= 500);
    std::cout << total << " reference cases of " << fixtures().size() << " operations\n";
}

}  // namespace tally::test
