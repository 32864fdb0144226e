// Micro-batches of few rows, for which a window keeps weights turned and lets rows of gradients wait for more: the same
// bits as without, and nothing stays behind.
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
#include "tally/autograd/ops/shape.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/window.hpp"
#include "train/overwrite.hpp"

namespace tally::test {

namespace {

using lesson::AdamA;

// Weights on both sides of the size from which they are turned, and one that no optimizer steps.
struct Net {
    std::vector<Tensor> parameters;
    Tensor frozen;
    Array<float> x;
    Array<std::int32_t> labels;
    bool twice, checkpointed;  // a second operation reads the second layer's weights; its layers run again

    explicit Net(Random& r) : twice(r.whole(0, 3) == 0), checkpointed(r.coin()) {
        const std::int64_t rows = r.whole(2, 40), wide = r.whole(58, 72), in = r.whole(50, 70);
        add(r, in, wide);
        add(r, wide, wide);
        add(r, wide, 4);
        frozen = parameter(r.array<float>({wide, wide}, -0.1, 0.1));
        x = r.array<float>({rows, in}, -1, 1);
        labels = r.integers({rows}, 0, 3);
    }
    Net(const Net& other)
        : frozen(parameter(other.frozen.value().clone())),
          x(other.x),
          labels(other.labels),
          twice(other.twice),
          checkpointed(other.checkpointed) {
        for (const Tensor& p : other.parameters) parameters.push_back(parameter(p.value().clone()));
    }
    std::int64_t rows() const { return x.shape()[0]; }
    std::size_t turned_bytes() const {  // of what a gradient goes through
        return parameters[2].value().storage()->bytes * 2;
    }
    std::size_t waiting_bytes() const {  // of 16 rows of both factors of each large gradient
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
            return linear(matmul(h, detach(frozen)), parameters[2], parameters[3]);
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

// Whose large weights are turned.
Net large_net(std::uint64_t seed) {
    for (Random r(seed);;)
        if (Net made(r); made.rows() >= 8 && !made.checkpointed && !made.twice &&
                         made.parameters[2].value().size() >= 1 << 12)
            return made;
}

std::vector<std::int64_t> cuts(Random& r, std::int64_t rows) {
    std::vector<std::int64_t> at{0};
    while (at.back() < rows) at.push_back(std::min(rows, at.back() + r.whole(1, r.coin() ? 3 : 14)));
    return at;
}

// As grad(), of which somebody might keep a reference, so that no rows would wait from then on.
const Array<float>& passing_look(const Tensor& parameter) {
    REQUIRE(parameter.has_grad());
    return parameter.node()->gradient;
}

std::string differing(const Net& a, const Net& b, bool gradients) {
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        const Tensor &p = a.parameters[i], &q = b.parameters[i];
        if (!(gradients ? same_bits(passing_look(p), passing_look(q)) : same_bits(p.value(), q.value())))
            return std::string(gradients ? "gradient " : "parameter ") + std::to_string(i);
    }
    return "";
}

struct Threads {
    explicit Threads(int count) { set_threads(count); }
    ~Threads() { set_threads(1); }
    Threads(const Threads&) = delete;
};

void add_rows(Window<float>& window, const Net& net, std::int64_t count) {
    for (std::int64_t row = 0; row < count; ++row) window.add(net.loss(row, row + 1));
}

void add_pairs(Window<float>& window, const Net& net) {  // as often as it takes until weights are turned
    for (std::int64_t row = 0; row < 8; row += 2) window.add(net.loss(row, row + 2));
}

void save_and_forget(const Window<float>& window) {
    TrainingState state;
    window.save(state, "window");
}

}  // namespace

TEST_CASE("Law: in a window of few rows gradients and weights have the bits of backward() alone") {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        Random r(seed);
        const Threads some(static_cast<int>(r.whole(1, 3)));
        const Net net(r), twin = net;
        const auto total = static_cast<double>(net.rows());
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1}),
            other(twin.parameters, {.learning_rate = 0.1});
        Window<float> window(sgd, {.total = total});
        for (int update = 0; update < 3; ++update) {
            INFO("seed " << seed << ", update " << update);
            const auto at = cuts(r, net.rows());
            bool overwritten = false;
            for (std::size_t i = 1; i < at.size(); ++i) {
                window.add(net.loss(at[i - 1], at[i]));
                (twin.loss(at[i - 1], at[i]).sum / total).backward();
                if (r.whole(0, 15) == 0) CHECK(differing(net, twin, true) == "");
                if (r.whole(0, 99) == 0)
                    CHECK(same_bits(net.parameters[2].grad(), passing_look(twin.parameters[2])));
                if (r.whole(0, 5) > 0) continue;
                const auto numbers = r.array<float>(net.frozen.shape(), -0.1, 0.1);
                for (const Net* each : {&net, &twin}) overwrite(each->frozen.value(), numbers);
                overwritten = true;
            }
            const Net full = net;
            full.loss(0, net.rows()).mean().backward();
            CHECK(differing(net, twin, true) == "");
            if (!net.twice && !overwritten) CHECK(differing(full, net, true) == "");
            window.finish();
            other.step();
            CHECK(differing(net, twin, false) == "");
            other.zero_grad();
        }
    }
}

