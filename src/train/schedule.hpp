// A Schedule computes the learning rate of an update only from the number of the update, which starts at 0. A
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
    // Multiplies the learning rate by `factor` each time `every` updates have been made (PyTorch's StepLR).
    static Schedule step(double rate, std::int64_t every, double factor = 0.1);
    // Oscillates between `rate` and `lowest` along a cosine of half period `updates` (CosineAnnealingLR).
    static Schedule cosine(double rate, std::int64_t updates, double lowest = 0);
    // Rises linearly from `start` times the first rate of `then` (LinearLR), and then follows `then`.
    static Schedule warm_up(std::int64_t updates, Schedule then, double start = 1.0 / 3);

    double at(std::int64_t update) const;

private:
    Function rate_;
};

}  // namespace tally
