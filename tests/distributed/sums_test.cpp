// Tests the order of additions in all_reduce(), its error bound, and the number of sent bytes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"

namespace tally::test {

namespace {

template <class S> bool same(S a, S b) {
    return std::memcmp(&a, &b, sizeof(S)) == 0 || (std::isnan(a) && std::isnan(b));
}

// Generates an array of random numbers for each rank. Some arrays also contain special values such as NaN.
template <class S> std::vector<Array<S>> random_operands(Random& r, const Shape& shape) {
    constexpr S special[] = {S(0), S(-0.0), std::numeric_limits<S>::infinity(),
                             std::numeric_limits<S>::denorm_min(), std::numeric_limits<S>::quiet_NaN()};
    const bool any = r.whole(0, 3) == 0;
    std::vector<Array<S>> all;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
        Array<S> numbers = r.array<S>(shape);
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            S& number = numbers.writable()[i];
            number = std::ldexp(number, static_cast<int>(r.whole(-30, 30)));
            if (any && r.whole(0, 9) == 0) number = special[r.whole(0, 4)];
        }
        all.push_back(numbers);
    }
    return all;
}

template <class S> void check_sums(std::uint64_t seed) {
    Random r(seed);
    const Shape shape = r.shape(3, 12);
    const std::vector<Array<S>> all = random_operands<S>(r, shape);
    CAPTURE(seed, shape.size(), world().size());
    const std::uint64_t before = numbers_of_all();
    const Array<S> ordered = world().all_reduce(all[me()], ProcessGroup::AllReduce::rank_order);
    CHECK(numbers_of_all() - before == 2 * (ranks() - 1) * shape.size() * sizeof(S));
    const Array<S> fast = world().all_reduce(all[me()], ProcessGroup::AllReduce::fast);
    REQUIRE(ordered.shape() == shape);
    bool bits = true, near = true;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        S sum = all[0].data()[i];
        long double exact = sum, size = std::abs(sum);
        for (std::size_t rank = 1; rank < ranks(); ++rank) {
            sum += all[rank].data()[i];
            exact += all[rank].data()[i];
            size += std::abs(all[rank].data()[i]);
        }
        bits = bits && same(sum, ordered.data()[i]);
        // The bound of the error, n u / (1 - n u) times `size`, is valid for every order of additions.
        const long double u = std::numeric_limits<S>::epsilon() / 2,
                          n = static_cast<long double>(ranks() - 1);
        const long double bound = n * u / (1 - n * u) * size + std::numeric_limits<S>::denorm_min();
        near = near &&
               (std::isfinite(exact) ? std::abs(fast.data()[i] - exact) <= bound : same(fast.data()[i], sum));
    }
    CHECK(bits);
    CHECK(near);
    CHECK(same_everywhere(fast));
}

}  // namespace

TEST_CASE("all_reduce: rank_order has the bits of the rank order, and sends 2(P-1) times the bytes") {
    const std::uint64_t seed = common_seed("sums");
    for (std::uint64_t i = 0; i < 100; ++i) {
        check_sums<float>(seed + i);
        check_sums<double>(seed + i);
    }
}

TEST_CASE("all_reduce: different shapes or algorithms throw an Error on all processes") {
    if (ranks() == 1) return;
    const bool last = me() + 1 == ranks();
    const std::string other = message_of([&] { world().all_reduce(Array<float>::zeros({last ? 3 : 2})); });
    CHECK_THAT(other, contains("rank 0 calls all_reduce of float (2), rank_order"));
    CHECK_THAT(other, contains("rank " + std::to_string(ranks() - 1) +
                               " calls all_reduce of float (3), rank_order"));
    const std::string way = message_of([&] {
        world().all_reduce(Array<double>::zeros({2}),
                           last ? ProcessGroup::AllReduce::fast : ProcessGroup::AllReduce::rank_order);
    });
    CHECK_THAT(way, contains("calls all_reduce of double (2), fast"));
    CHECK(world().all_reduce(Array<float>({1, 2})).to_vector()[1] ==
          2.0F * static_cast<float>(ranks()));  // the next call succeeds
}

}  // namespace tally::test
