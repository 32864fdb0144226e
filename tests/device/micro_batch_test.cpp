// Tests automatic micro-batch sizes, cached gradients and exact batch norm on a device with its own memory.
#include "tally/train/micro_batch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/train/exact_batch_norm.hpp"
#include "tally/train/grad_cache.hpp"
#include "tally/train/image_layers.hpp"

namespace tally::test {
namespace {

// A network on a device, with data, an optimizer and a Window. The network may contain batch norm.
struct Net {
    explicit Net(Device device, bool normed = false) : sgd(on(model, device, normed), {.learning_rate = 1}) {
        x = Random(1).array<double>({32, 24}).to(device);
        target = Random(2).array<double>({32, 2}).to(device);
    }
    static std::vector<Tensor64> on(Sequential<double>& model, Device device, bool normed) {
        model.add(Linear<double>(24, 24, {1, 0}));
        if (normed) model.add(BatchNorm<double>(24));
        model.add(Tanh<double>());
        model.add(Dropout<double>(0.3, 2));
        model.add(Linear<double>(24, 2, {1, 3}));
        model.to(device);
        return model.parameters();
    }
    // `items` contains consecutive indices, so the result can share memory with x.
    Tensor64 input(const Items& items) const {
        return constant(x.slice_rows(items[0], items[0] + items.count()));
    }
    Loss<Array<double>> loss(const Tensor64& y, const Items& items) const {
        return mse(y, constant(target.slice_rows(items[0], items[0] + items.count())));
    }
    void fill(std::int64_t most) {
        for (const Items& micro : split(Items::in_order(32), most))
            window.add(loss(model(input(micro), window.begin_micro_batch(micro.count())), micro));
    }
    std::vector<double> numbers() {
        std::vector<double> all;
        for (const detail::Member<double>& member : detail::members(model)) {
            const Array<double>* const array = member.buffer      ? member.buffer
                                               : member.parameter ? &member.parameter.value()
                                                                  : nullptr;
            if (!array) continue;
            for (const double number : array->to_vector()) all.push_back(number);
        }
        return all;
    }

    Sequential<double> model;
    Sgd<double> sgd;
    Window<double> window{sgd, {.seed = 3}};
    Array<double> x, target;
};

double worst(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

std::vector<double> on_the_host(bool normed = false) {
    Net net(Device::cpu, normed);
    net.fill(32);
    net.window.finish();
    return net.numbers();
}

}  // namespace

TEST_CASE("MicroBatchSize: finds a size within a device's budget and within its real memory") {
    const auto wanted = on_the_host();
    const auto peak = [](std::int64_t most) {
        Net net(Device::cuda);
        memory::reset_peak(Device::cuda);
        net.fill(most);
        net.window.finish();
        return memory::peak(Device::cuda);
    };
    const std::size_t least = peak(1), whole = peak(32);
    REQUIRE(least + least / 4 < whole);
    {
        const Budget budget(least + (whole - least) / 3, Device::cuda);
        Net net(Device::cuda);
        MicroBatchSize size(32);
        CHECK(size.update(net.window, 32, [&](std::int64_t most) { net.fill(most); }).stepped);
        CHECK(size.retries() > 0);
        CHECK(worst(net.numbers(), wanted) < 1e-12);
    }
    Net net(Device::cuda);
    MicroBatchSize size(32);
    const std::size_t in_use = memory::in_use(Device::cuda);
    size.update(net.window, 32, [&](std::int64_t most) {
        CHECK(memory::in_use(Device::cuda) == in_use);
        net.fill(most);
        if (most > 5) Array<float>::empty({1 << 20, 1 << 20, 64}, Device::cuda);  // 256 TiB never fit
    });
    CHECK(size.now() == 4);
    CHECK(size.retries() == 3);
    CHECK(worst(net.numbers(), wanted) < 1e-12);
}

TEST_CASE("add_with_exact_batch_norm, add_cached: equal the full batch on a device") {
    Net exact(Device::cuda, true);
    add_with_exact_batch_norm<double>(
        exact.window, exact.model, split(Items::in_order(32), 5),
        [&](const Items& items) { return exact.input(items); },
        [&](const Tensor64& y, const Items& items) { return exact.loss(y, items); });
    exact.window.finish();
    CHECK(worst(exact.numbers(), on_the_host(true)) < 1e-12);

    const auto contrasted = [](Device device, std::int64_t most) {
        Net net(device);
        add_cached<double>(
            net.window, split(Items::in_order(32), most),
            {[&](const Items& items, ForwardPass& pass) { return net.model(net.input(items), pass); },
             [&](const Items& items, ForwardPass&) {
                 return constant(net.target.slice_rows(items[0], items[0] + items.count()));
             }},
            [](const auto& r) { return info_nce(r[0], r[1]); });
        net.window.finish();
        return net.numbers();
    };
    CHECK(worst(contrasted(Device::cuda, 6), contrasted(Device::cpu, 32)) < 1e-12);
}

}  // namespace tally::test
