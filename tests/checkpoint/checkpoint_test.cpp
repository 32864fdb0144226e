// Tests that checkpoints do not change any bit of a gradient.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "effort.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::test;

namespace {

// Describes a random program whose arrays all have the same shape. Each step computes an array from two
// earlier arrays. Some steps are smaller programs, which can run in a checkpoint.
struct Program {
    struct Step {
        std::int64_t op;
        std::size_t a, b;
        std::shared_ptr<Program> block = {};
        std::vector<std::size_t> passed = {}, returned = {};
        std::int64_t form = 0;  // whether the function returns a vector, a tuple, ...
    };
    std::vector<Step> steps;
    std::size_t inputs = 0;
};

constexpr std::int64_t formulas = 13;

std::shared_ptr<Program> draw(Random& random, std::size_t there, int depth) {
    auto program = std::make_shared<Program>();
    program->inputs = there;
    const std::int64_t count = random.whole(1, depth == 3 ? 4 : 7);
    const auto any = [&](std::size_t among) {
        return static_cast<std::size_t>(random.whole(0, static_cast<std::int64_t>(among) - 1));
    };
    for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t newest = there - 1, other = random.coin() ? any(there) : newest;
        if (depth == 0 || random.whole(0, 2) > 0) {
            program->steps.push_back({random.whole(0, formulas - 1), newest, other});
            ++there;
            continue;
        }
        Program::Step step{formulas, newest, other};
        for (std::int64_t passed = random.whole(0, 2); passed > 0; --passed)
            step.passed.push_back(any(there));
        step.block = draw(random, there + step.passed.size(), depth - 1);
        const std::size_t in_it = step.block->inputs;
        std::size_t made = in_it;
        for (const auto& inner : step.block->steps) made += inner.block ? inner.returned.size() : 1;
        for (std::int64_t results = random.whole(1, 3); results > 0; --results)
            step.returned.push_back(random.whole(0, 4) == 0 ? any(made) : in_it + any(made - in_it));
        there += step.returned.size();
        program->steps.push_back(std::move(step));
    }
    return program;
}

template <class S> struct Model {
    using V = Var<Array<S>>;
    std::vector<V> leaves;  // weight, bias, gain, and two inputs

    explicit Model(std::uint64_t seed) {
        Random random(seed);
        for (const Shape& shape : {Shape{5, 5}, Shape{5}, Shape{5}, Shape{4, 5}, Shape{4, 5}})
            leaves.push_back(parameter(random.array<S>(shape, -1, 1)));
    }

    V formula(const Program::Step& step, std::vector<V>& there, std::size_t number) const {
        const V &a = there[step.a], &b = there[step.b], &w = leaves[0], &bias = leaves[1], &gain = leaves[2];
        switch (step.op) {
            case 0:
                return a + b;
            case 1:
                return a * b;
            case 2:
                return relu(a);
            case 3:
                return tanh(a) - b;
            case 4:
                return linear(a, w, bias);
            case 5:
                return linear_relu(a, w, bias);
            case 6:
                return softmax(a) * b;
            case 7:
                return layer_norm(a, gain, bias);
            case 8:
                return dropout(a, 0.3, {7, number, 0});
            case 9:
                return relu(linear(tanh(a), w, bias)) / (exp(b * 0.1) + 1);
            case 10:
                return slice(concat(std::vector{a, b}, 0), 0, 2, 6);
            case 11:
                return reshape(matmul(reshape(a, {2, 2, 5}), w), Shape{4, 5});
            default:
                return sigmoid(a) * constant(Array<S>::full({5}, S(0.5), here()));
        }
    }

    void run(const Program& program, std::vector<V>& there, bool checkpointed) const {
        for (const auto& step : program.steps) {
            if (!step.block) {
                there.push_back(formula(step, there, there.size()));
                continue;
            }
            std::vector<V> passed;
            for (const std::size_t which : step.passed) passed.push_back(there[which]);
            const auto block = [this, &step, captured = there, checkpointed](const std::vector<V>& given) {
                std::vector<V> inside = captured, results;
                inside.insert(inside.end(), given.begin(), given.end());
                run(*step.block, inside, checkpointed);
                for (const std::size_t which : step.returned) results.push_back(inside[which]);
                return results;
            };
            for (V& result : checkpointed ? checkpoint(block, passed) : block(passed))
                there.push_back(std::move(result));
        }
    }

    std::vector<Array<S>> gradients(const Program& program, bool checkpointed) const {
        std::vector<V> there{leaves[3], leaves[4] * 0.5};
        run(program, there, checkpointed);
        V total = sum(there.back());
        for (std::size_t i = 2; i + 1 < there.size(); i += 2) total = total + sum(there[i]);
        there.clear();
        total.backward();
        std::vector<Array<S>> all;
        for (const V& leaf : leaves) {
            all.push_back(leaf.has_grad() ? leaf.grad().clone() : Array<S>());
            leaf.free_grad();
        }
        return all;
    }
};

