// Tests that a mistake in a checkpointed function throws an Error that names the operation.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::test;

namespace {

Tensor64 two_layers(const Tensor64& x, const Tensor64& w) { return tanh(matmul(tanh(matmul(x, w)), w)); }

Tensor64 square(std::uint64_t seed) { return parameter(Random(seed).array<double>({3, 3})); }

}  // namespace

TEST_CASE("checkpoint: throws Error with the operation when a recomputed value differs") {
    const Tensor64 w = square(1), x = square(2);
    double drawn = 1;
    const Tensor64 y =
        checkpoint([&](const Tensor64& h) { return tanh(matmul(tanh(h) * (drawn += 1), w)) * 3; }, x);
    CHECK(message_of([&] { sum(y).backward(); }) ==
          "[checkpoint] operation 2 'mul_number', of " + detail::describe(x.value()) +
              ", gave other values than the first time; a checkpointed function must give the same values in "
              "each run: give randomness a seed and an index, keep objects captured by reference alive until "
              "backward() ends, and call set_products() before the forward pass or after backward()");
    CHECK_FALSE(w.has_grad());
    const auto changing = [&](const Tensor64& h) { return tanh(h * (drawn += 1)); };
    {
        const NoCheckpointVerification off;
        std::thread([] { CHECK(detail::verifying); }).join();  // verification is set per thread
        sum(checkpoint(changing, x)).backward();
    }
    CHECK(x.has_grad());
    const Tensor64 verified_again = checkpoint(changing, x);
    CHECK_THROWS_AS(sum(verified_again).backward(), Error);
}

TEST_CASE("checkpoint: finds a difference in every bit of every recomputed operation") {
    const Tensor64 w = square(1), x = square(2);
    for (std::size_t at = 0; at < 3; ++at)
        for (std::size_t element = 0; element < 9; ++element) {
            bool again = false;
            const auto block = [&](Tensor64 h) {
                for (std::size_t i = 0; i < 3; ++i) {
                    std::vector<double> noise(9, 0.0);
                    if (again && i == at) noise[element] = 1e-15;
                    h = tanh(h + constant(Array<double>({3, 3}, noise, here())));
                }
                return matmul(h, w);
            };
            const Tensor64 y = checkpoint(block, x);
            again = true;
            CHECK(message_of([&] { sum(y).backward(); }).find("gave other values") != std::string::npos);
        }
}

TEST_CASE("checkpoint: finds a difference in the last operation, whose value no backward function reads") {
    const Tensor64 x = square(2);
    int runs = 0;
    const auto error = [&](auto last) {
        runs = 0;
        const Tensor64 y = checkpoint([&](const Tensor64& h) { return last(tanh(h)); }, x);
        return message_of([&] { sum(y).backward(); });
    };
    CHECK(error([&](Tensor64 h) { return h * double(++runs); }).find("'mul_number'") != std::string::npos);
    CHECK(error([&](Tensor64 h) {
              return dropout(h, 0.5, {1, 2, static_cast<std::uint64_t>(++runs)});
          }).find("'dropout'") != std::string::npos);
    CHECK(error([&](Tensor64 h) {
              ++runs;
              return slice(h, 0, runs - 1, runs);
          }).find("operation 2 'slice'") != std::string::npos);
}

