// Tests copies between host and device, asynchronous kernels and their delayed errors.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/operations.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/train/average.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/optimizer.hpp"

namespace tally::test {

namespace {

// Returns how often the host waits for the device while f runs.
template <class F> std::uint64_t waits_in(F f) {
    const std::uint64_t before = detail::waits(Device::cuda);
    f();
    return detail::waits(Device::cuda) - before;
}

Array<float> counted_up(std::int64_t n) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<float>(i));
    return Array<float>({n}, numbers);
}

}  // namespace

TEST_CASE("Array::to: the numbers survive a round trip to the device") {
    for (const std::int64_t n : {0, 1, 3, 1025, 100000}) {
        const Array<float> x = counted_up(n);
        CHECK(x.to(Device::cuda).device() == Device::cuda);
        CHECK(x.to(Device::cuda).to(Device::cpu).to_vector() == x.to_vector());
        CHECK(x.to(Device::cuda).clone().to_vector() == x.to_vector());
    }
    const auto there = counted_up(3).to(Device::cuda);
    CHECK_THROWS_WITH(there.span(),
                      "[span] the array is on cuda; read it with to(Device::cpu) or to_vector()");
}

TEST_CASE("Array::to: an upload does not wait, and its source can be freed at once") {
    // Five arrays of 12 MB are together larger than the pinned memory for copies.
    constexpr std::int64_t many = 3'000'000;
    std::vector<Array<float>> there;
    for (int i = 0; i < 5; ++i) there.push_back(counted_up(many).to(Device::cuda));
    const std::vector<float> want = counted_up(many).to_vector();
    for (const Array<float>& x : there) CHECK(x.to_vector() == want);
    CHECK(waits_in([] { counted_up(1000).to(Device::cuda); }) == 0);
}

TEST_CASE("device: only reading a value waits, and it waits once") {
    const Array<float> x = Array<float>::full({64, 65}, 2, Device::cuda);
    Tensor y;
    CHECK(waits_in([&] { y = sum(constant(x), {1}); }) == 0);
    CHECK(waits_in([&] { CHECK(y.value().to_vector() == std::vector<float>(64, 130)); }) == 1);
}

TEST_CASE("device: a group of micro-batches runs without waiting and without new memory") {
    Random random(5);
    const Array<float> x = random.array<float>({64, 20});
    const Array<std::int32_t> labels = random.integers({64}, 0, 9);
    const std::vector<Tensor> w{
        parameter(random.array<float>({20, 32})), parameter(random.array<float>({32})),
        parameter(random.array<float>({32, 10})), parameter(random.array<float>({10}))};
    const auto update = [&] {
        for (std::int64_t from = 0; from < 64; from += 16) {
            const Tensor hidden = relu(linear(Tensor(x.slice_rows(from, from + 16)), w[0], w[1]));
            const Tensor logits = linear(hidden, w[2], w[3]);
            (cross_entropy(logits, labels.slice_rows(from, from + 16)).sum / 64).backward();
        }
        sgd_step(w, 0.1);
        for (const Tensor& each : w) each.zero_grad();
    };
    update();
    const memory::Report before = memory::report(Device::cuda);
    CHECK(waits_in([&] {
              for (int i = 0; i < 3; ++i) update();
          }) == 0);
    const memory::Report after = memory::report(Device::cuda);
    CHECK(after.in_use == before.in_use);
    if (caching) CHECK(after.allocations - before.allocations == after.reused - before.reused);
    CHECK(after.allocations > before.allocations);
}

