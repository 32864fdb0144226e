// Compares 50 updates of optimizers, clipping, averages and schedules with PyTorch's results, which
// tools/make-trajectories has recorded.
#include <cmath>
#include <memory>

#include "../lessons/adam_a.hpp"
#include "catch.hpp"
#include "fixtures.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/train.hpp"

namespace tally::test {
namespace {

using lesson::AdamA;

const std::vector<Shape> shapes{{3}, {2, 2}, {}};

// Returns an array of the numbers rule(0), rule(1), ..., which float represents exactly.
template <class S, class Rule> Array<S> by_rule(std::size_t tensor, Rule rule) {
    std::vector<S> numbers;
    for (std::int64_t e = 0; e < static_cast<std::int64_t>(shapes[tensor].size()); ++e)
        numbers.push_back(static_cast<S>(rule(e)));
    return Array<S>(shapes[tensor], numbers);
}

template <class S> Array<S> gradient(std::int64_t u, std::size_t tensor) {
    const auto k = static_cast<std::int64_t>(tensor);
    return by_rule<S>(tensor, [=](std::int64_t e) {
        return static_cast<double>((7 * u * u + 13 * u * (e + 1) + 5 * e * e + 11 * k) % 33 - 16) / 16;
    });
}

template <class S> std::vector<Var<Array<S>>> start() {
    std::vector<Var<Array<S>>> made;
    for (std::size_t tensor = 0; tensor < shapes.size(); ++tensor)
        made.push_back(parameter(by_rule<S>(tensor, [=](std::int64_t e) {
            return static_cast<double>((9 * e + 5 * static_cast<std::int64_t>(tensor) + 3) % 17 - 8) / 8;
        })));
    return made;
}

template <class S>
std::unique_ptr<Optimizer<S>> optimizer_of(const Fixture& f, const std::vector<Var<Array<S>>>& parameters) {
    const double rate = f.number("learning_rate", -1), decay = f.number("weight_decay", 0);
    if (f.tags.count("SGD"))
        return std::make_unique<Sgd<S>>(
            parameters, Sgd<double>::Options{rate, f.number("momentum", 0), f.number("dampening", 0),
                                             f.number("nesterov", 0) != 0, decay});
    const Adam<double>::Options options{rate, f.number("beta1", .9), f.number("beta2", .999),
                                        f.number("eps", 1e-8), decay};
    if (f.tags.count("Adam")) return std::make_unique<Adam<S>>(parameters, options);
    if (f.tags.count("AdamW"))
        return std::make_unique<AdamW<S>>(
            parameters, AdamW<double>::Options{rate, options.beta1, options.beta2, options.eps, decay});
    if (f.tags.count("AdamA")) return std::make_unique<AdamA<S>>(parameters, options);
    throw std::runtime_error(f.name + " has no optimizer");
}

// Compares numbers with PyTorch's. The field `worst` is the maximum of |difference| / max(1, |number|).
template <class S> struct Compared {
    const std::vector<double>& wanted;
    std::size_t at = 0;
    double worst = 0;
    void operator()(S got) {
        const double want = wanted.at(at++);
        const double difference = std::abs(static_cast<double>(got) - want) / std::max(1.0, std::abs(want));
        if (!std::isnan(worst) && !(difference <= worst)) worst = difference;  // NaN counts as the worst
    }
    void all(const std::vector<S>& some) {
        for (S each : some) (*this)(each);
    }
};

struct Worst {
    double numbers, norms;
};

template <class S> Worst follow(const Fixture& f) {
    const auto parameters = start<S>();
    const auto optimizer = optimizer_of(f, parameters);
    auto* const folding = dynamic_cast<AdamA<S>*>(optimizer.get());
    std::unique_ptr<MovingAverage<S>> average;
    if (f.has("average")) average.reset(new MovingAverage<S>(parameters, {.decay = f.number("average", 0)}));
    Compared<S> numbers{f.output.values};
    static const std::vector<double> none;
    const bool has_norms = f.gradients.count("norm") > 0;
    Compared<double> norms{has_norms ? f.gradients.at("norm").values : none};
    const std::int64_t micro_batches = folding ? 4 : 1;
    for (std::int64_t update = 0; update < f.output.shape[0]; ++update) {
        for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
            for (std::size_t k = 0; k < parameters.size(); ++k) {
                if (f.tags.count("skips") && k == 1 && update % 3 == 1) continue;
                Array<S> g = gradient<S>(micro_batches * update + micro, k);
                for (S& each : std::span(g.writable(), g.size())) each /= static_cast<S>(micro_batches);
                parameters[k].backward(g);
            }
            if (folding && micro + 1 < micro_batches) folding->fold();  // step() takes the last gradient
        }
        if (f.has("clip_norm")) norms(clip_grad_norm(parameters, f.number("clip_norm", 0)));
        if (f.has("clip_value")) clip_grad_value(parameters, f.number("clip_value", 0));
        optimizer->step();
        optimizer->zero_grad();
        if (average) average->update();
        for (std::size_t k = 0; k < parameters.size(); ++k)
            numbers.all((average ? average->value(k) : parameters[k].value()).to_vector());
    }
    REQUIRE(numbers.at == f.output.values.size());
    REQUIRE(norms.at == norms.wanted.size());
    return {numbers.worst, norms.worst};
}

std::vector<Fixture> all_but_schedules() {
    std::vector<Fixture> all;
    for (auto& [name, cases] : read_fixtures(TALLY_SOURCE_DIR "/tests/fixtures-train"))
        if (name != "schedule") all.insert(all.end(), cases.begin(), cases.end());
    return all;
}

}  // namespace

TEST_CASE("optimizers: fifty updates in double equal PyTorch's") {
    const auto cases = all_but_schedules();
    REQUIRE(cases.size() >= 22);
    for (const Fixture& f : cases) {
        INFO(f.name);
        REQUIRE(f.output.shape[0] >= 50);
        const Worst worst = follow<double>(f);
        CHECK(worst.numbers <= 1e-12);
        CHECK(worst.norms <= 1e-12);
    }
}

// Each update may add one rounding error of a float, which has 24 significant bits. AdamA with weight decay
// has the largest error, which is half of this bound.
TEST_CASE("optimizers: fifty updates in float differ from PyTorch's by one rounding per update") {
    for (const Fixture& f : all_but_schedules()) {
        INFO(f.name);
        const Worst worst = follow<float>(f);
        CHECK(worst.numbers <= 50 * 0x1p-24);
        CHECK(worst.norms <= 0x1p-24);
    }
}

TEST_CASE("Schedule: rates equal PyTorch's") {
    const auto cases = read_fixtures(TALLY_SOURCE_DIR "/tests/fixtures-train").at("schedule");
    REQUIRE(cases.size() >= 6);
    for (const Fixture& f : cases) {
        INFO(f.name);
        const double rate = f.number("rate", -1);
        Schedule schedule = f.has("every") ? Schedule::step(rate, f.integer("every"), f.number("factor", 0))
                            : f.has("cosine")
                                ? Schedule::cosine(rate, f.integer("cosine"), f.number("lowest", 0))
                                : Schedule::constant(rate);
        if (f.has("warm_up"))
            schedule = Schedule::warm_up(f.integer("warm_up"), schedule, f.number("start", 0));
        Compared<double> rates{f.output.values};
        for (std::int64_t update = 0; update < f.output.shape[0]; ++update) rates(schedule.at(update));
        CHECK(rates.at >= 50);
        CHECK(rates.worst <= 1e-14);
    }
}

}  // namespace tally::test
