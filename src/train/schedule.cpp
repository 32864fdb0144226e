// Implements the learning-rate schedules with PyTorch's closed-form formulas.
#include "tally/train/schedule.hpp"

#include <cmath>
#include <numbers>
#include <utility>

#include "tally/train/state_reader.hpp"

namespace tally {

namespace {

void require_rate(const char* who, double rate) {
    require(std::isfinite(rate) && rate >= 0, who, "a rate must be finite and at least 0", rate);
}

void require_updates(const char* who, std::int64_t updates) {
    require(updates > 0, who, "the number of updates must be at least 1", static_cast<double>(updates));
}

}  // namespace

Schedule::Schedule(Function rate) : rate_(std::move(rate)) {
    if (!rate_) throw Error("[schedule] the function is empty; pass a function that returns a learning rate");
}

double Schedule::at(std::int64_t update) const {
    require(update >= 0, "schedule", "the update must be at least 0", static_cast<double>(update));
    return rate_(update);
}

Schedule Schedule::constant(double rate) {
    require_rate("constant", rate);
    return Schedule([=](std::int64_t) { return rate; });
}

Schedule Schedule::step(double rate, std::int64_t every, double factor) {
    require_rate("step", rate);
    require_updates("step", every);
    require(std::isfinite(factor) && factor >= 0, "step", "the factor must be finite and at least 0", factor);
    return Schedule([=](std::int64_t update) {
        return rate * formula::pow(factor, static_cast<double>(update / every));
    });
}

Schedule Schedule::cosine(double rate, std::int64_t updates, double lowest) {
    require_rate("cosine", rate);
    require_rate("cosine", lowest);
    require_updates("cosine", updates);
    return Schedule([=](std::int64_t update) {
        const double turn = std::numbers::pi * static_cast<double>(update) / static_cast<double>(updates);
        return lowest + (rate - lowest) * (1 + formula::cos(turn)) / 2;
    });
}

Schedule Schedule::warm_up(std::int64_t updates, Schedule then, double start) {
    require_updates("warm_up", updates);
    require(start >= 0 && start <= 1, "warm_up", "the factor of the first rate must be from 0 to 1", start);
    const double rate = then.at(0);
    return Schedule([=, then = std::move(then)](std::int64_t update) {
        if (update >= updates) return then.at(update - updates);
        return rate * (start + (1 - start) * static_cast<double>(update) / static_cast<double>(updates));
    });
}

}  // namespace tally
