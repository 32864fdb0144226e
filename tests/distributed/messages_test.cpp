// Counts the messages of sums in rank order. Compares the counts with predictions of bench/scaling and with
// the statistics of the library.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "bench/scaling/collectives.hpp"
#include "catch.hpp"
#include "distributed/counted_sends.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

// Returns the messages and bytes that bench/scaling predicts for a sum of arrays of `bytes` bytes.
CountedSends of_the_study(std::size_t bytes) {
    const scaling::Reduced sum =
        scaling::all_reduce(scaling::AllReduce::rank_order, std::vector<double>(ranks(), 0.0),
                            static_cast<double>(bytes), {1, 1});
    return {static_cast<std::uint64_t>(sum.messages), static_cast<std::uint64_t>(std::llround(sum.bytes))};
}

// Adds a number of each process, and returns the sum.
std::uint64_t of_all(std::uint64_t mine) {
    std::uint64_t sum = 0;
    for (const std::string& one : world().all_gather("a number of all", std::to_string(mine)))
        sum += std::stoull(one);
    return sum;
}
CountedSends of_all(const CountedSends& mine) { return {of_all(mine.messages), of_all(mine.bytes)}; }

// Returns how many messages and bytes this process sends for one sum, and checks the library's counters.
template <class S> CountedSends sends_of_a_sum(std::size_t size) {
    std::vector<S> numbers(size, S(1)), scratch(size + ranks());
    world().all_gather("a sum of " + std::to_string(size));
    const CountedSends before = counted_sends();
    const detail::CommStats counters = world().sent();
    world().template sum<S>(ProcessGroup::AllReduce::rank_order, numbers, scratch);
    const CountedSends sends = counted_sends() - before;
    CHECK(sends == CountedSends{world().sent().messages - counters.messages,
                                world().sent().sum_bytes - counters.sum_bytes});
    CHECK(std::all_of(numbers.begin(), numbers.end(), [](S n) { return n == static_cast<S>(ranks()); }));
    return sends;
}

template <class S> void check_sends(std::size_t size) {
    CAPTURE(size, sizeof(S), ranks());
    const CountedSends mine = sends_of_a_sum<S>(size), study = of_the_study(size * sizeof(S));
    CHECK(of_all(mine) == study);
    if (size % ranks() == 0)  // all shares are equal, so all processes send the same amount
        CHECK(mine == CountedSends{study.messages / ranks(), study.bytes / ranks()});
    else
        CHECK(mine.messages == study.messages / ranks());
}

}  // namespace

TEST_CASE(
    "ProcessGroup::AllReduce::rank_order: a sum sends the study's messages and bytes, on each process and in "
    "total") {
    const std::uint64_t seed = common_seed("sizes of sums");
    Random r(seed);
    CAPTURE(seed);
    for (int i = 0; i < 60; ++i) {
        check_sends<float>(ranks() * static_cast<std::size_t>(r.whole(1, 400)));
        check_sends<float>(ranks() + static_cast<std::size_t>(r.whole(0, 400)));
        check_sends<double>(ranks() + static_cast<std::size_t>(r.whole(0, 400)));
    }
}

TEST_CASE(
    "ProcessGroup::AllReduce::rank_order: processes without a share of few numbers send and receive "
    "nothing") {
    for (std::size_t size = 1; size < ranks(); ++size) {
        CAPTURE(size, ranks());
        const CountedSends all = of_all(sends_of_a_sum<float>(size));
        CHECK(all == CountedSends{2 * size * (ranks() - 1), 2 * size * (ranks() - 1) * sizeof(float)});
    }
}

TEST_CASE("Window: each bucket sends the messages of one sum, for any number of micro-batches") {
    Random r(common_seed("windows"));
    for (int i = 0; i < 12; ++i) {
        const std::int64_t in = r.whole(1, 30), out = r.whole(1, 30);
        const auto numbers = static_cast<std::size_t>(in * out + out);
        const auto bucket = static_cast<std::size_t>(r.whole(static_cast<std::int64_t>(ranks()), 300));
        CAPTURE(in, out, bucket, ranks());
        Linear<float> model(in, out, {.seed = 1});
        Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
        DataParallel<float> across(world(), {.bucket = bucket});
        Window<float> window(sgd, {}, &across);
        const CountedSends before = counted_sends();
        const detail::CommStats counters = world().sent();
        for (std::int64_t micro = r.whole(1, 3); micro-- > 0;)
            window.add(mse(model(constant(Array<float>::full({2, in}, 1))),
                           constant(Array<float>::zeros({2, out}))));
        CHECK(counted_sends() == before);
        window.finish();
        CountedSends expected;
        for (std::size_t left = numbers; left > 0; left -= std::min(left, bucket)) {
            const std::size_t size = std::min(left, bucket);
            const CountedSends one = of_the_study(size * sizeof(float));
            expected.messages += size < ranks() ? 2 * size * (ranks() - 1) : one.messages;
            expected.bytes += one.bytes;
        }
        CHECK(of_all(world().sent().messages - counters.messages) == expected.messages);
        CHECK(of_all(world().sent().sum_bytes - counters.sum_bytes) == expected.bytes);
    }
}

}  // namespace tally::test
