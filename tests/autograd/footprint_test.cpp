// Tests invariants 6 and 9, which limit the saved bytes of an operation and the allocated bytes of a
// micro-batch.
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/batch_norm.hpp"
#include "tally/autograd/ops/conv.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/ops/dropout.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/embedding.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/ops/where.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

constexpr std::size_t whole = 8 * 16 * sizeof(float);  // bytes of one array of the table, a multiple of 64
constexpr std::size_t square = 16 * 16 * sizeof(float);
constexpr std::size_t one_a_row = 64;

// The tests move these operands into an operation. All memory in use after the operation is therefore saved
// for backward.
Tensor made(const Shape& shape = {8, 16}) { return parameter(Array<float>::full(shape, 0.5f)) + 0; }
Tensor data(const Shape& shape = {8, 16}) { return constant(Array<float>::full(shape, 0.5f)); }

struct Row {
    const char* what;
    std::size_t bytes;
    std::function<Tensor()> build;
};

std::vector<Row> table() {
    const Array<std::int32_t> labels({8}, {0, 1, 2, 3, 4, 5, 6, 7}),
        mask = Array<std::int32_t>::full({8, 16}, 1);
    return {
        {"-x", 0, [] { return -made(); }},
        {"exp", whole, [] { return exp(made()); }},
        {"log", whole, [] { return log(made()); }},
        {"log1p", whole, [] { return log1p(made()); }},
        {"expm1", whole, [] { return expm1(made()); }},
        {"softplus", whole, [] { return softplus(made()); }},
        {"silu", whole, [] { return silu(made()); }},
        {"sqrt", whole, [] { return sqrt(made()); }},
        {"tanh", whole, [] { return tanh(made()); }},
        {"sigmoid", whole, [] { return sigmoid(made()); }},
        {"relu", whole, [] { return relu(made()); }},
        {"gelu", whole, [] { return gelu(made()); }},
        {"abs", whole, [] { return abs(made()); }},
        {"sin", whole, [] { return sin(made()); }},
        {"cos", whole, [] { return cos(made()); }},
        {"x + 1", 0, [] { return made() + 1; }},
        {"1 - x", 0, [] { return 1 - made(); }},
        {"x * 2", 0, [] { return made() * 2; }},
        {"x / 2", 0, [] { return made() / 2; }},
        {"2 / x", whole, [] { return 2 / made(); }},
        {"pow(x, 3)", whole, [] { return pow(made(), 3); }},
        {"clamp", whole, [] { return clamp(made(), 0, 1); }},
        {"a + b", 0, [] { return made() + made(); }},
        {"a - b", 0, [] { return made() - made(); }},
        {"a * b", 2 * whole, [] { return made() * made(); }},
        {"a * data", whole, [] { return made() * data(); }},
        {"data * b", whole, [] { return data() * made(); }},
        {"a / b", 2 * whole, [] { return made() / made(); }},
        {"a / data", whole, [] { return made() / data(); }},
        {"data / b", 2 * whole, [] { return data() / made(); }},
        {"pow(a, b)", 3 * whole, [] { return pow(made(), made()); }},
        {"pow(a, data)", 2 * whole, [] { return pow(made(), data()); }},
        {"maximum", 2 * whole, [] { return maximum(made(), made()); }},
        {"minimum", 2 * whole, [] { return minimum(made(), made()); }},
        {"squared_difference", 2 * whole, [] { return detail::squared_difference(made(), made()); }},
        {"where", whole, [mask] { return where(mask, made(), made()); }},
        {"sum", 0, [] { return sum(made()); }},
        {"sum over axis 0", 0, [] { return sum(made(), {0}); }},
        {"mean", 0, [] { return mean(made()); }},
        {"max over axis 1", whole + one_a_row, [] { return max(made(), {1}); }},
        {"logsumexp over axis 1", whole + one_a_row, [] { return logsumexp(made(), {1}); }},
        {"var over axis 1", whole + one_a_row, [] { return var(made(), 1); }},
        {"prod over axis 1", whole, [] { return prod(made(), 1); }},
        {"cumsum", 0, [] { return cumsum(made(), 1); }},
        {"softmax", whole, [] { return softmax(made()); }},
        {"log_softmax", whole, [] { return log_softmax(made()); }},
        {"reshape", 0,
         [] {
             return reshape(made(), {16, 8});
         }},
        {"permute", 0,
         [] {
             return permute(made(), {1, 0});
         }},
        {"broadcast_to", 0,
         [] {
             return broadcast_to(made(), {2, 8, 16});
         }},
        {"slice", 0, [] { return slice(made(), 1, 2, 4); }},
        {"slice of rows", 0, [] { return slice(made(), 0, 2, 4); }},
        {"concat", 0,
         [] {
             return concat<float>({made(), made()});
         }},
        {"stack", 0,
         [] {
             return stack<float>({made(), made()});
         }},
        {"squeeze and unsqueeze", 0, [] { return squeeze(unsqueeze(made(), 1)); }},
        {"rows", 64, [labels] { return rows(made(), labels); }},
        {"matmul", whole + square,
         [] {
             return matmul(made(), made({16, 16}));
         }},
        {"matmul with data on the left", whole,
         [] {
             return matmul(data(), made({16, 16}));
         }},
        {"matmul with data on the right", square,
         [] {
             return matmul(made(), data({16, 16}));
         }},
        {"batched matmul with data", whole,
         [] {
             return matmul(data({2, 4, 16}), made({2, 16, 4}));
         }},
        {"linear", whole + square,
         [] {
             return linear(made(), made({16, 16}), made({16}));
         }},
        {"linear_relu", 2 * whole + square,
         [] {
             return linear_relu(made(), made({16, 16}), made({16}));
         }},
        {"linear of data", whole,
         [] {
             return linear(data(), made({16, 16}), made({16}));
         }},
        {"linear, only the bias learns", 0,
         [] {
             return linear(data(), data({16, 16}), made({16}));
         }},
        {"mse", 2 * whole, [] { return mse(made(), data()).sum; }},
        {"binary_cross_entropy", 2 * whole, [] { return binary_cross_entropy(made(), data()).sum; }},
        {"cross_entropy", whole + 64, [labels] { return cross_entropy(made(), labels).sum; }},
        {"layer_norm", whole + 2 * one_a_row + one_a_row,
         [] { return layer_norm(made(), made({16}), made({16})); }},
        {"layer_norm, only gain and bias learn", whole + 2 * one_a_row,
         [] { return layer_norm(data(), made({16}), made({16})); }},
        {"layer_norm, only the bias learns", 0, [] { return layer_norm(data(), data({16}), made({16})); }},
        {"info_nce", 2 * whole + 256 + 64, [] { return info_nce(made(), made()).sum; }},
        {"embedding", 64, [labels] { return embedding(made(), labels, 2); }},
        {"dropout", 0,
         [] {
             return dropout(made(), 0.5, {1, 2, 3});
         }},
        {"batch_norm", whole + 3 * one_a_row, [] { return batch_norm(made(), made({16}), made({16})).y; }},
        {"batch_norm, only gain and bias learn", whole + 2 * one_a_row,
         [] { return batch_norm(data(), made({16}), made({16})).y; }},
        {"batch_norm, only the bias learns", 0, [] { return batch_norm(data(), data({16}), made({16})).y; }},
        {"batch_norm in evaluation", 2 * one_a_row,
         [] { return batch_norm(made(), data({16}), data({16}), RunningStatistics<float>(16)); }},
        {"conv2d", whole + 64,
         [] {
             return conv2d(made({2, 1, 8, 8}), made({3, 1, 2, 2}), made({3}));
         }},
        {"conv2d of data", whole,
         [] {
             return conv2d(data({2, 1, 8, 8}), made({3, 1, 2, 2}));
         }},
        {"conv2d, only the bias learns", 0,
         [] {
             return conv2d(data({2, 1, 8, 8}), data({3, 1, 2, 2}), made({3}));
         }},
        {"max_pool2d", 2 * 4 * 4 * sizeof(std::int32_t),
         [] {
             return max_pool2d(made({2, 1, 8, 8}), 2);
         }},
        {"custom", 2 * whole,
         [] {
             return custom(
                 "copy", [](const Array<float>& a) { return a.clone(); },
                 [](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&,
                    const Array<float>&) { to.add(0, Array<float>(dy)); },
                 made());
         }},
    };
}

}  // namespace

