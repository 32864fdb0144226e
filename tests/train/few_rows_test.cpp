// If micro-batches have few rows, a Window caches transposed weights and defers weight gradients. The
// gradients have the same bits as without a Window, and the Window frees all memory.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "../lessons/adam_a.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "tally/cpu/vectors.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/window.hpp"
#include "train/overwrite.hpp"

namespace tally::test {

namespace {

using lesson::AdamA;

// A FrozenNet has one frozen weight. Only some weights of a FrozenNet are large enough for cached transposes.
struct FrozenNet {
    std::vector<Tensor> parameters;
    Tensor frozen;
    Array<float> x;
    Array<std::int32_t> labels;
    bool twice;  // whether a second operation reads the second layer's weights
    bool checkpointed;

    explicit FrozenNet(Random& r) : twice(r.whole(0, 3) == 0), checkpointed(r.coin()) {
        const std::int64_t rows = r.whole(2, 40), wide = r.whole(58, 72), in = r.whole(50, 70);
        add(r, in, wide);
        add(r, wide, wide);
        add(r, wide, 4);
        frozen = parameter(r.array<float>({wide, wide}, -0.1, 0.1));
        x = r.array<float>({rows, in}, -1, 1);
        labels = r.integers({rows}, 0, 3);
    }
    FrozenNet(const FrozenNet& other)
        : frozen(parameter(other.frozen.value().clone())),
          x(other.x),
          labels(other.labels),
          twice(other.twice),
          checkpointed(other.checkpointed) {
        for (const Tensor& p : other.parameters) parameters.push_back(parameter(p.value().clone()));
    }
    std::int64_t rows() const { return x.shape()[0]; }
    std::size_t transposed_bytes() const {  // bytes of the transposed weight
        return parameters[2].value().storage()->bytes * 2;
    }
    std::size_t deferred_bytes() const {  // bytes of 16 rows of both factors of each large gradient
        std::size_t bytes = 0;
        for (const Tensor& p : parameters)
            if (p.value().size() >= 1 << 12)
                for (const std::int64_t width : p.shape())
                    bytes += Array<float>::empty({16, width}).storage()->bytes;
        return bytes;
    }

    Loss<Array<float>> loss(std::int64_t from, std::int64_t to) const {
        Tensor y = linear_relu(Tensor(x.slice_rows(from, to)), parameters[0], parameters[1]);
        const auto layers = [this](const Tensor& h) {
            return linear(matmul(h, frozen.detach()), parameters[2], parameters[3]);
        };
        y = checkpointed ? checkpoint(layers, y) : layers(y);
        if (twice) y = linear(y, parameters[2]) + sum(parameters[2]);
        return cross_entropy(linear(y, parameters[4], parameters[5]), labels.slice_rows(from, to));
    }

private:
    void add(Random& r, std::int64_t in, std::int64_t out) {
        parameters.push_back(parameter(r.array<float>({in, out}, -0.1, 0.1)));
        parameters.push_back(parameter(r.array<float>({out}, -0.1, 0.1)));
    }
};

// Returns a network with weights so large that a window caches their transposes.
FrozenNet large_net(std::uint64_t seed) {
    for (Random r(seed);;)
        if (FrozenNet made(r); made.rows() >= 8 && !made.checkpointed && !made.twice &&
                               made.parameters[2].value().size() >= 1 << 12)
            return made;
}

std::vector<std::int64_t> cuts(Random& r, std::int64_t rows) {
    std::vector<std::int64_t> at{0};
    while (at.back() < rows) at.push_back(std::min(rows, at.back() + r.whole(1, r.coin() ? 3 : 14)));
    return at;
}

// Returns the gradient like grad(), but the library does not count this call as a read by the user. The
// window therefore still defers the rows of later micro-batches.
const Array<float>& gradient_without_escape(const Tensor& parameter) {
    REQUIRE(parameter.has_grad());
    return parameter.node()->gradient;
}

std::string differing(const FrozenNet& a, const FrozenNet& b, bool gradients) {
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        const Tensor &p = a.parameters[i], &q = b.parameters[i];
        if (!(gradients ? same_bits(gradient_without_escape(p), gradient_without_escape(q))
                        : same_bits(p.value(), q.value())))
            return std::string(gradients ? "gradient " : "parameter ") + std::to_string(i);
    }
    return "";
}

struct Threads {
    explicit Threads(int count) { set_threads(count); }
    ~Threads() { set_threads(1); }
    Threads(const Threads&) = delete;
};

void add_rows(Window<float>& window, const FrozenNet& net, std::int64_t count) {
    for (std::int64_t row = 0; row < count; ++row) window.add(net.loss(row, row + 1));
}

void add_pairs(Window<float>& window,
               const FrozenNet& net) {  // after these pairs of rows, transposes are cached
    for (std::int64_t row = 0; row < 8; row += 2) window.add(net.loss(row, row + 2));
}

void save_only(const Window<float>& window) {
    TrainingState state;
    window.save(state, "window");
}

}  // namespace

