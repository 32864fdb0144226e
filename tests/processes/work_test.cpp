// Work lists: each micro-batch once, whoever is fast or slow, and without one that does not come back.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "processes/common_folder.hpp"
#include "processes/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

// A model with dropout, and a batch of rows that is cut anyhow.
struct Drawn {
    Array<float> x, y;
    std::vector<Items> parts;
    std::uint64_t seed;
    double rate;

    explicit Drawn(Random& r, std::int64_t least = 1) {
        std::vector<std::int64_t> sizes;
        std::int64_t rows = 0;
        for (std::int64_t n = r.whole(least, 12); n-- > 0; rows += sizes.back())
            sizes.push_back(r.whole(1, 4));
        x = r.array<float>({rows, 3});
        y = r.array<float>({rows, 2});
        parts = split(in_order(rows), sizes);
        seed = static_cast<std::uint64_t>(r.whole(0, 99));
        rate = r.between(0.05, 0.3);
    }
};

struct Training {
    const Drawn& drawn;
    Sequential<float> model{Linear<float>(3, 6, {1, 0}), Tanh<float>(), Dropout<float>(0.5),
                            Linear<float>(6, 2, {1, 1})};
    Adam<float> adam{parameters(model), {.learning_rate = drawn.rate}};
    std::unique_ptr<Ranks<float>> ranks;
    std::unique_ptr<Window<float>> window;

    Training(const Drawn& of, Processes* processes) : drawn(of) {
        if (processes)
            ranks = std::make_unique<Ranks<float>>(*processes, RanksOptions<float>{.model = &model});
        window = std::make_unique<Window<float>>(
            adam, WindowOptions<float>{.sum = Sum::exact, .seed = drawn.seed}, ranks.get());
    }
    void add(std::int64_t number) {
        const Items& items = drawn.parts[static_cast<std::size_t>(number)];
        if (ranks) ranks->begin_at(items[0] - window->items());
        Pass& pass = window->pass(items.count());
        window->add(mse(model(constant(rows(drawn.x, items)), pass), constant(rows(drawn.y, items))));
    }
    std::string weights() const {
        std::string sums;
        for (const Tensor& each : adam.parameters())
            sums += std::to_string(detail::checksum(each.value())) + " ";
        return sums;
    }
    // What one process alone has after so many updates.
    static std::string alone(const Drawn& drawn, int updates) {
        Training training(drawn, nullptr);
        for (int update = 0; update < updates; ++update) {
            for (std::int64_t k = 0; k < std::ssize(drawn.parts); ++k) training.add(k);
            training.window->finish();
        }
        return training.weights();
    }
};