TEST_CASE("invariant 6: each operation saves the bytes of the table for backward, and frees all of them") {
    const std::vector<Row> rows_of_table = table();
    for (const Row& row : rows_of_table) {
        INFO(row.what);
        const std::size_t saved = in_use(MemoryClass::saved), before = memory::in_use();
        const std::int64_t nodes = Node::live_count();
        {
            const Tensor y = row.build();
            const std::size_t kept = in_use(MemoryClass::saved) - saved;
            std::cout << "  " << std::string(row.what) << std::string(40 - std::string(row.what).size(), ' ')
                      << "keeps " << kept << " of " << row.bytes << " bytes\n";
            CHECK(kept == row.bytes);
            y.backward(Array<float>::full(y.shape(), 1));
            CHECK(in_use(MemoryClass::saved) == saved);  // backward() frees saved values although y exists
        }
        CHECK(memory::in_use() == before);
        CHECK(Node::live_count() == nodes);
        {
            const Tensor dropped = row.build();  // dropped without a backward pass
        }
        CHECK(memory::in_use() == before);
        CHECK(Node::live_count() == nodes);
        {
            const NoGrad off;
            const Tensor y = row.build();
            CHECK(in_use(MemoryClass::saved) == saved);
        }
    }
}

TEST_CASE("invariant 6: a chain of linear and relu saves one buffer per layer") {
    constexpr std::size_t layers = 7;
    std::vector<Tensor> w, b;
    for (std::size_t i = 0; i < layers; ++i) {
        w.push_back(parameter(Array<float>::full({16, 16}, 0.01f)));
        b.push_back(parameter(Array<float>::zeros({16})));
    }
    const Tensor x = data();
    const std::size_t before = memory::in_use(), saved = in_use(MemoryClass::saved);
    Tensor h = x;
    for (std::size_t i = 0; i < layers; ++i) {
        h = relu(linear(std::move(h), w[i], b[i]));
        CHECK(memory::in_use() == before + (i + 1) * whole);
    }
    CHECK(in_use(MemoryClass::saved) == saved + whole + layers * whole);  // the first layer saves x
    h = sum(std::move(h));
    h.backward();
    h = Tensor();
    CHECK(in_use(MemoryClass::saved) == saved);
    CHECK(memory::in_use() == before + layers * (square + one_a_row));  // only gradients remain
}