TEST_CASE("checkpoint: finds a changed operand although the results are equal or unread") {
    const Tensor64 x = square(1), w = parameter(Array<double>::zeros({3, 3}, here()));
    bool again = false;
    const auto changing = [&] { return Array<double>::full({3, 3}, again ? 2 : 1, here()); };
    const std::string add_differs = "[checkpoint] operation 1 'add', of",
                      mul_differs = "[checkpoint] operation 1 'mul', of";
    const auto error = [&](auto block) {
        again = false;
        const Tensor64 y = checkpoint(block, x);
        again = true;
        return message_of([&] { sum(y).backward(); }).substr(0, add_differs.size());
    };
    const auto times_w = [&](const Tensor64& h) { return h * w; };
    // The products are 0 both times, but the gradient of w is the changed sum.
    CHECK(error([&](const Tensor64& h) { return times_w(h + constant(changing())); }) == add_differs);
    CHECK(error([&](const Tensor64& h) { return checkpoint(times_w, h + constant(changing())); }) ==
          add_differs);
    CHECK(error([&](const Tensor64& h) { return h + w * constant(changing()); }) == mul_differs);
    // No backward function reads the product, but the gradient of h is the changed parameter.
    const auto times = [&](const Tensor64& h, const Tensor64& factor) {
        const Tensor64 product = h * factor;
        return product + exp(h);
    };
    CHECK(error([&](const Tensor64& h) { return times(h, parameter(changing())); }) == mul_differs);
    CHECK(error([&](const Tensor64&) { return times(constant(changing()), w); }) == mul_differs);
    if (here() != Device::cpu) return;
    for (const bool nested : {false, true}) {
        Array<double> data = changing();
        const Tensor64 v = constant(data);
        const Tensor64 y = checkpoint(
            [&](const Tensor64& h) {
                const auto block = [&](const Tensor64& inner) { return times(inner, v); };
                return nested ? checkpoint(block, h) : block(h);
            },
            x);
        data.raw()[0] += 1;  // raises no version
        CHECK(message_of([&] { sum(y).backward(); }).find("gave other values") != std::string::npos);
    }
}

TEST_CASE("checkpoint: finds a changed element of a large value in some of the steps") {
    if (here() != Device::cpu) return;
    const Tensor x = parameter(Random(1).array<float>({256, 512}));
    Array<float> data = Array<float>::zeros({256, 512});
    const Tensor v = constant(data);
    const auto block = [&](const Tensor& h) { return tanh(tanh(h + v)); };
    for (int checkpoints = 1; checkpoints <= 8; ++checkpoints) {
        int errors = 0;
        for (int step = 1; step <= 64; ++step) {
            for (int other = 1; other < checkpoints; ++other) static_cast<void>(checkpoint(block, x));
            const Tensor y = checkpoint(block, x);
            data.raw()[50000] += 1;  // raises no version
            errors += message_of([&] { sum(y).backward(); }).find("operation 1 'add'") != std::string::npos;
        }
        INFO(checkpoints << " checkpoints in a step");
        CHECK(errors >= 5);  // 8 on average
        CHECK(errors <= 12);
    }
}

TEST_CASE("checkpoint: finds a result of another shape even when it is not recomputed") {
    const auto small = Array<double>::zeros({3, 3}, here()), large = Array<double>::zeros({2, 3, 3}, here());
    for (const bool grows : {true, false}) {
        const Array<double>&once = grows ? small : large, &again = grows ? large : small;
        const Tensor64 x = square(1);
        int runs = 0;
        const auto data = [&] { return constant(runs++ == 0 ? once : again); };
        const Tensor64 y = checkpoint([&](const Tensor64& h) { return h + data(); }, x);
        CHECK(message_of([&] { sum(y).backward(); }) ==
              "[checkpoint] the first run returned a result of " + detail::describe(once) +
                  ", and the recomputation one of " + detail::describe(again));
        CHECK_FALSE(x.has_grad());
    }
}

TEST_CASE("NoCheckpointVerification: counts in the forward pass, not in backward") {
    const Tensor64 x = square(1);
    double drawn = 1;
    const auto changing = [&](const Tensor64& h) { return tanh(h * (drawn += 1)); };
    const Tensor64 compared = checkpoint(changing, x);
    const auto not_compared = [&] {
        const NoCheckpointVerification off;
        return checkpoint(changing, x);
    }();
    {
        const NoCheckpointVerification off;
        CHECK_THROWS_AS(sum(compared).backward(), Error);
    }
    sum(not_compared).backward();
    CHECK(x.has_grad());
}