Tensor64 two_layers(const Tensor64& x, const Tensor64& w) { return tanh(matmul(tanh(matmul(x, w)), w)); }

Tensor64 square(std::uint64_t seed) { return parameter(Random(seed).array<double>({3, 3})); }

}  // namespace

TEMPLATE_TEST_CASE(
    "invariant 11: a program with checkpoints has the gradients of the plain program bit for bit", "", float,
    double) {
    const Poison poison;
    const std::uint64_t first = static_cast<std::uint64_t>(GENERATE(0, 1, 2, 3)) * 100;
    for (std::uint64_t seed = first; seed < first + 100; ++seed) {
        INFO("seed " << seed);
        const std::int64_t nodes = Node::live_count();
        {
            const Model<TestType> model(seed);
            Random random(seed);
            const auto program = draw(random, 2, 3);
            const auto plain = model.gradients(*program, false), again = model.gradients(*program, true);
            for (std::size_t i = 0; i < plain.size(); ++i) {
                INFO("leaf " << i << ": " << plain[i] << " and " << again[i]);
                REQUIRE(detail::has_memory(plain[i]) == detail::has_memory(again[i]));
                if (detail::has_memory(plain[i])) REQUIRE(same_bits(plain[i], again[i]));
            }
        }
        REQUIRE(Node::live_count() == nodes);
    }
    CHECK(memory::in_use(here()) == 0);
}

TEST_CASE("checkpoint: works on scalars") {
    const Scalar x = parameter(0.5), y = parameter(3.0);
    const Scalar z = checkpoint([&](const Scalar& a) { return sin(a * y) * a; }, x);
    CHECK(z.item() == std::sin(1.5) * 0.5);
    z.backward();
    const double dx = x.grad(), dy = y.grad();
    x.zero_grad(), y.zero_grad();
    (sin(x * y) * x).backward();
    CHECK(dx == x.grad());
    CHECK(dy == y.grad());
}

TEST_CASE("checkpoint: results can be a vector, array, pair, tuple or Loss, and inputs can have any type") {
    const Tensor64 w = square(1), x = square(2);
    const Array<std::int32_t> labels({3}, {2, 0, 1}, here());
    const auto gradients = [&](auto loss) {
        loss().backward();
        auto both = std::pair(w.grad().clone(), x.grad().clone());
        w.zero_grad(), x.zero_grad();
        return both;
    };
    const auto expect = [&](auto plain, auto checkpointed) {
        const auto [pw, px] = gradients(plain);
        const auto [cw, cx] = gradients(checkpointed);
        CHECK(same_bits(pw, cw));
        CHECK(same_bits(px, cx));
    };
    const auto both = [&](const Tensor64& a, double factor) {
        return std::pair(matmul(a, w) * factor, tanh(a));
    };
    const auto total = [](const auto& two) { return sum(two.first * two.second); };
    expect([&] { return total(both(x, 2)); }, [&] { return total(checkpoint(both, x, 2.0)); });
    expect([&] { return total(both(x, 2)); },
           [&] {
               const auto [a, b] = checkpoint(
                   [&](const Tensor64& h) {
                       auto [first, second] = both(h, 2);
                       return std::tuple(first, second);
                   },
                   x);
               return sum(a * b);
           });
    expect([&] { return total(both(x, 2)); },
           [&] {
               const auto results = checkpoint(
                   [&](const Tensor64& h) {
                       auto [first, second] = both(h, 2);
                       return std::array{first, second};
                   },
                   x);
               return sum(results[0] * results[1]);
           });
    const auto loss = [&](const Tensor64& a, const Array<std::int32_t>& of) {
        return cross_entropy(matmul(a, w), of);
    };
    expect([&] { return loss(x, labels).mean(); }, [&] { return checkpoint(loss, x, labels).mean(); });
}