TEST_CASE("invariant 6: a forward value is freed when no handle and no backward function needs it") {
    const Tensor w = parameter(Array<float>::full({8, 16}, 0.5f));
    const std::size_t before = memory::in_use();
    Tensor y = w * 2;  // multiplication by a number saves nothing
    CHECK(memory::in_use() == before + whole);
    Tensor z = y + 1;
    CHECK(memory::in_use() == before + 2 * whole);
    y = Tensor();  // z refers to the node of y, but not to its value
    CHECK(memory::in_use() == before + whole);
    Tensor t = tanh(z);
    z = Tensor();
    CHECK(memory::in_use() == before + whole);
    t = sum(std::move(t));
    CHECK(memory::in_use() == before + whole + 64);
    t = sum(w * 2);  // assignment frees the old result at once
    CHECK(memory::in_use() == before + 64);
    t = Tensor();
    CHECK(memory::in_use() == before);
}

TEST_CASE("invariant 6: a gradient that an addition passes on takes no more memory than it needs") {
    const Tensor w = parameter({1.0f});
    const Tensor repeated = custom(
        "repeat", [](const Array<float>&) { return Array<float>::full({1024}, 2); },
        [](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            to.add(0, dy.slice_rows(0, 1));
        },
        w + 1);
    sum(repeated).backward();
    CHECK(w.grad().to_vector() == std::vector<float>{1});
    CHECK(w.grad().storage()->bytes == 64);  // not the buffer of dy, which has 1024 elements
}

