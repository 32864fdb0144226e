// Tests that a convolution processes images in groups, and that the size of the groups changes no bit of the
// result.
#include "tally/array/convolution.hpp"

#include <cstdint>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"

namespace tally::test {

namespace {

detail::ConvPlan planned(const Shape& x, const Shape& weight, Device device) {
    return detail::plan_conv(x, weight, nullptr, 1, 0, device);
}

}  // namespace

TEST_CASE("convolution: a group has as many images as the buffers for columns and results allow") {
    CHECK(planned({1 << 20, 8, 1, 1}, {2048, 8, 1, 1}, Device::cuda).images_per_chunk == 2048);
    CHECK(planned({1 << 22, 1, 1, 1}, {512, 1, 1, 1}, Device::cuda).images_per_chunk == 8192);
    CHECK(planned({1 << 20, 2048, 1, 1}, {8, 2048, 1, 1}, Device::cuda).images_per_chunk == 2048);
    CHECK(planned({1000, 4, 2, 2}, {32, 4, 1, 1}, Device::cpu).images_per_chunk == 64);
    CHECK(planned({5, 4, 2, 2}, {32, 4, 1, 1}, Device::cpu).images_per_chunk == 5);
    CHECK(planned({5, 1, 200, 200}, {3, 1, 1, 1}, Device::cpu).images_per_chunk ==
          1);  // a single image exceeds the limit
    CHECK(planned({0, 4, 2, 2}, {32, 4, 1, 1}, Device::cpu).images_per_chunk == 1);
    CHECK(planned({7, 0, 2, 2}, {0, 0, 1, 1}, Device::cpu).images_per_chunk == 7);
}

TEST_CASE("convolution: many output channels need little memory besides the result") {
    const detail::ConvPlan plan = planned({4096, 1, 1, 1}, {256, 1, 1, 1}, Device::cpu);
    const std::size_t before = memory::in_use();
    const detail::Convolution<float> made(plan, detail::kernels<float>(Device::cpu), Device::cpu);
    CHECK(memory::in_use() - before < 128 * KiB);
}

TEST_CASE("convolution: the group size changes no bit") {
    Random random(14);
    for (const std::int64_t channels : {1, 8, 60}) {
        const auto x = random.array<float>({300, 2, 3, 3}), weight = random.array<float>({channels, 2, 2, 2}),
                   dy = random.array<float>({300, channels, 2, 2});
        const auto of_groups = [&](std::size_t group) {
            detail::ConvPlan plan = planned(x.shape(), weight.shape(), Device::cpu);
            CHECK(plan.images_per_chunk > 1);
            if (group) plan.images_per_chunk = group;
            detail::Convolution<float> convolution(plan, detail::kernels<float>(Device::cpu), Device::cpu);
            std::vector<Array<float>> made{dy.clone(), weight.clone(), x.clone()};
            convolution.forward(x.data(), weight.data(), {made[0].raw(), Write::add});
            convolution.grad_weight(dy.data(), x.data(), {made[1].raw(), Write::add});
            convolution.grad_x(dy.data(), weight.data(), {made[2].raw(), Write::add});
            return made;
        };
        const std::vector<Array<float>> as_planned = of_groups(0);
        for (const std::size_t group : std::vector<std::size_t>{1, 7, 256, 300}) {
            const std::vector<Array<float>> other = of_groups(group);
            for (std::size_t i = 0; i < other.size(); ++i) CHECK(same_bits(other[i], as_planned[i]));
        }
    }
}

}  // namespace tally::test