TEST_CASE("What a window keeps stands in the ledger, and goes with finish(), discard() and the window") {
    const Net net = large_net(4);
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    const std::size_t without = [&] {
        Window<float> window(sgd, {.total = 8});
        add_rows(window, net, 1);
        const std::size_t in_use = memory::in_use();
        add_rows(window, net, 1);
        CHECK(memory::in_use() == in_use + net.waiting_bytes());
        add_rows(window, net, 4);
        CHECK(memory::in_use() == in_use + net.waiting_bytes());  // a single row is faster without
        add_pairs(window, net);
        CHECK(memory::in_use() == in_use + net.waiting_bytes() + net.turned_bytes());
        window.discard();
        return memory::in_use();
    }();
    for (const bool finishes : {true, false}) {
        Window<float> window(sgd, {.total = 8});
        add_pairs(window, net);
        const void* const place = net.parameters[2].value().data();
        finishes ? void(window.finish()) : window.discard();
        CHECK(memory::in_use() == without);
        CHECK(net.parameters[2].value().data() == place);  // stepped where it lies
    }
    CHECK(memory::in_use() < without);
}

TEST_CASE(
    "Whoever looks at a gradient sees all its rows, and in a later window too, since none wait any more") {
    const Net net = large_net(4), twin = net;
    const Tensor &w = net.parameters[2], &v = twin.parameters[2];
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    const auto row = [&](std::int64_t i) {
        window.add(net.loss(i, i + 1));
        (twin.loss(i, i + 1).sum / 8.0).backward();
    };
    for (const std::int64_t i : {0, 1, 2, 3, 4}) row(i);
    const std::size_t waiting = memory::in_use();
    const Array<float>& seen = w.grad();
    CHECK(same_bits(seen, v.grad()));
    CHECK(memory::in_use() < waiting);
    const Array<float> copy = seen, before = v.grad().clone();
    row(5);
    CHECK(same_bits(seen, v.grad()));  // the reference follows, the copy does not
    CHECK(same_bits(copy, before));
    const std::size_t looked_at = memory::in_use();
    row(6);
    CHECK(memory::in_use() == looked_at);
    window.discard();
    for (const Tensor& p : twin.parameters) p.zero_grad();
    for (const std::int64_t i : {0, 1, 2}) row(i);
    CHECK(same_bits(seen, v.grad()));
}

TEST_CASE("Whoever looks in passing changes nothing: clipping, a file of the window, the next step") {
    const Net net = large_net(4);
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    const auto wait_until = [&](const auto& looked) {
        add_rows(window, net, 2);
        const std::size_t in_use = memory::in_use();
        looked();
        return in_use - memory::in_use();
    };
    const auto ask = [&] {
        for (const Tensor& p : net.parameters) p.has_grad();
    };
    CHECK(wait_until(ask) == net.waiting_bytes());
    CHECK(wait_until([&] { grad_norm(net.parameters); }) == net.waiting_bytes());
    CHECK(wait_until([&] { save_and_forget(window); }) == net.waiting_bytes());
    add_rows(window, net, 2);
    window.finish();
    CHECK(wait_until(ask) == net.waiting_bytes());
    window.discard();
}

TEST_CASE(
    "Exact sums and AdamA, which read each micro-batch's gradient, keep no rows of later windows from "
    "waiting") {
    const Net net = large_net(4);
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
    CHECK(in_use - memory::in_use() == net.waiting_bytes());
    window.discard();
}

TEST_CASE("A window that one thread fills is discarded by another, with all that waits") {
    const Net net = large_net(4), twin = net;
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    const std::size_t before = memory::in_use();
    add_rows(window, net, 3);
    std::thread([&] { window.discard(); }).join();
    for (const Tensor& p : net.parameters) p.free_grad();
    CHECK(memory::in_use() == before);
    add_rows(window, net, 3);
    for (std::int64_t i = 0; i < 3; ++i) (twin.loss(i, i + 1).sum / 8.0).backward();
    CHECK(differing(net, twin, true) == "");
    window.discard();
}

