// A Schedule computes the learning rate from the update's number only; the first update has the number 0. A
// schedule has no state, so a schedule needs no saving and cannot count a step twice.
//
//     optimizer.set_learning_rate(schedule.at(update));
#pragma once

#include <cstdint>
#include <functional>

namespace tally {

// A Schedule maps the number of an update to a learning rate.
class Schedule {
public:
    using Function = std::function<double(std::int64_t update)>;

    explicit Schedule(Function rate);

    static Schedule constant(double rate);
    // Multiplies the rate by `factor` after each `every` updates (PyTorch's StepLR).
    static Schedule step(double rate, std::int64_t every, double factor = 0.1);
    // Follows a cosine from `rate` to `lowest` in `updates` updates, then rises again (CosineAnnealingLR).
    static Schedule cosine(double rate, std::int64_t updates, double lowest = 0);
    // Rises linearly from `start` times the first rate of `then` (LinearLR), and then follows `then`.
    static Schedule warm_up(std::int64_t updates, Schedule then, double start = 1.0 / 3);

    double at(std::int64_t update) const;

private:
    Function rate_;
};

}  // namespace tally
