// What only a device can show: arrays there and back, launches that do not wait, errors that arrive at the
// next reading, and the CPU's results.
#include <cmath>
#include <vector>

#include "autograd/peer.hpp"
#include "autograd/tensor.hpp"
#include "catch.hpp"
#include "gpu/waits.hpp"
#include "train/clip.hpp"
#include "train/optimizer.hpp"

namespace tally::test {

namespace {

[[maybe_unused]] const bool told = (
    why_not = [] { return peer::absent(); }, true);

}  // namespace

TEST_CASE("An array goes to the device and comes back") {
    const Array<float> x{1, 2, 3};
    CHECK(x.to(Device::cuda).to(Device::cpu).to_vector() == x.to_vector());
    CHECK_THROWS_WITH(x.to(Device::cuda).span(), contains("the array is on cuda"));
}

TEST_CASE("Kernels are launched without waiting and reading waits once") {
    const auto x = Array<float>::full({64, 65}, 2, Device::cuda);
    auto y = Array<float>::empty({64}, Device::cuda);
    const auto& k = kernels<float>(Device::cuda);
    const std::uint64_t before = gpu::waits();
    k.sum(x.data(), {y.writable(), Write::set}, {64, 65, 1});
    CHECK(gpu::waits() == before);
    CHECK(y.to_vector() == std::vector<float>(64, 130));
    CHECK(gpu::waits() == before + 1);
}

TEST_CASE("An optimizer steps without waiting with the CPU's bits and a clip waits once") {
    const auto train = [](Device device) {
        const Tensor w = parameter(random_normal<float>({300}, 1, 1).to(device)),
                     b = parameter(random_normal<float>({7}, 1, 2).to(device));
        Adam adam({w, b}, AdamOptions{.learning_rate = 0.5, .weight_decay = 0.1});
        for (const Tensor& each : adam.parameters())
            each.backward(random_normal<float>(each.shape(), 1, 3).to(device));
        const std::uint64_t before = gpu::waits();
        adam.step();
        adam.step();
        CHECK(gpu::waits() == before);
        const std::vector<float> stepped = w.value().to_vector();
        const std::uint64_t later = gpu::waits();
        clip_grad_norm(adam.parameters(), 0.5);
        CHECK(gpu::waits() == later + (device == Device::cuda ? 1 : 0));
        CHECK(std::abs(grad_norm(adam.parameters()) - 0.5) < 1e-5);
        return stepped;
    };
    CHECK(train(Device::cuda) == train(Device::cpu));
}

}  // namespace tally::test