TEST_CASE("Law: in a window of few rows gradients and weights have the bits of backward() without a window") {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        Random r(seed);
        const Threads some(static_cast<int>(r.whole(1, 3)));
        const FrozenNet net(r), reference = net;
        const auto total = static_cast<double>(net.rows());
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1}),
            other(reference.parameters, {.learning_rate = 0.1});
        Window<float> window(sgd, {.total = total});
        for (int update = 0; update < 3; ++update) {
            INFO("seed " << seed << ", update " << update);
            const auto at = cuts(r, net.rows());
            bool overwritten = false;
            for (std::size_t i = 1; i < at.size(); ++i) {
                window.add(net.loss(at[i - 1], at[i]));
                (reference.loss(at[i - 1], at[i]).sum / total).backward();
                if (r.whole(0, 15) == 0) CHECK(differing(net, reference, true) == "");
                if (r.whole(0, 99) == 0)
                    CHECK(same_bits(net.parameters[2].grad(),
                                    gradient_without_escape(reference.parameters[2])));
                if (r.whole(0, 5) > 0) continue;
                const auto numbers = r.array<float>(net.frozen.shape(), -0.1, 0.1);
                for (const FrozenNet* each : {&net, &reference}) overwrite(each->frozen.value(), numbers);
                overwritten = true;
            }
            const FrozenNet full = net;
            full.loss(0, net.rows()).mean().backward();
            CHECK(differing(net, reference, true) == "");
            if (!net.twice && !overwritten) CHECK(differing(full, net, true) == "");
            window.finish();
            other.step();
            CHECK(differing(net, reference, false) == "");
            other.zero_grad();
        }
    }
}

TEST_CASE("Window: deferred rows and cached transposes are accounted for and freed") {
    const FrozenNet net = large_net(4);
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    const std::size_t without = [&] {
        Window<float> window(sgd, {.total = 8});
        add_rows(window, net, 1);
        const std::size_t in_use = memory::in_use();
        add_rows(window, net, 1);
        CHECK(memory::in_use() == in_use + net.deferred_bytes());
        add_rows(window, net, 4);
        const std::size_t cached_by_single_rows =
            cpu::vectors == cpu::Vectors::avx512 ? 0 : net.transposed_bytes();
        CHECK(memory::in_use() == in_use + net.deferred_bytes() + cached_by_single_rows);
        add_pairs(window, net);
        CHECK(memory::in_use() == in_use + net.deferred_bytes() + net.transposed_bytes());
        window.discard();
        return memory::in_use();
    }();
    for (const bool finishes : {true, false}) {
        Window<float> window(sgd, {.total = 8});
        add_pairs(window, net);
        const void* const place = net.parameters[2].value().data();
        finishes ? void(window.finish()) : window.discard();
        CHECK(memory::in_use() == without);
        CHECK(net.parameters[2].value().data() == place);  // the weight was updated in place
    }
    CHECK(memory::in_use() < without);
}

TEST_CASE("Window: a reader of a gradient sees all rows, and later rows are not deferred") {
    const FrozenNet net = large_net(4), reference = net;
    const Tensor &w = net.parameters[2], &v = reference.parameters[2];
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    const auto row = [&](std::int64_t i) {
        window.add(net.loss(i, i + 1));
        (reference.loss(i, i + 1).sum / 8.0).backward();
    };
    for (const std::int64_t i : {0, 1, 2, 3, 4}) row(i);
    const std::size_t deferred = memory::in_use();
    const Array<float>& seen = w.grad();
    CHECK(same_bits(seen, v.grad()));
    CHECK(memory::in_use() < deferred);
    const Array<float> copy = seen, before = v.grad().clone();
    row(5);
    CHECK(same_bits(seen, v.grad()));  // the reference sees the new row, but the copy does not
    CHECK(same_bits(copy, before));
    const std::size_t read_in_use = memory::in_use();
    row(6);
    CHECK(memory::in_use() == read_in_use);
    window.discard();
    for (const Tensor& p : reference.parameters) p.zero_grad();
    for (const std::int64_t i : {0, 1, 2}) row(i);
    CHECK(same_bits(seen, v.grad()));
}

