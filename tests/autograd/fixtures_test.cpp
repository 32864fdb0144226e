// Every operation against the reference values in tests/fixtures, which PyTorch computed.
#include "fixtures.hpp"

#include <cmath>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <regex>
#include <tuple>
#include <utility>

#include "catch.hpp"
#include "tally.hpp"

namespace tally::test {
namespace {

const std::filesystem::path source_dir = TALLY_SOURCE_DIR;

const std::map<std::string, std::vector<Fixture>>& fixtures() {
    static const auto all = read_fixtures(source_dir / "tests" / "fixtures");
    return all;
}

// ---- the operations, by the name of their fixture ----

// The inputs of a case as variables of T. Those with a recorded gradient are parameters, or only the one
// called `only`.
template <class T>
struct Inputs {
    const Fixture& fixture;
    std::map<std::string, Var<T>> variables = {};

    const Var<T>& operator[](const char* name) const { return variables.at(name); }
    double number() const { return fixture.attributes.at("number").at(0); }
};

template <class T>
using Table =
    std::map<std::string, std::function<Loss<T>(const Inputs<T>&)>>;  // Loss: a result, and perhaps a count

template <class T>
const Table<T>& elementwise() {  // for numbers and arrays alike
    using In = const Inputs<T>&;
    // clang-format off
    static const Table<T> table{
        {"neg", [](In in) { return Loss<T>{-in["x"], {}}; }},
        {"exp", [](In in) { return Loss<T>{exp(in["x"]), {}}; }},
        {"log", [](In in) { return Loss<T>{log(in["x"]), {}}; }},
        {"sqrt", [](In in) { return Loss<T>{sqrt(in["x"]), {}}; }},
        {"tanh", [](In in) { return Loss<T>{tanh(in["x"]), {}}; }},
        {"sigmoid", [](In in) { return Loss<T>{sigmoid(in["x"]), {}}; }},
        {"relu", [](In in) { return Loss<T>{relu(in["x"]), {}}; }},
        {"gelu", [](In in) { return Loss<T>{gelu(in["x"]), {}}; }},
        {"abs", [](In in) { return Loss<T>{abs(in["x"]), {}}; }},
        {"sin", [](In in) { return Loss<T>{sin(in["x"]), {}}; }},
        {"cos", [](In in) { return Loss<T>{cos(in["x"]), {}}; }},
        {"clamp", [](In in) { return Loss<T>{clamp(in["x"], in.fixture.number("lo", -unbounded), in.fixture.number("hi", unbounded)), {}}; }},
        {"add_number", [](In in) { return Loss<T>{in["x"] + in.number(), {}}; }},
        {"number_add", [](In in) { return Loss<T>{in.number() + in["x"], {}}; }},
        {"sub_number", [](In in) { return Loss<T>{in["x"] - in.number(), {}}; }},
        {"number_minus", [](In in) { return Loss<T>{in.number() - in["x"], {}}; }},
        {"mul_number", [](In in) { return Loss<T>{in["x"] * in.number(), {}}; }},
        {"number_mul", [](In in) { return Loss<T>{in.number() * in["x"], {}}; }},
        {"div_number", [](In in) { return Loss<T>{in["x"] / in.number(), {}}; }},
        {"number_over", [](In in) { return Loss<T>{in.number() / in["x"], {}}; }},
        {"pow_number", [](In in) { return Loss<T>{pow(in["x"], in.number()), {}}; }},
        {"add", [](In in) { return Loss<T>{in["a"] + in["b"], {}}; }},
        {"sub", [](In in) { return Loss<T>{in["a"] - in["b"], {}}; }},
        {"mul", [](In in) { return Loss<T>{in["a"] * in["b"], {}}; }},
        {"div", [](In in) { return Loss<T>{in["a"] / in["b"], {}}; }},
        {"pow", [](In in) { return Loss<T>{pow(in["a"], in["b"]), {}}; }},
        {"maximum", [](In in) { return Loss<T>{maximum(in["a"], in["b"]), {}}; }},
        {"minimum", [](In in) { return Loss<T>{minimum(in["a"], in["b"]), {}}; }},
        {"squared_difference", [](In in) { return Loss<T>{squared_difference(in["a"], in["b"]), {}}; }},
    };
    // clang-format on
    return table;
}

Shape shape_attribute(const Fixture& f) { return Shape(f.integers("shape")); }

Array<std::int32_t> integers(const Fixture& f, const char* name) {
    const Numbers& n = f.indices.at(name);
    return {n.shape, std::vector<std::int32_t>(n.values.begin(), n.values.end())};
}

template <class S>
const Table<Array<S>>& structured() {
    using T = Array<S>;
    using In = const Inputs<T>&;
    // clang-format off
    static const Table<T> table{
        {"where", [](In in) { return Loss<T>{where(integers(in.fixture, "mask"), in["a"], in["b"]), {}}; }},
        {"sum", [](In in) { return Loss<T>{sum(in["x"], in.fixture.integers("axes"), in.fixture.has("keepdims")), {}}; }},
        {"mean", [](In in) { return Loss<T>{mean(in["x"], in.fixture.integers("axes"), in.fixture.has("keepdims")), {}}; }},
        {"max", [](In in) { return Loss<T>{max(in["x"], in.fixture.integers("axes"), in.fixture.has("keepdims")), {}}; }},
        {"logsumexp", [](In in) { return Loss<T>{logsumexp(in["x"], in.fixture.integers("axes"), in.fixture.has("keepdims")), {}}; }},
        {"softmax", [](In in) { return Loss<T>{softmax(in["x"], in.fixture.integer("axis")), {}}; }},
        {"log_softmax", [](In in) { return Loss<T>{log_softmax(in["x"], in.fixture.integer("axis")), {}}; }},
        {"reshape", [](In in) { return Loss<T>{reshape(in["x"], shape_attribute(in.fixture)), {}}; }},
        {"transpose", [](In in) { return Loss<T>{transpose(in["x"], in.fixture.integers("axes").at(0), in.fixture.integers("axes").at(1)), {}}; }},
        {"permute", [](In in) { return Loss<T>{permute(in["x"], in.fixture.integers("axes")), {}}; }},
        {"slice", [](In in) { return Loss<T>{slice(in["x"], in.fixture.integer("axis"), in.fixture.integer("from"), in.fixture.integer("to")), {}}; }},
        {"broadcast_to", [](In in) { return Loss<T>{broadcast_to(in["x"], shape_attribute(in.fixture)), {}}; }},
        {"rows", [](In in) { return Loss<T>{rows(in["x"], integers(in.fixture, "index")), {}}; }},
        {"concat", [](In in) {
            std::vector<Var<T>> parts;
            for (const auto& [name, part] : in.variables) parts.push_back(part);
            return Loss<T>{concat(parts, in.fixture.integer("axis")), {}};
        }},
        {"matmul", [](In in) { return Loss<T>{matmul(in["a"], in["b"], in.fixture.has("transpose_a"), in.fixture.has("transpose_b")), {}}; }},
        {"linear", [](In in) { return Loss<T>{linear(in["x"], in["w"], in["b"]), {}}; }},
        {"layer_norm", [](In in) { return Loss<T>{layer_norm(in["x"], in["gain"], in["bias"], in.fixture.number("eps", 0)), {}}; }},
        {"mse", [](In in) { return mse(in["x"], in["target"]); }},
        {"binary_cross_entropy", [](In in) { return binary_cross_entropy(in["x"], in["target"]); }},
        {"cross_entropy", [](In in) {
            const auto ignored = static_cast<std::int32_t>(in.fixture.number("ignore_index", -100));
            return cross_entropy(in["x"], integers(in.fixture, "labels"), ignored);
        }},
    };
    // clang-format on
    return table;
}

// ---- comparing ----

// Operations whose result and gradient are numbers moved or chosen, not computed: these must agree exactly.
const std::set<std::string> moving{"reshape", "transpose", "permute", "slice", "concat",
                                   "relu",    "abs",       "neg",     "clamp"};
// The same of the result only, or a single IEEE rounding: the gradient is summed, shared or rounded more than
// once.
const std::set<std::string> exact_forward{
    "rows",       "broadcast_to", "where",        "max",        "maximum",    "minimum",
    "add",        "sub",          "mul",          "div",        "sqrt",       "add_number",
    "number_add", "sub_number",   "number_minus", "mul_number", "number_mul", "div_number"};
// Those that move data also keep the sign of zero.
const std::set<std::string> keeps_signs{"reshape", "transpose",    "permute", "slice", "concat",
                                        "rows",    "broadcast_to", "where",   "neg",   "abs"};

enum class Closeness { bits, equal, relative, scaled };

// `scaled`: the error is measured against the largest number around (at most 1) where that is larger than the
// number itself, because sums and differences cancel. float32 bound: 32 roundings.
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
    if (moving.count(op) || (forward && exact_forward.count(op)))
        closeness = forward && keeps_signs.count(op) ? Closeness::bits : Closeness::equal;
    else if (elementwise<double>().count(op) && op != "gelu" && forward)
        closeness = Closeness::relative;
    return {closeness, f.single_precision ? 32 * std::numeric_limits<float>::epsilon() / 2.0 : 1e-12,
            std::min(1.0, std::max(largest(want), largest(f.seed.values)))};
}

// What differs, in words; empty when nothing does. `times`: how often the gradient was accumulated.
template <class S>
std::string difference(const Fixture& f, const std::string& what, const Array<S>& got, const Numbers& want,
                       bool forward, double times = 1) {
    if (got.shape() != want.shape)
        return what + " has the shape " + to_string(got.shape()) + ", not " + to_string(want.shape);
    const Measure m = measure(f, want.values, forward);
    for (std::size_t i = 0; i < want.values.size(); ++i) {
        const double g = static_cast<double>(got.span()[i]), w = times * want.values[i];
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

template <class S>
Array<S> array_of(const Numbers& n) {
    std::vector<S> values(n.values.size());
    std::transform(n.values.begin(), n.values.end(), values.begin(),
                   [](double v) { return static_cast<S>(v); });
    return {n.shape, values};
}

template <class S>
Inputs<Array<S>> inputs_of(const Fixture& f, const std::string& only = "") {
    Inputs<Array<S>> in{f};
    for (const auto& [name, numbers] : f.inputs) {
        const bool wants = f.gradients.count(name) && (only.empty() || only == name);
        in.variables.emplace(name, wants ? parameter(array_of<S>(numbers)) : constant(array_of<S>(numbers)));
    }
    return in;
}

template <class S>
const std::function<Loss<Array<S>>(const Inputs<Array<S>>&)>& operation(const std::string& name) {
    const auto& table = elementwise<Array<S>>().count(name) ? elementwise<Array<S>>() : structured<S>();
    const auto found = table.find(name);
    if (found == table.end())
        throw std::runtime_error("tests/fixtures/" + name + ".txt: the test has no such operation");
    return found->second;
}

template <class S>
std::string disagreement(const Fixture& f) {
    const auto& compute = operation<S>(f.operation);
    if (f.raises) {
        try {
            compute(inputs_of<S>(f));
        } catch (const Error&) {
            return {};
        }
        return "is accepted, but PyTorch refuses it";
    }
    const Inputs<Array<S>> in = inputs_of<S>(f);
    std::string found;
    const auto gradients = [&](const Inputs<Array<S>>& from, const std::string& when, double times) {
        for (const auto& [name, want] : f.gradients) {
            if (!found.empty() || !from[name.c_str()].wants_grad()) continue;
            if (!from[name.c_str()].has_grad())
                found = "no gradient arrived at " + name + when;
            else
                found = difference(f, "grad " + name + when, from[name.c_str()].grad(), want, false, times);
        }
    };

    const Loss<Array<S>> first = compute(in);
    found = difference(f, "output", first.sum.value(), f.output, true);
    if (found.empty() && f.count && static_cast<double>(first.count.item()) != *f.count)
        found = "count is " + std::to_string(first.count.item()) + ", not " + std::to_string(*f.count);
    if (!found.empty()) return found;
    first.sum.backward(array_of<S>(f.seed));
    gradients(in, "", 1);
    compute(in).sum.backward(array_of<S>(f.seed));  // adds to what is there
    gradients(in, " after two passes", 2);
    for (const auto& [name, variable] : in.variables) variable.zero_grad();
    compute(in).sum.backward(array_of<S>(f.seed));  // sets, over what was there
    gradients(in, " after zero_grad", 1);
    if (f.gradients.size() > 1)
        for (const auto& [name, want] : f.gradients) {
            const Inputs<Array<S>> alone = inputs_of<S>(f, name);
            compute(alone).sum.backward(array_of<S>(f.seed));
            gradients(alone, " when it alone wants one", 1);
        }
    return found;
}

// The same elementwise case with plain numbers instead of arrays, element by element.
template <class S>
std::string scalar_disagreement(const Fixture& f) {
    const auto& compute = elementwise<S>().at(f.operation);
    Array<S> output = Array<S>::zeros(f.output.shape);
    std::map<std::string, Array<S>> gradients;
    for (const auto& [name, want] : f.gradients) gradients.emplace(name, Array<S>::zeros(want.shape));
    for (std::size_t i = 0; i < f.output.values.size(); ++i) {
        Inputs<S> in{f};
        for (const auto& [name, numbers] : f.inputs)
            in.variables.emplace(name, parameter(static_cast<S>(numbers.values[i])));
        const Var<S> y = compute(in).sum;
        y.backward(static_cast<S>(f.seed.values[i]));
        output.writable()[i] = y.value();
        for (auto& [name, gradient] : gradients) gradient.writable()[i] = in[name.c_str()].grad();
    }
    std::string found = difference(f, "output", output, f.output, true);
    for (const auto& [name, want] : f.gradients)
        if (found.empty()) found = difference(f, "grad " + name, gradients.at(name), want, false);
    return found;
}

bool same_shapes(const Fixture& f) {
    return std::all_of(f.inputs.begin(), f.inputs.end(),
                       [&](const auto& input) { return input.second.shape == f.output.shape; });
}

const std::set<std::string> laws{"toy", "split_mse", "split_cross_entropy"};

template <class Check>
void each_case(bool single_precision, Check check) {
    for (const auto& [op, cases] : fixtures()) {
        if (laws.count(op)) continue;
        for (const Fixture& f : cases) {
            if (f.single_precision != single_precision) continue;
            INFO(f.name);
            std::string found;
            try {
                found = check(f);
            } catch (const std::exception& thrown) {
                found = std::string("throws: ") + thrown.what();
            }
            CHECK(found == "");
        }
    }
}

// ---- the laws ----

template <class S>
double toy(const Fixture& f, const Inputs<Array<S>>& in) {
    const Shape& shape = in["x"].shape();
    double total = 0;
    for (const auto& micro : split(in["x"], shape[0] / f.integer("parts"))) {
        const auto loss = mean(matmul(micro, in["w"])) / static_cast<double>(f.integer("divisor"));
        total += static_cast<double>(loss.item());
        loss.backward();
    }
    return total;
}

template <class S>
double split_mse(const Fixture& f, const Inputs<Array<S>>& in) {
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

template <class S>
double split_cross_entropy(const Fixture& f, const Inputs<Array<S>>& in) {
    const Numbers& all = f.indices.at("labels");
    const auto counted =
        std::count_if(all.values.begin(), all.values.end(), [](double label) { return label >= 0; });
    const auto xs = split(in["x"], f.integers("sizes"));
    auto from = all.values.begin();
    double total = 0;
    for (const auto& micro : xs) {
        const auto to = from + micro.shape()[0];
        const Array<std::int32_t> labels({micro.shape()[0]}, std::vector<std::int32_t>(from, to));
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

// ---- which operations there are ----

template <class... F>
std::set<std::string> names(std::type_identity<std::tuple<F...>>) {
    return {std::string(F::name)...};
}

// Every operation that the engine records, as its source says: record<"softmax">(...).
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

TEST_CASE("every operation agrees with PyTorch in double", "[fixtures]") {
    each_case(false, disagreement<double>);
}

TEST_CASE("every operation agrees with PyTorch in float", "[fixtures]") {
    each_case(true, disagreement<float>);
}

TEST_CASE("plain numbers agree with PyTorch where arrays do", "[fixtures]") {
    const auto scalars = [](auto compare) {
        return [compare](const Fixture& f) {
            return elementwise<double>().count(f.operation) && !f.raises && same_shapes(f) ? compare(f)
                                                                                           : std::string();
        };
    };
    each_case(false, scalars(scalar_disagreement<double>));
    each_case(true, scalars(scalar_disagreement<float>));
}

TEMPLATE_TEST_CASE("accumulated micro-batches reach the gradient that PyTorch computes", "[fixtures]", float,
                   double) {
    check_law<TestType>("toy", toy<TestType>);
    check_law<TestType>("split_mse", split_mse<TestType>);
    check_law<TestType>("split_cross_entropy", split_cross_entropy<TestType>);
}

TEMPLATE_TEST_CASE("the toy's divided micro-batches give the full batch's gradient bit for bit", "[fixtures]",
                   float, double) {
    std::map<std::string, std::vector<double>> full;
    int compared = 0;
    for (const Fixture& f : fixtures().at("toy")) {
        if (f.single_precision != std::is_same_v<TestType, float> ||
            f.integer("parts") != f.integer("divisor"))
            continue;
        INFO(f.name);
        const Inputs<Array<TestType>> in = inputs_of<TestType>(f);
        toy(f, in);
        const auto gradient = in["w"].grad().to_vector();
        const std::vector<double> values(gradient.begin(), gradient.end());
        const auto [whole, fresh] = full.emplace(f.name.substr(0, f.name.find('-')), values);
        CHECK(whole->second == values);
        compared += !fresh;
    }
    CHECK(compared == 6);  // two data sets, each in 2, 3 and 6 parts
}

TEST_CASE("every operation of the engine has at least 8 fixtures, with the edges that apply to it",
          "[fixtures]") {
    std::set<std::string> needed = recorded();
    CHECK(needed.size() >= 15);  // the search still finds them
    for (const auto& more : {names(std::type_identity<UnaryOps>()), names(std::type_identity<BinaryOps>())})
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
        if (std::set<std::string>{"max", "maximum", "minimum", "clamp", "softmax"}.count(op))
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