TEST_CASE("checksum: differs for doubled, negated and reordered numbers") {
    Random random(7);
    for (const Shape& shape : {Shape{2}, Shape{64}, Shape{128, 256}, Shape{7, 33}}) {
        const Array<float> x = random.array<float>(shape);
        const auto differs = [&](auto change) {
            std::vector<float> values = x.to_vector();
            change(values);
            return detail::checksum(Array<float>(shape, values, here())) != detail::checksum(x);
        };
        CHECK(detail::checksum(x.clone()) == detail::checksum(x));
        CHECK(differs([](auto& v) {
            for (float& each : v) each = -each;
        }));
        CHECK(differs([](auto& v) {
            for (float& each : v) each *= 2;
        }));
        CHECK(differs([](auto& v) { std::reverse(v.begin(), v.end()); }));
        const std::size_t row = shape.size() / static_cast<std::size_t>(shape[0]);
        CHECK(differs(
            [&](auto& v) { std::rotate(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(row), v.end()); }));
        CHECK(differs([&](auto& v) {
            v[0] = -v[0];
            v[v.size() - 1] = -v[v.size() - 1];
        }));
    }
    for (const std::size_t bytes : {0u, 1u, 63u, 64u, 255u, 256u, 257u})
        CHECK(detail::checksum_of(std::vector<char>(bytes).data(), bytes) !=
              detail::checksum_of(std::vector<char>(bytes + 1).data(), bytes + 1));
    int runs = 0;
    const Tensor wide = parameter(random.array<float>({128, 256}));
    const Tensor y = checkpoint([&](const Tensor& h) { return tanh(h * double(++runs)); }, wide);
    CHECK(message_of([&] { sum(y).backward(); }).find("other values") != std::string::npos);
}

TEST_CASE("checkpoint: compares operands of operations that are not recomputed, and the order of results") {
    const Tensor64 w = square(1), v = square(3), x = square(2);
    int runs = 0;
    const Tensor64 y = checkpoint([&](const Tensor64& h) { return linear(h, runs++ ? v : w); }, x);
    CHECK(message_of([&] { sum(y).backward(); }) ==
          "[checkpoint] operation 1 'linear' has other operands, labels, indices or numbers than the first "
          "time; the function must do the same when it runs again");
    runs = 0;
    const auto both = checkpoint(
        [&](const Tensor64& h) {
            const Tensor64 p = h + w, q = h + v;
            return runs++ ? std::pair(q, p) : std::pair(p, q);
        },
        x);
    CHECK(message_of([&] { sum(both.first * both.second).backward(); }) ==
          "[checkpoint] result 1 differs from the first run; the function must do the same when it runs "
          "again");
}

TEST_CASE("checkpoint: a function can read values that are not recorded again") {
    const Tensor64 w = square(1), v = square(3);
    const Tensor64 data = constant(Array<double>::full({3, 3}, 2, here()));
    const auto block = [&](const Tensor64& x) {
        const bool large = max(x).item() > 1 && Array<double>::full({1}, 3, here()).item() == 3;
        bool positive = false;
        {
            const NoGrad quietly;
            positive = mean(x * x).item() > 3;
        }
        return linear(x, large && positive ? v : w);
    };
    sum(checkpoint(block, data)).backward();
    CHECK(v.has_grad());
    CHECK_FALSE(w.has_grad());
}

TEST_CASE("checkpoint: kernels stay skipped after an inner block that returns its argument") {
    const Tensor64 x = square(2);
    const auto block = [](const Tensor64& a) {
        Tensor64 y = -a;
        y = checkpoint([](const Tensor64& h) { return h; }, y);
        return -y;
    };
    sum(checkpoint(block, x)).backward();
    CHECK(x.grad().to_vector() == std::vector<double>(9, 1.0));
}

TEST_CASE("invariant 10: a checkpoint finds a step even when the parameter's buffer was shared") {
    const Tensor64 w = square(1), x = square(2);
    w.modify_value([](Array<double>& value) { value.writable(); });
    const Array<double> best = w.value();
    const Tensor64 y = sum(checkpoint([&](const Tensor64& h) { return linear(h, w); }, x));
    w.modify_value([](Array<double>& value) { value.writable(); });
    CHECK(message_of([&] { y.backward(); }).find("changed in place between forward and backward") !=
          std::string::npos);
}