TEST_CASE("Window: rows are still deferred after has_grad(), clipping, save() and finish()") {
    const FrozenNet net = large_net(4);
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    const auto deferred_before = [&](const auto& looked) {
        add_rows(window, net, 2);
        const std::size_t in_use = memory::in_use();
        looked();
        return in_use - memory::in_use();
    };
    const auto ask = [&] {
        for (const Tensor& p : net.parameters) p.has_grad();
    };
    CHECK(deferred_before(ask) == net.deferred_bytes());
    CHECK(deferred_before([&] { detail::grad_norm(net.parameters); }) == net.deferred_bytes());
    CHECK(deferred_before([&] { save_only(window); }) == net.deferred_bytes());
    add_rows(window, net, 2);
    window.finish();
    CHECK(deferred_before(ask) == net.deferred_bytes());
    window.discard();
}

TEST_CASE("Window: rows are still deferred in windows after an exact sum or AdamA has read each gradient") {
    const FrozenNet net = large_net(4);
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    AdamA<float> adam(net.parameters);
    {
        Window<float> exact(sgd, {.total = 2, .sum = Sum::exact});
        add_rows(exact, net, 2);
        exact.finish();
    }
    (net.loss(0, 2).sum / 2.0).backward();
    adam.fold();
    Window<float> window(sgd, {.total = 8});
    add_rows(window, net, 2);
    const std::size_t in_use = memory::in_use();
    for (const Tensor& p : net.parameters) p.has_grad();
    CHECK(in_use - memory::in_use() == net.deferred_bytes());
    window.discard();
}

TEST_CASE("Window: another thread may discard a window with its deferred rows") {
    const FrozenNet net = large_net(4), reference = net;
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    const std::size_t before = memory::in_use();
    add_rows(window, net, 3);
    std::thread([&] { window.discard(); }).join();
    for (const Tensor& p : net.parameters) p.free_grad();
    CHECK(memory::in_use() == before);
    add_rows(window, net, 3);
    for (std::int64_t i = 0; i < 3; ++i) (reference.loss(i, i + 1).sum / 8.0).backward();
    CHECK(differing(net, reference, true) == "");
    window.discard();
}

TEST_CASE("Window: threads that read a gradient concurrently see all rows, each added once") {
    for (int round = 0; round < 20; ++round) {
        const FrozenNet net = large_net(4), reference = net;
        for (std::int64_t i = 0; i < 3; ++i) (reference.loss(i, i + 1).sum / 8.0).backward();
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
        Window<float> window(sgd, {.total = 8});
        add_rows(window, net, 3);
        std::atomic<int> ready{0}, wrong{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
            threads.emplace_back([&] {
                for (++ready; ready < 3;) {
                }
                wrong += !same_bits(net.parameters[2].grad(), reference.parameters[2].grad());
            });
        for (std::thread& each : threads) each.join();
        CHECK(wrong == 0);
        window.discard();
    }
}

TEST_CASE("Window: no rows are deferred for other products, budgets, observers or policies") {
    const auto added_by_second = [](Window<float>::Options options) {
        const FrozenNet net = large_net(4);
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
        options.total = 8;
        Window<float> window(sgd, options);
        add_rows(window, net, 1);
        const std::size_t in_use = memory::in_use();
        add_rows(window, net, 1);
        const std::size_t added = memory::in_use() - in_use;
        window.discard();
        return added;
    };
    CHECK(added_by_second({}) > 0);
    CHECK(added_by_second({.non_finite = NonFinite::drop_micro}) == 0);
    CHECK(added_by_second({.sum = Sum::exact}) == 0);
    set_products(Products::blas);
    CHECK(added_by_second({}) == 0);
    set_products(Products::ordered);
    {
        const Budget budget(4 << 20);
        CHECK(added_by_second({}) == 0);
    }
    struct Silent : Observer {
    } silent;
    const Observer::Scope observing(silent);
    CHECK(added_by_second({}) == 0);
}

TEST_CASE("grad: deferred rows of a window do not mix with the returned gradient") {
    const FrozenNet net = large_net(4), reference = net;
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    add_rows(window, net, 3);
    const auto separate_gradient = [](const FrozenNet& of) {
        return grad(of.loss(3, 6).sum, {of.parameters[2]})[0];
    };
    CHECK(same_bits(separate_gradient(net), separate_gradient(reference)));
    for (std::int64_t i = 0; i < 3; ++i) (reference.loss(i, i + 1).sum / 8.0).backward();
    CHECK(differing(net, reference, true) == "");
    window.discard();
}

// Returns a loss in which two layers read one weight, so a window might defer the second layer's rows.
Loss<Array<float>> twice_through(const Tensor& x, const Tensor& w) { return Loss(linear(linear(x, w), w)); }

TEST_CASE("Window: rows of a weight that is a result and that two layers read are added at once") {
    Random r(3);
    const Tensor w = parameter(r.array<float>({64, 64}, -0.1, 0.1)), reference = parameter(w.value().clone());
    const Tensor x(r.array<float>({2, 64}, -1, 1));
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 256});
    for (int micro = 0; micro < 2; ++micro) {
        window.add(twice_through(x, w * 2));
        (twice_through(x, reference * 2).sum / 256.0).backward();
    }
    CHECK(same_bits(w.grad(), reference.grad()));
    window.discard();
}

