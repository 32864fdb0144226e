// Each stage has an order of work; what comes next begins when the stage is free and its input is there.
#include "bench/scaling/pipe.hpp"

#include <algorithm>
#include <cmath>

namespace tally::scaling {

std::vector<Work> order_of(Schedule schedule, int stage, int stages, int micro_batches) {
    const int ahead = schedule == Schedule::gpipe ? micro_batches : std::min(micro_batches, stages - stage);
    // As many weights' gradients wait as stages lie before: then each stage keeps as many inputs as there are stages.
    const int later = schedule == Schedule::zero_bubble ? stage : 0;
    std::vector<Work> order;
    int forwards = 0, weights = 0;
    while (forwards < ahead) order.push_back({'F', forwards++});
    for (int k = 0; k < micro_batches; ++k) {
        order.push_back({'B', k});
        if (schedule == Schedule::zero_bubble && k >= later) order.push_back({'W', weights++});
        if (forwards < micro_batches) order.push_back({'F', forwards++});
    }
    while (schedule == Schedule::zero_bubble && weights < micro_batches) order.push_back({'W', weights++});
    return order;
}

Piped pipe(Schedule schedule, int stages, int micro_batches, const StageSeconds& seconds) {
    const bool split = schedule == Schedule::zero_bubble;
    const auto count = static_cast<std::size_t>(stages);
    Piped piped{std::vector<std::vector<Work>>(count), 0, std::vector<int>(count)};
    std::vector<std::vector<double>> forward_ends(count), backward_ends(count);
    std::vector<std::vector<Work>> orders;
    for (int s = 0; s < stages; ++s) orders.push_back(order_of(schedule, s, stages, micro_batches));

    for (bool any = true; any;) {
        any = false;
        for (std::size_t s = 0; s < count; ++s) {
            auto& done = piped.stages[s];
            while (done.size() < orders[s].size()) {
                Work work = orders[s][done.size()];
                // What it waits for: the stage before, going forward; the stage behind, going back.
                const std::vector<double>* from = nullptr;
                if (work.what == 'F' && s > 0) from = &forward_ends[s - 1];
                if (work.what == 'B') from = s + 1 == count ? &forward_ends[s] : &backward_ends[s + 1];
                const auto k = static_cast<std::size_t>(work.micro);
                if (from && k >= from->size()) break;
                work.begin = std::max(done.empty() ? 0 : done.back().end, from ? (*from)[k] : 0);
                work.end = work.begin + (work.what == 'F'   ? seconds.forward
                                         : work.what == 'W' ? seconds.weights
                                         : split            ? seconds.inputs
                                                            : seconds.inputs + seconds.weights);
                if (work.what == 'F') forward_ends[s].push_back(work.end);
                if (work.what == 'B') backward_ends[s].push_back(work.end);
                done.push_back(work);
                piped.seconds = std::max(piped.seconds, work.end);
                any = true;
            }
        }
    }
    for (std::size_t s = 0; s < count; ++s) {
        int live = 0;  // from its forward until nothing needs its inputs any more
        for (const Work& work : piped.stages[s]) {
            if (work.what == 'F') piped.live[s] = std::max(piped.live[s], ++live);
            if (work.what == (split ? 'W' : 'B')) --live;
        }
    }
    return piped;
}

double Piped::bubble() const {
    double worked = 0;
    for (const auto& stage : stages)
        for (const Work& work : stage) worked += work.end - work.begin;
    return 1 - worked / (seconds * static_cast<double>(stages.size()));
}

std::string Piped::drawing(double unit) const {
    std::string lanes;
    for (const auto& stage : stages) {
        std::string lane(static_cast<std::size_t>(std::lround(seconds / unit)), '.');
        for (const Work& work : stage)
            for (auto at = std::lround(work.begin / unit); at < std::lround(work.end / unit); ++at)
                lane[static_cast<std::size_t>(at)] = work.what;
        lanes += lane + "\n";
    }
    return lanes;
}

}  // namespace tally::scaling
