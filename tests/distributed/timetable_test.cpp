// Compares the durations of timetables with formulas, and checks the order of steps in timetables.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"

namespace tally::test {

namespace {

constexpr Timetable::Schedule schedules[] = {Timetable::Schedule::gpipe,
                                             Timetable::Schedule::one_forward_one_backward};

}  // namespace

TEST_CASE("Timetable::of: the duration, bubble and number of live micro-batches follow closed forms") {
    const std::uint64_t seed = common_seed("timetables");
    Random r(seed);
    for (int p = 1; p <= 6; ++p)
        for (int m = 1; m <= 12; ++m) {
            CAPTURE(seed, p, m);
            std::map<Timetable::Schedule, Timetable> of;
            for (const Timetable::Schedule schedule : schedules) of[schedule] = Timetable::of(schedule, p, m);
            const double bubble = static_cast<double>(p - 1) / (m + p - 1);
            // The idle fraction does not depend on durations, if the durations are equal in all stages.
            const detail::StageSeconds any{r.between(0.1, 2), r.between(0.1, 2), r.between(0.1, 2)};
            for (const Timetable::Schedule schedule : schedules) {
                CHECK(of[schedule].seconds == 3 * (m + p - 1));
                CHECK(std::abs(of[schedule].bubble() - bubble) < 1e-12);
                CHECK(std::abs(Timetable::of(schedule, p, m, any).bubble() - bubble) < 1e-12);
            }
            const Timetable split = detail::zero_bubble(p, m);
            CHECK(split.seconds == 3 * m + (p - 1) + std::max(0, p - m));
            for (int s = 0; s < p; ++s) {
                const auto stage = static_cast<std::size_t>(s);
                CHECK(of[Timetable::Schedule::gpipe].max_live[stage] == m);
                CHECK(of[Timetable::Schedule::one_forward_one_backward].max_live[stage] ==
                      std::min(m, p - s));
                CHECK(split.max_live[stage] == std::min(m, p));
            }
        }
}

TEST_CASE("Timetable::of: a stage never does two steps at once, nor a step before its input has arrived") {
    const std::uint64_t seed = common_seed("stages of different speeds");
    Random r(seed);
    for (int round = 0; round < 60; ++round) {
        const int p = static_cast<int>(r.whole(1, 7)), m = static_cast<int>(r.whole(1, 13));
        std::vector<detail::StageSeconds> seconds;
        for (int s = 0; s < p; ++s)
            seconds.push_back({r.between(0.1, 2), r.between(0.1, 2), r.between(0.1, 2)});
        const bool split = round % 3 == 2;
        const Timetable table =
            split ? detail::zero_bubble(seconds, m) : Timetable::of(schedules[round % 3], seconds, m);
        CAPTURE(seed, round, p, m);
        std::map<std::tuple<char, int, int>, Timetable::Step> done;  // key: kind, stage, micro-batch
        for (int s = 0; s < p; ++s) {
            const auto& steps = table.stages[static_cast<std::size_t>(s)];
            const detail::StageSeconds& each = seconds[static_cast<std::size_t>(s)];
            for (std::size_t i = 0; i < steps.size(); ++i) {
                CHECK((i == 0 || steps[i].begin >= steps[i - 1].end));
                const double takes = steps[i].what == 'F'   ? each.forward
                                     : steps[i].what == 'W' ? each.weights
                                                            : each.inputs + (split ? 0 : each.weights);
                CHECK(steps[i].end == steps[i].begin + takes);
                CHECK(steps[i].stage == s);
                done[{steps[i].what, s, steps[i].micro}] = steps[i];
            }
        }
        REQUIRE(done.size() == (split ? 3U : 2U) * static_cast<std::size_t>(p * m));  // each step occurs once
        for (const auto& [key, step] : done) {
            const auto [what, s, k] = key;
            if (what == 'F' && s > 0) CHECK(step.begin >= done.at({'F', s - 1, k}).end);
            if (what == 'B')
                CHECK(step.begin >= (s + 1 == p ? done.at({'F', s, k}) : done.at({'B', s + 1, k})).end);
            if (what == 'W') CHECK(step.begin >= done.at({'B', s, k}).end);
        }
    }
}

TEST_CASE("Timetable::of: no stages or no micro-batches throw an Error") {
    CHECK(message_of([] { Timetable::of(Timetable::Schedule::gpipe, 0, 3); }) ==
          "[pipe] a timetable of 0 stages; pass at least 1");
    CHECK(message_of([] { Timetable::of(Timetable::Schedule::gpipe, 2, 0); }) ==
          "[pipe] 0 micro-batches; pass at least 1");
}

}  // namespace tally::test
