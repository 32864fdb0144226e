// Learning-rate schedules: pure functions of the number of the update, from 0. Nothing is remembered, so
// nothing needs saving, and no step can be counted twice.
//
//     optimizer.set_learning_rate(schedule.at(update));
#pragma once

#include <cstdint>
#include <functional>

namespace tally {

// A learning rate for each update.
class Schedule {
public:
    using Function = std::function<double(std::int64_t update)>;

    explicit Schedule(Function rate);

    static Schedule constant(double rate);
    // Multiplied by `factor` after each `every` updates (PyTorch's StepLR).
    static Schedule step(double rate, std::int64_t every, double factor = 0.1);
    // Half a cosine from `rate` down to `lowest` within `updates`, and up again after it (CosineAnnealingLR).
    static Schedule cosine(double rate, std::int64_t updates, double lowest = 0);
    // A straight line from `start` times the first rate of what follows up to it (LinearLR),
    // which then begins.
    static Schedule warm_up(std::int64_t updates, Schedule then, double start = 1.0 / 3);

    double at(std::int64_t update) const;

private:
    Function rate_;
};

}  // namespace tally