TEST_CASE("Sum::exact: the sum includes all rows of a weight that two layers read") {
    Random r(3);
    const Tensor w = parameter(r.array<float>({64, 64}, -0.1, 0.1)), reference = parameter(w.value().clone());
    const Tensor x(r.array<float>({2, 64}, -1, 1));
    Sgd<float> sgd({w}, {.learning_rate = 0.1}), other({reference}, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 128, .sum = Sum::exact});
    window.add(twice_through(x, w));
    window.finish();
    (twice_through(x, reference).sum / 128.0).backward();
    other.step();
    CHECK(same_bits(w.value(), reference.value()));
}

TEST_CASE("Window: a backward pass of another window into deferred rows throws an Error") {
    const FrozenNet net = large_net(4), other = large_net(9);
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1}), its(other.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8}), second(its, {.total = 8});
    add_rows(window, net, 2);
    const Tensor row(Array<float>::full({1, net.parameters[2].shape()[0]}, 1));
    const Tensor shared = sum(linear(row, net.parameters[2])) + sum(other.parameters[1]);
    second.add({shared, constant(Array<float>::full({}, 1))});
    CHECK_THAT(message_of([&] { add_rows(window, net, 1); }),
               contains("another window ran backward() into parameter 2"));
    window.discard();
    second.discard();
}

TEST_CASE("Window: if memory for deferred rows cannot be allocated, the bits are the same") {
    const FrozenNet wanted = large_net(4);
    const auto train = [](const FrozenNet& net) {
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
        Window<float> window(sgd, {.total = 8});
        add_pairs(window, net);
        window.finish();
    };
    train(wanted);
    int continued = 0;
    for (std::uint64_t n = 1;; ++n) {
        const FrozenNet net = large_net(4);
        memory::detail::fail_allocation(n);
        bool failed = false;
        try {
            train(net);
        } catch (const OutOfMemory&) {
            failed = true;
        }
        bool not_reached = false;  // true if the n-th allocation has not been reached
        try {
            for (std::uint64_t i = 0; i < n; ++i) Array<float>::empty({});
        } catch (const OutOfMemory&) {
            not_reached = true;
        }
        memory::detail::fail_allocation(0);
        if (!failed) CHECK(differing(net, wanted, false) == "");
        if (not_reached) break;
        continued += failed ? 0 : 1;
    }
    CHECK(continued >= 6);  // allocations of two factors of two gradients, and of two transposed weights
}

TEST_CASE("Window: windows of several threads each cache their own transposed weights") {
    using Weights = std::vector<Array<float>>;
    const auto trained = [](bool in_window) {
        const FrozenNet net = large_net(9);
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
        for (int update = 0; update < 3; ++update) {
            if (in_window) {
                Window<float> window(sgd, {.total = 8});
                add_pairs(window, net);
                window.finish();
                continue;
            }
            (net.loss(0, 8).sum / 8.0).backward();
            sgd.step();
            sgd.zero_grad();
        }
        Weights weights;
        for (const Tensor& p : net.parameters) weights.push_back(p.value());
        return weights;
    };
    std::vector<Weights> found(4);
    std::vector<std::thread> threads;
    for (Weights& mine : found) threads.emplace_back([&] { mine = trained(true); });
    for (std::thread& thread : threads) thread.join();
    const Weights wanted = trained(false);
    for (const Weights& mine : found)
        for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(same_bits(mine[i], wanted[i]));
}

}  // namespace tally::test
