// Tests Items and rows(). Each epoch contains every item once, in an order that seed and epoch determine.
#include "tally/train/batches.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "catch.hpp"
#include "tally/base/error.hpp"

using namespace tally;
using tally::test::contains;

namespace {

std::vector<std::int64_t> numbers(const Items& items) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < items.count(); ++i) all.push_back(items[i]);
    return all;
}

std::vector<std::int64_t> counts(const std::vector<Items>& parts) {
    std::vector<std::int64_t> all;
    for (const Items& part : parts) all.push_back(part.count());
    return all;
}

std::vector<std::int64_t> first(std::int64_t count) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

}  // namespace

TEST_CASE("split: the parts visit every item of an epoch once, for every order and size") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 generator(seed);
    for (int round = 0; round < 100; ++round) {
        const std::int64_t count = generator() % 200, batch = 1 + generator() % 50,
                           micro = 1 + generator() % 20;
        INFO(count << " items, batches of " << batch << ", micro-batches of " << micro);
        CHECK(numbers(Items::in_order(count)) == first(count));
        for (const Items& epoch : {Items::in_order(count), Items::shuffled(count, seed, round)}) {
            std::vector<std::int64_t> visited;
            for (const Items& some : split(epoch, batch)) {
                CHECK(some.count() <= batch);
                for (const Items& few : split(some, micro)) {
                    CHECK((few.count() > 0 && few.count() <= micro));
                    for (const std::int64_t item : numbers(few)) visited.push_back(item);
                }
            }
            CHECK(visited == numbers(epoch));  // the parts have the order of the epoch
            std::sort(visited.begin(), visited.end());
            CHECK(visited == first(count));
        }
    }
}

TEST_CASE("Items::shuffled: the order is a function of the seed and the epoch only") {
    const std::vector<std::int64_t> order = numbers(Items::shuffled(100, 7, 3));
    (void)Items::shuffled(50, 7, 2);
    CHECK(numbers(Items::shuffled(100, 7, 3)) == order);
    std::set<std::vector<std::int64_t>> different{first(100)};
    for (const std::uint64_t seed : {7u, 8u})
        for (std::int64_t epoch = 0; epoch < 10; ++epoch)
            different.insert(numbers(Items::shuffled(100, seed, epoch)));
    CHECK(different.size() == 21);
}

TEST_CASE("Items::shuffled: every item is first equally often") {
    std::vector<int> times(5);
    for (std::int64_t epoch = 0; epoch < 5000; ++epoch)
        ++times[static_cast<std::size_t>(Items::shuffled(5, 1, epoch)[0])];
    // Each count may deviate from 1000 by five standard deviations of 28.3.
    for (const int each : times) CHECK(std::abs(each - 1000) < 5 * 28.3);
}

TEST_CASE("split: only the last part is smaller, and it has the remaining items") {
    const std::vector<Items> micro_batches = split(Items::in_order(60000), 16),
                             batches = split(Items::in_order(60000), 64);
    CHECK(micro_batches.size() == 60000 / 16);
    CHECK(batches.size() == (60000 + 63) / 64);
    CHECK(batches.back().count() == 60000 % 64);
    CHECK(split(batches.back(), 16).size() == micro_batches.size() % 4);
    CHECK(counts(split(Items::in_order(10), 4)) == std::vector<std::int64_t>{4, 4, 2});
    CHECK(counts(split(Items::in_order(8), 4)) == std::vector<std::int64_t>{4, 4});
    CHECK(counts(split(Items::in_order(3), INT64_MAX)) == std::vector<std::int64_t>{3});
    CHECK(split(Items::in_order(0), 4).empty());
}

TEST_CASE("split: parts have the given sizes, which may be 0") {
    const std::vector<Items> parts = split(Items::shuffled(6, 1, 0), {4, 0, 2});
    CHECK(counts(parts) == std::vector<std::int64_t>{4, 0, 2});
    std::vector<std::int64_t> joined = numbers(parts[0]);
    for (const std::int64_t item : numbers(parts[2])) joined.push_back(item);
    CHECK(joined == numbers(Items::shuffled(6, 1, 0)));
    CHECK_THROWS_WITH(split(Items::in_order(6), {4, 1}), "[split] the parts hold 5 of 6 items");
    CHECK_THROWS_WITH(split(Items::in_order(6), {4, 3}), "[split] after 4 of 6 items there are no 3 more");
    CHECK_THROWS_WITH(split(Items::in_order(6), {-1, 7}), "[split] a part cannot have -1 items");
    CHECK_THROWS_WITH(split(Items::in_order(6), 0), "[split] a part cannot have 0 items");
}

TEST_CASE("Items: invalid ranges and epochs throw an Error") {
    CHECK_THROWS_WITH(Items::in_order(-1), contains("[items] from 0 to -1"));
    CHECK_THROWS_WITH(Items(-1, 3), contains("[items] from -1 to 3"));
    CHECK_THROWS_WITH(Items::shuffled(-1, 0, 0), contains("[Items::shuffled] -1 items in epoch 0"));
    CHECK_THROWS_WITH(Items::shuffled(3, 0, -1), contains("[Items::shuffled] 3 items in epoch -1"));
    CHECK_THROWS_WITH(Items::in_order(5).part(2, 6), "[items] 2 to 6 are not within 5");
    CHECK_THROWS_WITH(Items::in_order(5).part(-1, 2), contains("not within 5"));
    CHECK_THROWS_WITH(Items::in_order(5).part(3, 2), contains("not within 5"));
}

TEMPLATE_TEST_CASE("rows: the result has the rows of the items in order", "", float, double, std::int32_t) {
    using S = TestType;
    const Array<S> table({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31}), column({4}, {5, 6, 7, 8});
    const Items picked(std::vector<std::int32_t>{2, 0, 2});
    CHECK(rows(table, picked).shape() == Shape{3, 2});
    CHECK(rows(table, picked).to_vector() == std::vector<S>{20, 21, 0, 1, 20, 21});
    CHECK(rows(column, picked).to_vector() == std::vector<S>{7, 5, 7});
    CHECK(rows(table, Items::in_order(4).part(1, 3)).to_vector() == std::vector<S>{10, 11, 20, 21});
    CHECK(rows(table, picked.part(1, 2)).to_vector() == std::vector<S>{0, 1});
    CHECK(rows(table, Items(std::vector<std::int32_t>{})).shape() == Shape{0, 2});
    CHECK(rows(table, Items::in_order(0)).shape() == Shape{0, 2});
}

TEST_CASE("rows: consecutive rows are not copied, and rows in another order are") {
    const Array<float> table({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
    for (const Items& each : split(Items::in_order(4), 3))
        CHECK(rows(table, each).storage() == table.storage());
    CHECK(rows(table, Items::shuffled(4, 1, 0)).storage() != table.storage());
}

TEST_CASE("rows: items outside the array throw an Error") {
    const Array<float> table({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
    CHECK_THROWS_WITH(rows(table, Items::in_order(5)), contains("rows 0 to 5 are not within (4, 2)"));
    CHECK_THROWS_WITH(rows(table, Items(std::vector<std::int32_t>{1, 4})), "[rows] row 4 is outside (4, 2)");
    CHECK_THROWS_WITH(rows(table, Items(std::vector<std::int32_t>{-1})), "[rows] row -1 is outside (4, 2)");
    CHECK_THROWS_WITH(rows(Array<float>(Shape{}, {1}), Items(std::vector<std::int32_t>{0})),
                      contains("a single number has no rows"));
    CHECK_THROWS_AS(rows(Array<float>(), Items::in_order(1)), Error);
}
