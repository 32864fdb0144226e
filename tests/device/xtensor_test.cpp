// Tests that a view of an array on a device throws an Error, because xtensor can read only host memory.
#include "tally/xtensor.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"

namespace tally::test {

TEST_CASE("xtensor: throws Error when the array is on a device") {
    Array<float> x = Array<float>({2, 3}, {1, 2, 3, 4, 5, 6}).to(Device::cuda);
    const std::uint32_t version = detail::version_of(x);
    CHECK_THROWS_WITH(as_xtensor(x),
                      "[as_xtensor] the array of (2, 3) is on cuda, where xtensor cannot reach it: "
                      "bring it back with to(Device::cpu)");
    CHECK_THROWS_WITH(as_writable_xtensor(x),
                      contains("[as_writable_xtensor] the array of (2, 3) is on cuda"));
    CHECK(detail::version_of(x) == version);
    CHECK(as_xtensor(x.to(Device::cpu))(1, 2) == 6);
    const Tensor w = parameter(x);
    const auto same = [](const Array<float>& in) { return in.clone(); };
    const auto ones = [](GradInputs<Array<float>> to, const Array<float>&, const Array<float>&,
                         const Array<float>&) {
        accumulate_into(to.into(0), xt::ones<float>({2, 3}));
    };
    const Tensor loss = sum(custom("ones", same, ones, w));
    CHECK_THROWS_WITH(loss.backward(), contains("[accumulate_into] the array of (2, 3) is on cuda"));
}

}  // namespace tally::test