TEST_CASE("checkpoint: throws Error when the function runs other operations during backward") {
    const Tensor64 x = square(2);
    int runs = 0;
    const auto error = [&](auto block) {
        runs = 0;
        const Tensor64 y = checkpoint(block, x);
        return message_of([&] { sum(y).backward(); });
    };
    CHECK(error([&](const Tensor64& h) { return ++runs == 1 ? tanh(exp(h)) : tanh(sin(h)); }) ==
          "[checkpoint] operation 1 was 'exp' and is now 'sin'; the function must do the same when it runs "
          "again");
    CHECK(error([&](const Tensor64& h) { return ++runs == 1 ? exp(h) : sin(exp(h)); }) ==
          "[checkpoint] the first run had 1 operations, but the recomputation adds 'sin'; both runs must do "
          "the "
          "same");
    CHECK(error([&](const Tensor64& h) { return ++runs == 1 ? sin(exp(h)) : exp(h); }) ==
          "[checkpoint] the first run had 2 operations, and the recomputation had only 1; both runs must do "
          "the "
          "same");
    CHECK(message_of([&] {
              const auto results = checkpoint(
                  [&](const Tensor64& h) {
                      const Tensor64 y = exp(h);
                      return ++runs == 1 ? std::vector{y, y} : std::vector{y};
                  },
                  (runs = 0, x));
              sum(results[0]).backward();
          }) == "[checkpoint] the first run returned 2 results, and the recomputation 1");
}

TEST_CASE("invariant 10: a checkpoint finds a parameter that is stepped between forward and backward") {
    const Tensor64 w = square(1), x = square(2);
    const NoCheckpointVerification off;
    const Tensor64 y = sum(checkpoint([&](const Tensor64& h) { return tanh(matmul(h, w)); }, x));
    w.modify_value([](Array<double>& value) { value.writable(); });
    CHECK(
        message_of([&] { y.backward(); }) ==
        "[checkpoint] operation 1 'matmul' reads parameters or constants that were changed in place between "
        "forward and backward; step the optimizer after backward()");
    const Tensor64 z = sum(checkpoint([&](const Tensor64& h) { return tanh(h); }, x));
    x.modify_value([](Array<double>& value) { value.writable(); });
    CHECK(message_of([&] { z.backward(); }).find("[backward] 'checkpoint' saved version 0") == 0);
}

TEST_CASE("checkpoint: throws Error when an inner value is used outside") {
    const Tensor64 x = square(2);
    Tensor64 inside;
    const Tensor64 y = checkpoint(
        [&](const Tensor64& h) {
            inside = tanh(h);
            return exp(inside);
        },
        x);
    CHECK(message_of([&] { sum(inside * 2).backward(); }) ==
          "[backward] this value was computed inside a checkpointed function, whose graph is not kept; "
          "use what the function returns");
    x.zero_grad();
    sum(y).backward();
    CHECK(x.has_grad());
}

TEST_CASE("checkpoint: leaves parameters usable and no node when the function throws during backward") {
    const Tensor64 w = square(1), x = square(2);
    const std::int64_t nodes = Node::live_count();
    const std::size_t bytes = memory::in_use(here());
    {
        int runs = 0;
        const Tensor64 y = checkpoint(
            [&](const Tensor64& h) {
                if (++runs == 2) throw Error("the second time");
                return two_layers(h, w);
            },
            x);
        CHECK(message_of([&] { sum(y).backward(); }) == "the second time");
        CHECK_FALSE(is_recomputing());
        CHECK(message_of([&] { sum(y).backward(); }).find("has already used 'checkpoint'") !=
              std::string::npos);
    }
    w.free_grad(), x.free_grad();
    CHECK(Node::live_count() == nodes);
    CHECK(memory::in_use(here()) == bytes);
    sum(checkpoint([&](const Tensor64& h) { return two_layers(h, w); }, x)).backward();
    CHECK(w.has_grad());
}

