// Micro-batches of few rows, for which a window keeps weights turned: the same bits as without, and nothing stays
// behind.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/shape.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "tally/train/captured_window.hpp"
#include "tally/train/window.hpp"

namespace tally::test {

namespace {

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

    Loss<Array<float>> loss(std::int64_t from, std::int64_t to) const {
        Tensor y = linear_relu(Tensor(x.leading(from, to)), parameters[0], parameters[1]);
        const auto layers = [this](const Tensor& h) {
            return linear(matmul(h, detach(frozen)), parameters[2], parameters[3]);
        };
        y = checkpointed ? checkpoint(layers, y) : layers(y);
        if (twice) y = linear(y, parameters[2]) + sum(parameters[2]);
        return cross_entropy(linear(y, parameters[4], parameters[5]), labels.leading(from, to));
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

std::string differing(const Net& a, const Net& b, bool gradients) {
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        const Tensor &p = a.parameters[i], &q = b.parameters[i];
        if (!(gradients ? same_bits(p.grad(), q.grad()) : same_bits(p.value(), q.value())))
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
            bool refilled = false;
            for (std::size_t i = 1; i < at.size(); ++i) {
                window.add(net.loss(at[i - 1], at[i]));
                (twin.loss(at[i - 1], at[i]).sum / total).backward();
                if (r.whole(0, 5) > 0) continue;
                const auto numbers = r.array<float>(net.frozen.shape(), -0.1, 0.1);
                for (const Net* each : {&net, &twin}) refill(each->frozen.value(), numbers);
                refilled = true;
            }
            const Net full = net;
            full.loss(0, net.rows()).mean().backward();
            CHECK(differing(net, twin, true) == "");
            if (!net.twice && !refilled) CHECK(differing(full, net, true) == "");
            window.finish();
            other.step();
            CHECK(differing(net, twin, false) == "");
            other.zero_grad();
        }
    }
}

TEST_CASE(
    "What a window keeps turned stands in the ledger, and goes with finish(), discard() and the window") {
    const Net net = large_net(4);
    Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
    const std::size_t without = [&] {
        Window<float> window(sgd, {.total = 8});
        add_rows(window, net, 1);
        const std::size_t in_use = memory::in_use();
        add_rows(window, net, 3);
        CHECK(memory::in_use() == in_use + net.turned_bytes());
        window.discard();
        return memory::in_use();
    }();
    for (const bool finishes : {true, false}) {
        Window<float> window(sgd, {.total = 8});
        add_rows(window, net, 8);
        const void* const place = net.parameters[2].value().data();
        finishes ? void(window.finish()) : window.discard();
        CHECK(memory::in_use() == without);
        CHECK(net.parameters[2].value().data() == place);  // stepped where it lies
    }
    CHECK(memory::in_use() < without);
}

TEST_CASE("Windows of several threads keep weights turned each for itself") {
    using Weights = std::vector<Array<float>>;
    const auto trained = [](bool in_window) {
        const Net net = large_net(9);
        Sgd<float> sgd(net.parameters, {.learning_rate = 0.1});
        for (int update = 0; update < 3; ++update) {
            if (in_window) {
                Window<float> window(sgd, {.total = 8});
                add_rows(window, net, 8);
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
