// Tests that reports show the memory of a device, but do not wait for kernels of the device.
#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/tools/profile.hpp"
#include "tally/tools/saved_values.hpp"
#include "tally/tools/timeline.hpp"

namespace tally::test {

TEST_CASE("reports: read a device's memory account without waiting") {
    const Tensor w = parameter(Array<float>::full({64, 64}, 0.01f, Device::cuda));
    const auto saved = [] {
        return memory::report(Device::cuda).in_use_by[static_cast<std::size_t>(MemoryClass::saved)];
    };
    memory::reset_peak(Device::cuda);
    const std::size_t before = saved();
    const std::uint64_t waited = detail::waits(Device::cuda);
    const SavedValues kept;
    const Profile profile(Device::cuda);
    const Timeline timeline(Device::cuda);
    const Tensor loss = sum(tanh(matmul(w, relu(w * 2))));
    CHECK(kept.bytes() > 0);
    CHECK(kept.bytes() == saved() - before);
    loss.backward();
    CHECK(detail::waits(Device::cuda) == waited);
    CHECK(saved() == before);
    CHECK(kept.entries().empty());
    CHECK(timeline.events() == 10);
    CHECK(timeline.peak().bytes == memory::peak(Device::cuda));
    CHECK(timeline.samples().back().in_use == memory::in_use(Device::cuda));
    CHECK(profile.rows().size() == 5);
    CHECK(profile.chrome_trace().find("\"temporary\"") != std::string::npos);
}

}  // namespace tally::test