namespace {

using A = Array<double>;

const std::string other_value =
    "' reads a parameter or constant that was given another value between forward and backward; assign the "
    "new value "
    "after backward()";

A two(double first, double second) { return A({2}, {first, second}, here()); }

// Checkpoints functions that read the result of make(), and then changes this result by change(). Each
// backward() must throw the expected Error.
template <class Make, class Change>
void expect_noticed(Make make, Change change, const std::string& expected) {
    using Layer = std::function<Tensor64(const Tensor64&)>;
    const auto try_it = [&](const char* how, auto forward, bool is_kept = false) {
        for (const bool verified : {true, false}) {
            const Tensor64 x = parameter(two(1, 2)), captured = make();
            std::optional<NoCheckpointVerification> off;
            if (!verified) off.emplace();
            const Tensor64 y =
                sum(forward(x, captured, Layer([captured](const Tensor64& h) { return h * captured; })));
            change(captured);
            INFO(how << (verified ? "" : ", unverified"));
            const std::string message = message_of([&] { y.backward(); });
            CAPTURE(message);
            const std::string part = is_kept ? "'checkpoint' saved version 0" : expected;
            CHECK(message.find(part) != std::string::npos);
            CHECK_FALSE(x.has_grad());
        }
    };
    using T = const Tensor64&;
    try_it("checkpoint", [](T x, T, const Layer& layer) { return checkpoint(layer, x); });
    try_it("nested", [](T x, T, const Layer& layer) {
        return checkpoint([layer](T h) { return checkpoint(layer, h); }, x);
    });
    try_it("nested between others", [](T x, T, const Layer& layer) {
        return checkpoint([layer](T h) { return tanh(checkpoint(layer, exp(h)) + 1); }, x);
    });
    try_it(
        "an argument",
        [](T x, T captured, const Layer&) { return checkpoint([](T h, T w) { return h * w; }, x, captured); },
        true);  // this call passes the value as an argument of checkpoint()
    try_it("segments", [](T x, T, const Layer& layer) {
        return checkpoint_sequential(Chain<A>{layer, layer, layer, tanh<A>}, 3, x);
    });
    try_it("revolve", [](T x, T, const Layer& layer) {
        return Revolve<A>(Chain<A>{layer, layer, layer, tanh<A>}, 2)(x);
    });
}

}  // namespace

TEST_CASE("invariant 10: every checkpoint finds a parameter that got another buffer") {
    expect_noticed([] { return parameter(two(3, 4)); },
                   [](const Tensor64& w) { w.modify_value([](A& value) { value = two(30, 40); }); },
                   other_value);
}

TEST_CASE("invariant 10: every checkpoint finds a constant that is written in place") {
    expect_noticed([] { return constant(two(3, 4)); },
                   [](const Tensor64& c) { ++c.value().storage()->version; },  // simulates a write in place
                   "changed in place between forward and backward");
}

TEST_CASE("checkpoint: finds a changed scalar parameter") {
    const Scalar w = parameter(3.0), x = parameter(2.0);
    const Scalar y = checkpoint([&](const Scalar& h) { return h * w; }, x);
    w.modify_value([](double& value) { value = 30; });
    CHECK(message_of([&] { y.backward(); }) == "[checkpoint] operation 1 'mul" + other_value);
}

TEST_CASE("checkpoint: a buffer that it has read is not reused before backward") {
    const Tensor64 x = parameter(two(1, 2)), w = parameter(two(3, 4));
    const Tensor64 y = sum(checkpoint([&](const Tensor64& h) { return h * w; }, x));
    const memory::detail::Storage* const before = w.value().storage();
    for (int i = 0; i < 20; ++i) {
        w.modify_value([](A& value) { value = two(30, 40); });
        CHECK(w.value().storage() != before);
    }
    CHECK_THROWS_AS(y.backward(), Error);
}

TEST_CASE("checkpoint: finds labels that change their order between forward and backward") {
    const Tensor64 x = parameter(A({2, 2}, {1, 2, 1, 2}, here()));
    const Array<std::int32_t> first({2}, {0, 1}, here()), second({2}, {1, 0}, here());
    bool again = false;
    const Tensor64 y =
        checkpoint([&](const Tensor64& h) { return cross_entropy(h, again ? second : first).sum; }, x);
    again = true;  // labels differ, although both sums have the same bits
    CHECK(message_of([&] { y.backward(); }).find("'cross_entropy' has other operands") != std::string::npos);
}

TEST_CASE("checkpoint: values that it has read can be changed in place after backward") {
    const Tensor64 x = parameter(two(1, 2)), w = parameter(two(3, 4));
    const Tensor64 y = sum(checkpoint([&](const Tensor64& h) { return h * w; }, x));
    y.backward();
    const double* const place = w.value().data();
    w.modify_value([](A& value) { value.writable(); });
    CHECK(w.value().data() == place);
}
