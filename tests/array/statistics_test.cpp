// Tests that RunningStatistics::commit() changes the mean and the variance, or throws and changes nothing.
#include "tally/array/statistics.hpp"

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/memory/memory.hpp"

namespace tally::test {

TEST_CASE("RunningStatistics: mean and variance stay when a commit runs out of memory") {
    const RunningStatistics<double>::Batch batch{{1, 2, 3}, {4, 5, 6}, 10};
    RunningStatistics<double> running(3);
    running.commit(batch);
    const Array<double> mean = running.mean.clone(), variance = running.variance.clone();
    int failures = 0;
    for (std::uint64_t nth = 1;; ++nth) {
        INFO("allocation " << nth);
        memory::detail::fail_allocation(nth);
        bool failed = false;
        try {
            running.commit(batch);
        } catch (const OutOfMemory&) {
            failed = true;
        }
        memory::detail::fail_allocation(0);
        if (!failed) break;
        ++failures;
        CHECK(same_bits(running.mean, mean));
        CHECK(same_bits(running.variance, variance));
    }
    CHECK(failures > 1);
    RunningStatistics<double> undisturbed(3);
    undisturbed.commit(batch);
    undisturbed.commit(batch);
    CHECK(same_bits(running.mean, undisturbed.mean));
    CHECK(same_bits(running.variance, undisturbed.variance));
}

}  // namespace tally::test
