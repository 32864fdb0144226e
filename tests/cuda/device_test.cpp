// What only a device can show: arrays there and back, launches that do not wait, errors that arrive at the
// next reading, and the CPU's results.
#include "autograd/peer.hpp"
#include "autograd/tensor.hpp"
#include "catch.hpp"

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
    const std::uint64_t before = waits(Device::cuda);
    k.sum(x.data(), {y.writable(), Write::set}, {64, 65, 1});
    CHECK(waits(Device::cuda) == before);
    CHECK(y.to_vector() == std::vector<float>(64, 130));
    CHECK(waits(Device::cuda) == before + 1);
}

}  // namespace tally::test