TEST_CASE("checkpoint: captured parameters get gradients even when no input needs one") {
    const Tensor64 w = square(1);
    const Tensor64 data = constant(Random(2).array<double>({3, 3}));
    sum(checkpoint([&](const Tensor64& x) { return two_layers(x, w); }, data)).backward();
    const Array<double> with_input = w.grad().clone();
    w.zero_grad();
    sum(checkpoint([&] { return two_layers(data, w); })).backward();
    const Array<double> without = w.grad().clone();
    w.zero_grad();
    sum(two_layers(data, w)).backward();
    CHECK(same_bits(with_input, w.grad()));
    CHECK(same_bits(without, w.grad()));
}

TEST_CASE("checkpoint: an input or captured value can be returned unchanged") {
    const Tensor64 w = square(1), x = square(2);
    const Tensor64 data = constant(Array<double>::full({3, 3}, 2, here()));
    const auto [same, captured, fixed, made] =
        checkpoint([&](const Tensor64& h) { return std::tuple(h, w, data, tanh(h)); }, x);
    CHECK(same.node() == x.node());
    CHECK(captured.node() == w.node());
    CHECK(fixed.node() == data.node());
    sum(same * captured * fixed * made).backward();
    const Array<double> of_x = x.grad().clone();
    x.zero_grad(), w.zero_grad();
    sum(x * w * data * tanh(x)).backward();
    CHECK(same_bits(of_x, x.grad()));
}

TEST_CASE("checkpoint: saves only its inputs for backward") {
    const Tensor64 w = parameter(Random(1).array<double>({8, 8})),
                   x = parameter(Random(2).array<double>({16, 8}));
    const auto kept = [&](bool checkpointed) {
        const std::size_t before =
            memory::report(here()).in_use_by[static_cast<std::size_t>(MemoryClass::saved)];
        Tensor64 h = tanh(x);  // the result has a buffer of 1 KiB
        const auto layers = [&](const Tensor64& a) { return matmul(exp(sin(matmul(a, w))), w); };
        h = checkpointed ? checkpoint(layers, std::move(h)) : layers(std::move(h));
        const Tensor64 y = sum(h);
        h = {};
        return memory::report(here()).in_use_by[static_cast<std::size_t>(MemoryClass::saved)] - before;
    };
    CHECK(kept(false) == 3 * 1024);  // inputs of sin and of both products; one is also saved by exp
    CHECK(kept(true) == 1024);
}

// ---- recomputation ----

TEST_CASE("checkpoint: a value that no backward function reads is not recomputed") {
    const Tensor64 w = parameter(Random(1).array<double>({8, 8})),
                   b = parameter(Random(2).array<double>({8}));
    const Tensor64 x = parameter(Random(3).array<double>({4, 8}));
    std::vector<std::pair<bool, bool>> there;  // for each run, whether the two products are allocated
    const auto block = [&](const Tensor64& a) {
        const Tensor64 first = linear(a, w, b), second = linear(tanh(first), w, b);
        there.emplace_back(detail::has_memory(first.value()), detail::has_memory(second.value()));
        return relu(second);
    };
    sum(checkpoint(block, x)).backward();
    REQUIRE(there.size() == 2);
    CHECK(there[0] == std::pair(true, true));
    // relu reads its saved result, so the second product is not recomputed.
    CHECK(there[1] == std::pair(true, false));
    const Array<double> of_w = w.grad().clone(), of_x = x.grad().clone();
    w.zero_grad(), x.zero_grad();
    sum(block(x)).backward();
    CHECK(same_bits(of_w, w.grad()));
    CHECK(same_bits(of_x, x.grad()));
}

TEST_CASE("checkpoint: the function can read a value that no backward function reads") {
    const Tensor64 w = square(1), x = square(2);
    std::vector<double> looked_at;
    const auto block = [&](const Tensor64& a) {
        const Tensor64 y = linear(a, w);
        looked_at.push_back(y.value().to_vector()[0]);
        return -y;
    };
    sum(checkpoint(block, x)).backward();
    REQUIRE(looked_at.size() == 2);  // the second run stopped at the read; a third run read the value
    CHECK(looked_at[0] == looked_at[1]);
    const Array<double> of_w = w.grad().clone();
    w.zero_grad(), x.zero_grad();
    sum(block(x)).backward();
    CHECK(same_bits(of_w, w.grad()));
}