TEST_CASE("invariant 6: a result computed in its operand's buffer takes no more memory than it needs") {
    const Tensor w = parameter(Array<float>::full({1024}, 0.5f));
    const Tensor big = w * 2;
    const std::size_t before = memory::in_use();
    {
        const Tensor y = slice(w * 2, 0, 0, 4) * 3;  // the result does not keep the larger buffer of w * 2
        CHECK(memory::in_use() == before + 64);
    }
    {
        const Tensor y = -reshape(w, {32, 32});  // the result must not overwrite the parameter's buffer
        CHECK(memory::detail::memory_class(y.value().storage()) == MemoryClass::temporary);
        CHECK(w.value().span()[0] == 0.5f);
    }
    Tensor y = (w + 1) * 3;
    CHECK(memory::in_use() == before + 1024 * sizeof(float));  // the product reuses the buffer of w + 1
}

TEST_CASE("invariant 6: a result never overwrites an operand that is read again") {
    using V = std::vector<float>;
    const Tensor x = parameter<float>({1, 2, 4, 8});
    const Tensor held = x * 2;
    CHECK((-held).value().to_vector() == V{-2, -4, -8, -16});
    CHECK(held.value().to_vector() == V{2, 4, 8, 16});
    sum(log(x * 2)).backward();  // the backward function of log reads its operand
    CHECK(x.grad().to_vector() == V{1, 0.5, 0.25, 0.125});
    int seen = 0;
    const detail::KeepValues keep_values;  // the hook reads intermediate values
    sum(-(x * 2)).backward([&](const detail::VisitedNode<Array<float>>& visit) {
        if (visit.node.op() != std::string("mul_number")) return;
        CHECK(visit.value.to_vector() == V{2, 4, 8, 16});
        ++seen;
    });
    CHECK(seen == 1);
}

TEST_CASE("invariant 9: from the second micro-batch on no buffer of a parameter's size is allocated") {
    constexpr std::int64_t in = 256, out = 64;
    constexpr std::size_t parameter_bytes = in * out * sizeof(float);  // all other buffers are much smaller
    const Tensor w = parameter(Array<float>::full({in, out}, 0.01f)),
                 b = parameter(Array<float>::zeros({out}));
    const Tensor x = constant(Array<float>::full({2, in}, 0.5f));
    const Array<std::int32_t> index({3}, {1, 5, 1});
    using Loss = std::function<Tensor()>;
    const std::vector<std::pair<const char*, Loss>> losses{
        {"linear", [&] { return mean(tanh(linear(x, w, b))); }},
        {"linear of one row", [&] { return mean(linear(slice(x, 0, 0, 1), w, b)); }},
        {"matmul", [&] { return mean(matmul(x, w)); }},
        {"matmul, parameter transposed",
         [&] { return mean(matmul(slice(x, 1, 0, out), w, {.transpose_b = true})); }},
        {"matmul, small enough for the ordered kernel", [&] { return mean(matmul(slice(x, 0, 0, 1), w)); }},
        {"vector times parameter", [&] { return mean(matmul(reshape(slice(x, 0, 0, 1), {in}), w)); }},
        {"rows", [&] { return mean(rows(w, index)); }},
        {"embedding", [&] { return mean(embedding(w, index)); }},
        {"slice", [&] { return mean(slice(w, 0, 3, 5)); }},
        {"slice of columns", [&] { return mean(slice(w, 1, 3, 5)); }},
        {"max over rows", [&] { return mean(slice(max(w, {1}), 0, 0, 4)); }},
        {"twice", [&] { return mean(matmul(tanh(matmul(x, w)), w, {.transpose_b = true})); }},
    };
    for (const auto& [what, loss] : losses) {
        INFO(what);
        w.zero_grad();
        loss().backward();
        const float* home = w.grad().data();
        for (int micro = 0; micro < 3; ++micro) {
            const std::size_t before = memory::in_use();
            memory::reset_peak();
            loss().backward();
            CHECK(memory::peak() - before < parameter_bytes);
            CHECK(memory::in_use() == before);
            CHECK(w.grad().data() == home);
        }
        w.zero_grad();  // the next window writes to the same gradient buffer
        memory::reset_peak();
        const std::size_t before = memory::in_use();
        loss().backward();
        CHECK(memory::peak() - before < parameter_bytes);
        CHECK(w.grad().data() == home);
    }
}