TEST_CASE("Adam, clip_grad_norm: a step does not wait and has the CPU's bits, and clipping waits once") {
    const auto train = [](Device device) {
        const Tensor w = parameter(randn<float>({300}, {.seed = 1, .stream = 1}).value().to(device)),
                     b = parameter(randn<float>({7}, {.seed = 1, .stream = 2}).value().to(device));
        Adam adam({w, b}, Adam<double>::Options{.learning_rate = 0.5, .weight_decay = 0.1});
        for (const Tensor& each : adam.parameters())
            each.backward(randn<float>(each.shape(), {.seed = 1, .stream = 3}).value().to(device));
        CHECK(waits_in([&] {
                  adam.step();
                  adam.step();
              }) == 0);
        const std::vector<float> stepped = w.value().to_vector();
        CHECK(waits_in([&] { clip_grad_norm(adam.parameters(), 0.5); }) == (device == Device::cuda ? 1 : 0));
        CHECK(std::abs(detail::grad_norm(adam.parameters()) - 0.5) < 1e-5);
        return stepped;
    };
    CHECK(train(Device::cuda) == train(Device::cpu));
}

TEST_CASE("Adam, MovingAverage: their state moves from device to device with the model") {
    const auto train = [](Device device) {
        Linear<float> model(30, 7, {1, 1});
        model.to(device);
        Adam adam(model.parameters(), Adam<double>::Options{.learning_rate = 0.5, .weight_decay = 0.1});
        MovingAverage<float> average(model.parameters());
        for (std::uint64_t update = 0; update < 3; ++update) {
            if (update > 0) model.to(update == 1 ? Device::cpu : device);
            for (const Tensor& each : adam.parameters()) {
                each.zero_grad();
                each.backward(randn<float>(each.shape(), {.seed = update, .stream = 3})
                                  .value()
                                  .to(each.value().device()));
            }
            adam.step();
            average.update();
        }
        average.swap();
        std::vector<std::vector<float>> numbers;
        for (const Tensor& each : adam.parameters()) numbers.push_back(each.value().to_vector());
        average.swap();
        for (const Tensor& each : adam.parameters()) numbers.push_back(each.value().to_vector());
        return numbers;
    };
    CHECK(train(Device::cuda) == train(Device::cpu));
}

TEST_CASE("optimizers: throw Error and step nothing when the parameters are on two devices") {
    Sequential<float> model{Linear<float>(3, 2, {1, 1}), Linear<float>(2, 1, {1, 2})};
    const std::vector<Tensor> all = model.parameters();
    Sgd sgd(all, {.learning_rate = 1});
    MovingAverage<float> average(all);
    Linear<float> second(2, 1, {1, 3});
    second.weight = all[2];
    second.bias = all[3];
    second.to(Device::cuda);
    std::vector<std::vector<float>> before;
    for (const Tensor& each : all) {
        before.push_back(each.value().to_vector());
        each.backward(Array<float>::full(each.shape(), 1, each.value().device()));
    }
    CHECK_THROWS_WITH(sgd.step(), "[SGD] operands are on different devices: cpu and cuda");
    CHECK_THROWS_WITH(average.update(), "[average] operands are on different devices: cpu and cuda");
    CHECK_THROWS_WITH(detail::measure_gradients(all),
                      "[window] operands are on different devices: cpu and cuda");
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].value().to_vector() == before[i]);
}

TEST_CASE("Module::to: the model stays where it is when the device runs out of memory") {
    Linear<float> model(30, 7, {1, 1});
    const std::vector<Tensor> all = model.parameters();
    for (const Tensor& each : all) each.backward(Array<float>::full(each.shape(), 1));
    for (std::uint64_t n = 1; n <= 2; ++n) {
        memory::detail::fail_allocation(n);
        CHECK_THROWS_AS(model.to(Device::cuda), OutOfMemory);
        memory::detail::fail_allocation(0);
        for (const Tensor& each : all) {
            CHECK(each.value().device() == Device::cpu);
            CHECK(each.has_grad());
        }
    }
}

TEST_CASE("cross_entropy: a wrong label on a device throws Error at the next read") {
    const Tensor logits(Array<float>::full({3, 4}, 1, Device::cuda));
    const Array<std::int32_t> labels({3}, {0, 7, 9}, Device::cuda);
    const auto loss = cross_entropy(logits, labels);
    CHECK_THROWS_WITH(loss.sum.item(), "[cross_entropy] label 7 in row 1 is not one of the 4 classes");
    CHECK_NOTHROW(logits.value().to_vector());  // an error is reported only once
}