TEST_CASE("checkpoint: the function can read a value that is not recorded") {
    const Tensor64 x = square(2);
    std::vector<double> looked_at;
    const auto block = [&](const Tensor64& a) {
        const Tensor64 one = exp(constant(Array<double>::zeros(a.shape(), here())));
        looked_at.push_back(one.value().to_vector()[0]);
        return -(a + one);
    };
    // New buffers are filled with NaN, because a reused buffer might still contain the correct numbers.
    const bool poison = memory::detail::set_poison(true);
    sum(checkpoint(block, x)).backward();
    memory::detail::set_poison(poison);
    CHECK(looked_at == std::vector<double>{1, 1});
}

TEST_CASE("NoCheckpointVerification: changes no bit of the gradients") {
    const Tensor64 w = square(1), x = square(2);
    sum(checkpoint([&](const Tensor64& h) { return two_layers(h, w); }, x)).backward();
    const Array<double> verified = w.grad().clone();
    w.zero_grad();
    {
        const NoCheckpointVerification off;
        sum(checkpoint([&](const Tensor64& h) { return two_layers(h, w); }, x)).backward();
    }
    CHECK(same_bits(verified, w.grad()));
}

// ---- with other features ----

TEST_CASE("grad: works through a checkpoint and leaves the gradients of leaves unchanged") {
    const Tensor64 w = square(1), x = square(2);
    const Tensor64 h = tanh(x);
    const auto block = [&](const Tensor64& a) { return two_layers(a, w); };
    const auto plain = grad(sum(block(h)), {w, h});
    const Tensor64 again = tanh(x);
    const auto through = grad(sum(checkpoint(block, again)), {w, again});
    CHECK(same_bits(plain[0], through[0]));
    CHECK(same_bits(plain[1], through[1]));
    CHECK_FALSE(w.has_grad());
    CHECK_FALSE(x.has_grad());
    int runs = 0;
    const Tensor64 y = checkpoint(
        [&](const Tensor64& a) {
            ++runs;
            return tanh(a);
        },
        x);
    grad(sum(y), {y});
    CHECK(runs == 1);  // grad() does not run the function again
}

TEST_CASE("checkpoint: equals its function when nothing is recorded") {
    const Tensor64 x = square(2);
    const std::int64_t nodes = Node::live_count();
    {
        const NoGrad off;
        const Tensor64 y = checkpoint([](const Tensor64& h) { return tanh(h); }, x);
        CHECK_FALSE(y.requires_grad());
    }
    CHECK(Node::live_count() == nodes);
    const Tensor64 y = sum(checkpoint([](const Tensor64& h) { return tanh(h); }, x));
    {
        const NoGrad off;
        y.backward();  // backward() runs the function again
    }
    CHECK(x.has_grad());
}

TEST_CASE("is_recomputing: is true during backward, also in an inner checkpoint") {
    const Tensor64 x = square(2);
    std::vector<bool> inner, outer;
    const Tensor64 y = checkpoint(
        [&](const Tensor64& h) {
            outer.push_back(is_recomputing());
            return checkpoint(
                       [&](const Tensor64& a) {
                           inner.push_back(is_recomputing());
                           return tanh(a);
                       },
                       exp(h)) *
                   2;
        },
        x);
    sum(y).backward();
    CHECK(outer == std::vector<bool>{false, true});
    CHECK(inner == std::vector<bool>{false, true, true});
    CHECK_FALSE(is_recomputing());
}

TEST_CASE("checkpoint: hooks see recomputed operations, and Picture draws a block as one operation") {
    const Tensor64 x = square(2);
    std::vector<std::string> seen;
    sum(checkpoint([&](const Tensor64& h) { return exp(sin(h)); }, x))
        .backward(
            [&](const detail::VisitedNode<Array<double>>& visit) { seen.emplace_back(visit.node.op()); });
    CHECK(seen == std::vector<std::string>{"sum", "checkpoint", "exp", "sin"});
    Picture picture;
    picture.name(x, "x");
    picture.backward(sum(checkpoint([&](const Tensor64& h) { return exp(sin(h)); }, x)));
    CHECK(picture.svg().find("checkpoint") != std::string::npos);
}

TEST_CASE("checkpoint: a long chain runs and is freed without recursion") {
    const Scalar x = parameter(1.0);
    {
        Scalar kept = x;
        for (int i = 0; i < cases_of(200'000); ++i)
            kept = checkpoint([](const Scalar& h) { return h + 1; }, std::move(kept));
    }  // this scope frees the chain
    Scalar y = x;
    for (int i = 0; i < cases_of(200'000); ++i)
        y = checkpoint([](const Scalar& h) { return h + 1; }, std::move(y));
    y.backward();
    CHECK(x.grad() == 1);
}