void compute_for(std::int64_t microseconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

bool is_each_once(const std::vector<std::int64_t>& mine, std::int64_t count) {
    std::string words, all;
    for (const std::int64_t number : mine) words += std::to_string(number) + " ";
    std::vector<int> times(static_cast<std::size_t>(count));
    for (const std::string& theirs : world().meet("who has what", words)) all += theirs;
    std::istringstream numbers(all);
    for (std::size_t number; numbers >> number;) ++times.at(number);
    return std::ranges::all_of(times, [](int of) { return of == 1; });
}

void work_is_shared(std::uint64_t seed, const CommonFolder& folder) {
    Random r(seed), speed(seed + me());
    const Drawn drawn(r);
    const std::int64_t round = r.whole(0, 5);
    const std::int64_t saves = r.whole(0, 3), slowest = speed.whole(0, 2000);
    CAPTURE(seed, world().size(), drawn.parts.size(), round);
    const std::string path = folder / "work.state";
    std::optional<Training> training(std::in_place, drawn, &world());
    WorkList work(world(), {.round = round});
    for (int update = 0; update < 2; ++update) {
        work.open(std::ssize(drawn.parts));
        const std::int64_t count = std::ssize(drawn.parts);
        std::int64_t rounds = 1;
        for (; !work.over(); ++rounds) {
            while (const auto number = work.next()) {
                compute_for(speed.whole(0, slowest));
                training->add(*number);
            }
            if (rounds != saves || work.over()) continue;
            training->ranks->save(path, *training->window, {}, work.mine());
            training->window->discard();
            training.emplace(drawn, &world());  // begins anew, and goes on where that was
            work.open(count, training->ranks->load(path, *training->window).done);
        }
        CHECK(rounds - 1 == (round ? (count + round - 1) / round : 1));
        CHECK(is_each_once(work.mine(), count));
        CHECK(training->window->finish().micro_batches == count);
        training->ranks->expect_same_weights();
    }
    CHECK(training->weights() == Training::alone(drawn, 2));
}

// One of those that work for rank 0 does not come back with a micro-batch before all is over; whether it was
// quick enough to get that one.
bool one_stays_away(std::uint64_t seed) {
    Random r(seed);
    const Drawn drawn(r, 8);
    const auto late = static_cast<int>(r.whole(1, world().size() - 1));
    const auto update_of = static_cast<int>(r.whole(0, 1));
    const std::int64_t nth = r.whole(1, 2), round = r.coin() ? r.whole(1, 4) : 0;
    CAPTURE(seed, world().size(), drawn.parts.size(), late, update_of, nth, round);
    const auto group = first_processes(world().size(), false);
    Training training(drawn, group.get());
    WorkList work(*group, {.patience = 0.5, .round = round});
    bool met = false, stays = false;
    const auto meet = [&] {
        if (!std::exchange(met, true)) world().meet("the others are done");
    };
    const std::string said = message_of([&] {
        for (int update = 0; update < 3; ++update) {
            work.open(std::ssize(drawn.parts));
            std::int64_t came = 0;
            while (!work.over())
                while (const auto number = work.next()) {
                    stays = me() == static_cast<std::size_t>(late) && update == update_of && ++came == nth;
                    if (stays) meet();
                    compute_for(1000);
                    training.add(*number);
                }
            training.window->finish();
        }
        training.ranks->expect_same_weights();
        CHECK(training.weights() == Training::alone(drawn, 3));
    });
    const int size = group->size(), rank = group->rank(), known = static_cast<int>(work.left_out().size());
    meet();
    // On a machine with much to do others may be late, too.
    const bool is_out = said.find("this process was left out of work list ") != std::string::npos;
    const auto all = world().meet("who was left out", is_out ? "yes" : "no");
    const auto out = static_cast<int>(std::ranges::count(all, "yes"));
    CHECK((is_out || !stays));
    CHECK((is_out || said == "no error"));
    CHECK((is_out || size == world().size() - out));
    CHECK((is_out || rank == std::count(all.begin(), all.begin() + world().rank(), "no")));
    CHECK((me() != 0 || known == out));
    if (is_out) training.window->discard();
    return out > 0;
}

}  // namespace

TEST_CASE("A shared list of work gives the bits of one process, however fast each is, and through a file") {
    const std::uint64_t seed = common_seed("work");
    const CommonFolder folder;
    for (std::uint64_t i = 0; i < 40; ++i) work_is_shared(seed + 100 * i, folder);
}

TEST_CASE("One that does not come back in time is left out: others do its part, and the bits are the same") {
    if (ranks() == 1) return;
    const std::uint64_t seed = common_seed("late");
    int left_out = 0;
    for (std::uint64_t i = 0; i < 8; ++i) left_out += one_stays_away(seed + i);
    CHECK(left_out > 0);
}

TEST_CASE("Who shares other work, or work that was done already, is refused on all") {
    WorkList work(world());
    CHECK_THAT(message_of([&] {
                   work.open(3, {1, 3});
               }),
               contains("micro-batch 3 was done, but the window has 3"));
    CHECK_THAT(message_of([&] { work.open(3, {1, 1}); }), contains("micro-batch 1 was done twice"));
    CHECK_THAT(message_of([&] { work.open(-1); }), contains("there are no -1 micro-batches"));
    CHECK_THAT(message_of([&] { WorkList(world(), {.patience = -1}); }),
               contains("a patience of -1 s is none"));
    if (ranks() == 1) return;
    const bool last = me() + 1 == ranks();
    work.open(last ? 4 : 3);
    const std::string said = message_of([&] {
        while (work.next()) {
        }
    });
    for (const std::string& one : world().meet("what was said", said))
        CHECK_THAT(one, contains("rank " + std::to_string(ranks() - 1) +
                                 " has list, micro-batches and a checksum of those done "));
    work.open(2);
    while (work.next()) {
    }
    CHECK(work.over());
}

}  // namespace tally::test
