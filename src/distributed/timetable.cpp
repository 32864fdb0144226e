// Timetable::of() orders the steps of each stage and computes when each step starts.
#include "tally/distributed/timetable.hpp"

#include <algorithm>
#include <cmath>

#include "tally/base/error.hpp"

namespace tally {

std::string to_string(Timetable::Schedule schedule) {
    return schedule == Timetable::Schedule::gpipe ? "GPipe" : "1F1B";
}

namespace {

using detail::StageSeconds;

// Returns the order of a stage's steps. With `split` the weight gradients are computed in separate steps.
std::vector<Timetable::Step> order_of(Timetable::Schedule schedule, bool split, int stage, int stages,
                                      int micro_batches) {
    detail::require(micro_batches >= 1, "pipe", micro_batches, " micro-batches; pass at least 1");
    const int warm_up =
        schedule == Timetable::Schedule::gpipe ? micro_batches : std::min(micro_batches, stages - stage);
    // Stage s defers the weight gradients of s micro-batches. Each stage then stores at most `stages` inputs.
    const int deferred = split ? stage : 0;
    std::vector<Timetable::Step> order;
    int forwards = 0, weights = 0;
    while (forwards < warm_up) order.push_back({'F', forwards++, stage});
    for (int k = 0; k < micro_batches; ++k) {
        order.push_back({'B', k, stage});
        if (split && k >= deferred) order.push_back({'W', weights++, stage});
        if (forwards < micro_batches) order.push_back({'F', forwards++, stage});
    }
    while (split && weights < micro_batches) order.push_back({'W', weights++, stage});
    return order;
}

double seconds_of(const Timetable::Step& step, bool split, const StageSeconds& stage) {
    if (step.what == 'F') return stage.forward;
    if (step.what == 'W') return stage.weights;
    return split ? stage.inputs : stage.inputs + stage.weights;
}

// Returns the largest number of micro-batches whose inputs a stage stores at the same time.
int most_live(const std::vector<Timetable::Step>& steps, bool split) {
    int live = 0, most = 0;
    for (const Timetable::Step& step : steps) {
        if (step.what == 'F') most = std::max(most, ++live);
        if (step.what == (split ? 'W' : 'B')) --live;
    }
    return most;
}

Timetable simulate(Timetable::Schedule schedule, bool split, const std::vector<StageSeconds>& stages,
                   int micro_batches) {
    const std::size_t count = stages.size();
    detail::require(count > 0, "pipe", "a timetable of 0 stages; pass at least 1");
    Timetable table{std::vector<std::vector<Timetable::Step>>(count), 0, {}};
    std::vector<std::vector<double>> forward_ends(count), backward_ends(count);
    std::vector<std::vector<Timetable::Step>> orders;
    for (int s = 0; s < static_cast<int>(count); ++s)
        orders.push_back(order_of(schedule, split, s, static_cast<int>(count), micro_batches));

    for (bool any = true; any;) {
        any = false;
        for (std::size_t s = 0; s < count; ++s) {
            auto& done = table.stages[s];
            while (done.size() < orders[s].size()) {
                Timetable::Step step = orders[s][done.size()];
                // A forward step waits for the previous stage, and a backward step for the next stage.
                const std::vector<double>* from = nullptr;
                if (step.what == 'F' && s > 0) from = &forward_ends[s - 1];
                if (step.what == 'B') from = s + 1 == count ? &forward_ends[s] : &backward_ends[s + 1];
                const auto k = static_cast<std::size_t>(step.micro);
                if (from && k >= from->size()) break;
                step.begin = std::max(done.empty() ? 0 : done.back().end, from ? (*from)[k] : 0);
                step.end = step.begin + seconds_of(step, split, stages[s]);
                if (step.what == 'F') forward_ends[s].push_back(step.end);
                if (step.what == 'B') backward_ends[s].push_back(step.end);
                done.push_back(step);
                table.seconds = std::max(table.seconds, step.end);
                any = true;
            }
        }
    }
    for (const auto& steps : table.stages) table.max_live.push_back(most_live(steps, split));
    return table;
}

std::vector<StageSeconds> equal_stages(int stages, const StageSeconds& seconds) {
    return std::vector<StageSeconds>(static_cast<std::size_t>(std::max(stages, 0)), seconds);
}

}  // namespace

Timetable Timetable::of(Timetable::Schedule schedule, const std::vector<StageSeconds>& stages,
                        int micro_batches) {
    return simulate(schedule, false, stages, micro_batches);
}

Timetable Timetable::of(Timetable::Schedule schedule, int stages, int micro_batches,
                        const StageSeconds& seconds) {
    return of(schedule, equal_stages(stages, seconds), micro_batches);
}

Timetable detail::zero_bubble(const std::vector<StageSeconds>& stages, int micro_batches) {
    return simulate(Timetable::Schedule::one_forward_one_backward, true, stages, micro_batches);
}

Timetable detail::zero_bubble(int stages, int micro_batches) {
    return zero_bubble(equal_stages(stages, {}), micro_batches);
}

double Timetable::bubble() const {
    double worked = 0;
    for (const auto& stage : stages)
        for (const Timetable::Step& step : stage) worked += step.end - step.begin;
    return 1 - worked / (seconds * static_cast<double>(stages.size()));
}

std::string Timetable::drawing(double unit) const {
    std::string lanes;
    for (const auto& stage : stages) {
        std::string lane(static_cast<std::size_t>(std::lround(seconds / unit)), '.');
        for (const Timetable::Step& step : stage)
            for (auto at = std::lround(step.begin / unit); at < std::lround(step.end / unit); ++at)
                lane[static_cast<std::size_t>(at)] = step.what;
        lanes += lane + "\n";
    }
    return lanes;
}

}  // namespace tally
