// Tests that the GPU's kernel table is complete, and that the caller gets an error of the module unchanged.
#include <algorithm>
#include <cstdlib>

#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/device/backend.hpp"
#include "tally/gpu/on_host.hpp"
#include "tally/kernels/kernel_slots.hpp"
#include "tally/memory/memory.hpp"

namespace tally::test {

using namespace detail;

// This test case must run first, because the other test cases select a device.
TEST_CASE("A device that the environment names is the one that is in use", "[alone]") {
    if (backend::name() == "simulated") TALLY_SKIP("another case has asked for the device");
    backend::select("cuda");
    setenv("TALLY_GPU_MODULE", "simulated", 0);
    CHECK(available(Device::cuda));
    CHECK(backend::name() == "simulated");
    backend::select("simulated");
    CHECK_THROWS_WITH(backend::select("cuda"), contains("'cuda' comes too late"));
}

TEMPLATE_TEST_CASE("GPU module: every slot of the table is filled", "", float, double) {
    const auto slots = slots_of(gpu::host_table<TestType>());
    CHECK(std::count(slots.begin(), slots.end(), AnyFunction(nullptr)) == 0);
}

TEST_CASE("GPU module: an error in a kernel throws at the next read only") {
    const auto logits = Array<float>::full({1, 3}, 1, Device::cuda);
    const Array<std::int32_t> labels({1}, {9}, Device::cuda);
    auto probabilities = Array<float>::empty({1, 3}, Device::cuda);
    auto total = Array<float>::empty({1}, Device::cuda), count = Array<float>::empty({1}, Device::cuda);
    kernels<float>(Device::cuda)
        .cross_entropy(logits.data(), labels.data(), LabelOptions{}, probabilities.raw(), total.raw(),
                       count.raw(), 1, 3);
    CHECK_THROWS_WITH(total.to(Device::cpu), contains("label 9 in row 0 is not one of the 3 classes"));
    CHECK(logits.to(Device::cpu).to_vector() == std::vector<float>{1, 1, 1});
}

TEST_CASE("GPU module: OutOfMemory in a kernel reaches the caller") {
    const auto logits = Array<float>::full({4, 3}, 1, Device::cuda);
    const Array<std::int32_t> labels({4}, {0, 1, 2, 0}, Device::cuda);
    auto probabilities = Array<float>::empty({4, 3}, Device::cuda);
    auto total = Array<float>::empty({1}, Device::cuda), count = Array<float>::empty({1}, Device::cuda);
    const auto call = [&] {
        kernels<float>(Device::cuda)
            .cross_entropy(logits.data(), labels.data(), LabelOptions{}, probabilities.raw(), total.raw(),
                           count.raw(), 4, 3);
    };
    const std::size_t in_use = memory::in_use(Device::cuda);
    memory::detail::fail_allocation(1);
    CHECK_THROWS_AS(call(), OutOfMemory);
    memory::detail::fail_allocation(0);
    CHECK(memory::in_use(Device::cuda) == in_use);
    call();
    CHECK(count.to(Device::cpu).to_vector() == std::vector<float>{4});
}

TEST_CASE("select: throws Error when another device is in use") {
    CHECK(available(Device::cuda));
    CHECK(backend::name() == "simulated");
    backend::select("simulated");
    CHECK_THROWS_WITH(backend::select("cuda"), contains("'cuda' comes too late"));
}

}  // namespace tally::test