TEST_CASE("Threads that look at the same time see all rows, each of which is added once") {
    for (int round = 0; round < 20; ++round) {
        const Net net = large_net(4), twin = net;
        for (std::int64_t i = 0; i < 3; ++i) (twin.loss(i, i + 1).sum / 8.0).backward();
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
        Window<float> window(sgd, {.total = 8});
        add_rows(window, net, 3);
        std::atomic<int> ready{0}, wrong{0};
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
            threads.emplace_back([&] {
                for (++ready; ready < 3;) {
                }
                wrong += !same_bits(net.parameters[2].grad(), twin.parameters[2].grad());
            });
        for (std::thread& each : threads) each.join();
        CHECK(wrong == 0);
        window.discard();
    }
}

TEST_CASE(
    "No rows wait where a gradient is read after each micro-batch, bits are a library's, or memory is "
    "counted") {
    const auto added_by_second = [](WindowOptions<float> options) {
        const Net net = large_net(4);
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
    const ObserverScope observing(silent);
    CHECK(added_by_second({}) == 0);
}

TEST_CASE("A gradient that is asked for apart has nothing of the rows that wait, and they nothing of it") {
    const Net net = large_net(4), twin = net;
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 8});
    add_rows(window, net, 3);
    const auto apart = [](const Net& of) { return grad(of.loss(3, 6).sum, {of.parameters[2]})[0]; };
    CHECK(same_bits(apart(net), apart(twin)));
    for (std::int64_t i = 0; i < 3; ++i) (twin.loss(i, i + 1).sum / 8.0).backward();
    CHECK(differing(net, twin, true) == "");
    window.discard();
}

// Of one weight, which both layers read: the second one's rows could wait in the first micro-batch.
Loss<Array<float>> twice_through(const Tensor& x, const Tensor& w) {
    return make_loss(linear(linear(x, w), w));
}

TEST_CASE("Rows wait for a window's gradient alone: a weight that is a result, read by two layers") {
    Random r(3);
    const Tensor w = parameter(r.array<float>({64, 64}, -0.1, 0.1)), twin = parameter(w.value().clone());
    const Tensor x(r.array<float>({2, 64}, -1, 1));
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 256});
    for (int micro = 0; micro < 2; ++micro) {
        window.add(twice_through(x, w * 2));
        (twice_through(x, twin * 2).sum / 256.0).backward();
    }
    CHECK(same_bits(w.grad(), twin.grad()));
    window.discard();
}

TEST_CASE("An exact sum takes in all rows of a weight that two layers read") {
    Random r(3);
    const Tensor w = parameter(r.array<float>({64, 64}, -0.1, 0.1)), twin = parameter(w.value().clone());
    const Tensor x(r.array<float>({2, 64}, -1, 1));
    Sgd<float> sgd({w}, {.learning_rate = 0.1}), other({twin}, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 128, .sum = Sum::exact});
    window.add(twice_through(x, w));
    window.finish();
    (twice_through(x, twin).sum / 128.0).backward();
    other.step();
    CHECK(same_bits(w.value(), twin.value()));
}

TEST_CASE("Another window that goes backward into rows that wait is noticed") {
    const Net net = large_net(4), other = large_net(9);
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

TEST_CASE("Where memory for waiting rows cannot be had none wait, and the bits are the same") {
    const Net wanted = large_net(4);
    const auto train = [](const Net& net) {
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
        Window<float> window(sgd, {.total = 8});
        add_pairs(window, net);
        window.finish();
    };
    train(wanted);
    int went_on = 0;
    for (std::uint64_t n = 1;; ++n) {
        const Net net = large_net(4);
        memory::fail_allocation(n);
        bool failed = false;
        try {
            train(net);
        } catch (const OutOfMemory&) {
            failed = true;
        }
        bool to_come = false;  // it has not failed yet
        try {
            for (std::uint64_t i = 0; i < n; ++i) Array<float>::empty({});
        } catch (const OutOfMemory&) {
            to_come = true;
        }
        memory::fail_allocation(0);
        if (!failed) CHECK(differing(net, wanted, false) == "");
        if (to_come) break;
        went_on += failed ? 0 : 1;
    }
    CHECK(went_on >= 6);  // two factors of two gradients, and two weights turned
}

TEST_CASE("Windows of several threads keep weights turned each for itself") {
    using Weights = std::vector<Array<float>>;
    const auto trained = [](bool in_window) {
        const Net net = large_net(9);
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