TEST_CASE("every operation: throws Error with both devices when the operands are on two devices") {
    std::size_t tried = 0;
    for (const OperationCase<float>& operation : all_operations<float>()) {
        Random random(11);
        const Problem<float> problem = operation.draw(random);
        if (problem.inputs.size() < 2) continue;
        INFO(operation.name);
        for (std::size_t apart = 0; apart < problem.inputs.size(); ++apart) {
            std::vector<Tensor> xs;
            for (std::size_t i = 0; i < problem.inputs.size(); ++i)
                xs.push_back(parameter(problem.inputs[i].to(i == apart ? Device::cpu : Device::cuda)));
            const std::string message = message_of([&] { problem.f(xs); });
            CHECK_THAT(message, contains("different devices"));
            CHECK_THAT(message, contains("cpu"));
            CHECK_THAT(message, contains("cuda"));
            ++tried;
        }
    }
    CHECK(tried > 20);

    const Array<float> x = counted_up(6).to(Device::cuda).reshaped({3, 2});
    CHECK_THROWS_WITH(cross_entropy(Tensor(x), Array<std::int32_t>({3}, {0, 1, 0})),
                      "[cross_entropy] operands are on different devices: cuda and cpu");
    CHECK_THROWS_WITH(where(Array<std::int32_t>({1}, {1}), Tensor(x), Tensor(x)),
                      "[where] operands are on different devices: cuda and cpu");
    CHECK_THROWS_WITH(rows(Tensor(x), Array<std::int32_t>({1}, {1}, Device::cuda)),
                      "[rows] the indices must be on cpu, where they are checked; they are on cuda");
    const Tensor w = parameter(x);
    CHECK_THROWS_WITH((w * 2).backward(counted_up(6).reshaped({3, 2})), contains("on cuda"));
}

TEST_CASE("Dual: throws Error on a device other than the CPU") {
    const Array<Dual<double>> x({1}, {Dual<double>(1, 1)});
    CHECK_THROWS_WITH(exp(Var<Array<Dual<double>>>(x.to(Device::cuda))),
                      "[kernels] dual numbers are computed on the CPU only; use to(Device::cpu)");
}

TEST_CASE("device: arrays and memory report stay correct when an allocation fails") {
    const Array<float> kept = counted_up(5).to(Device::cuda);
    const memory::Report before = memory::report(Device::cuda);
    const std::string message = message_of([] { Array<float>::empty({1 << 20, 1 << 20}, Device::cuda); });
    CHECK_THAT(message, contains("4.0 TiB"));
    CHECK_THAT(message, contains("cuda"));
    const memory::Report after = memory::report(Device::cuda);
    CHECK(after.in_use == before.in_use);
    CHECK(after.peak == before.peak);
    CHECK(kept.to_vector() == counted_up(5).to_vector());
    CHECK(sum(constant(kept)).item() == 10);
}

TEST_CASE("set_budget: a device has its own budget", "[alone]") {
    memory::drop_cache(Device::cuda);
    if (memory::in_use(Device::cuda) != 0) TALLY_SKIP("another test holds arrays on the device");
    memory::set_budget(1 << 20, Device::cuda);
    {
        const Array<float> x = Array<float>::full({200'000}, 3, Device::cuda);
        CHECK_THROWS_AS(Array<float>::empty({100'000}, Device::cuda), OutOfMemory);
        CHECK(x.to_vector() == std::vector<float>(200'000, 3));
        CHECK(memory::report(Device::cuda).budget == 1 << 20);
        CHECK(memory::report(Device::cpu).budget == 0);
        const Tensor a(Array<float>::full({33, 20}, 1, Device::cuda)),
            b(Array<float>::full({20, 31}, 2, Device::cuda));
        CHECK(matmul(a, b).value().to_vector() ==
              std::vector<float>(33 * 31, 40));  // too large for the kernel that adds in order
    }
    memory::set_budget(0, Device::cuda);
}

}  // namespace tally::test
