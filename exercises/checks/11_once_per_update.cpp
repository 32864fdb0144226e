// Exercise 11, once per update: the answer, the mistakes that are known, and the check.
#include "11_once_per_update.hpp"

#include "check.hpp"

namespace {

namespace right {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    const double count = static_cast<double>(micros.size());
    Numbers g(state.w.size());
    for (const Numbers& micro : micros)
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += micro[i] / count;
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += options.decay * state.w[i];
    const double scale = std::min(1.0, options.max_norm / norm(g));
    for (std::size_t i = 0; i < g.size(); ++i) {
        state.v[i] = options.momentum * state.v[i] + scale * g[i];
        state.w[i] -= options.rate * state.v[i];
    }
}
}  // namespace right

namespace all_of_it_each_time {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    for (const Numbers& micro : micros) {
        Numbers g = micro;
        for (std::size_t i = 0; i < g.size(); ++i) {
            g[i] /= static_cast<double>(micros.size());
            g[i] += options.decay * state.w[i];
        }
        const double scale = std::min(1.0, options.max_norm / norm(g));
        for (std::size_t i = 0; i < g.size(); ++i) {
            state.v[i] = options.momentum * state.v[i] + scale * g[i];
            state.w[i] -= options.rate * state.v[i];
        }
    }
}
}  // namespace all_of_it_each_time

namespace each_one_clipped {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    const double count = static_cast<double>(micros.size());
    Numbers g(state.w.size());
    for (const Numbers& micro : micros) {
        const double own = std::min(1.0, options.max_norm / norm(micro));
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += own * micro[i] / count;
    }
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += options.decay * state.w[i];
    const double scale = 1;
    for (std::size_t i = 0; i < g.size(); ++i) {
        state.v[i] = options.momentum * state.v[i] + scale * g[i];
        state.w[i] -= options.rate * state.v[i];
    }
}
}  // namespace each_one_clipped

namespace running_sum_clipped {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    const double count = static_cast<double>(micros.size());
    Numbers g(state.w.size());
    for (const Numbers& micro : micros) {
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += micro[i] / count;
        const double running = std::min(1.0, options.max_norm / norm(g));
        for (double& value : g) value *= running;
    }
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += options.decay * state.w[i];
    const double scale = std::min(1.0, options.max_norm / norm(g));
    for (std::size_t i = 0; i < g.size(); ++i) {
        state.v[i] = options.momentum * state.v[i] + scale * g[i];
        state.w[i] -= options.rate * state.v[i];
    }
}
}  // namespace running_sum_clipped

namespace penalty_each_time {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    const double count = static_cast<double>(micros.size());
    Numbers g(state.w.size());
    for (const Numbers& micro : micros)
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += micro[i] / count + options.decay * state.w[i];
    const double scale = std::min(1.0, options.max_norm / norm(g));
    for (std::size_t i = 0; i < g.size(); ++i) {
        state.v[i] = options.momentum * state.v[i] + scale * g[i];
        state.w[i] -= options.rate * state.v[i];
    }
}
}  // namespace penalty_each_time

namespace clipped_before_the_division {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    const double count = static_cast<double>(micros.size());
    Numbers g(state.w.size());
    for (const Numbers& micro : micros)
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += micro[i];
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += count * options.decay * state.w[i];
    const double scale = std::min(1.0, options.max_norm / norm(g)) / count;
    for (std::size_t i = 0; i < g.size(); ++i) {
        state.v[i] = options.momentum * state.v[i] + scale * g[i];
        state.w[i] -= options.rate * state.v[i];
    }
}
}  // namespace clipped_before_the_division

namespace penalty_not_clipped {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    const double count = static_cast<double>(micros.size());
    Numbers g(state.w.size());
    for (const Numbers& micro : micros)
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += micro[i] / count;
    const double scale = std::min(1.0, options.max_norm / norm(g));
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += options.decay * state.w[i] / scale;
    for (std::size_t i = 0; i < g.size(); ++i) {
        state.v[i] = options.momentum * state.v[i] + scale * g[i];
        state.w[i] -= options.rate * state.v[i];
    }
}
}  // namespace penalty_not_clipped

namespace not_divided {
void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    Numbers g(state.w.size());
    for (const Numbers& micro : micros)
        for (std::size_t i = 0; i < g.size(); ++i) g[i] += micro[i];
    for (std::size_t i = 0; i < g.size(); ++i) g[i] += options.decay * state.w[i];
    const double scale = std::min(1.0, options.max_norm / norm(g));
    for (std::size_t i = 0; i < g.size(); ++i) {
        state.v[i] = options.momentum * state.v[i] + scale * g[i];
        state.w[i] -= options.rate * state.v[i];
    }
}
}  // namespace not_divided

struct Functions {
    decltype(&::update) update;
};

void examine(exercise::Look& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const State& state, const std::vector<Numbers>& micros,
                             const Options& options) {
        look.with(where);
        State given = state, wanted = state;
        for (int window = 0; window < 2; ++window) {
            right::update(wanted, micros, options);
            if (!look.runs([&] { yours.update(given, micros, options); })) return;
        }
        look.equal("w after two updates", given.w, wanted.w);
    };
    const std::vector<Numbers> two{{2, 0}, {0, 2}};
    const double no_clip = 1e9;
    look_at("[2 0] and [0 2], nothing but a rate of 0.1", {{1, 1}, {0, 0}}, two, {0.1, 0, 0, no_clip});
    look_at("[2 0] and [0 2], clipped at 1", {{1, 1}, {0, 0}}, two, {0.1, 0, 0, 1});
    look_at("[2 0] and [0 2], a decay of 0.5", {{1, 1}, {0, 0}}, two, {0.1, 0, 0.5, no_clip});
    look_at("[2 0] and [0 2], momentum 0.9", {{1, 1}, {0, 0}}, two, {0.1, 0.9, 0, no_clip});
    for (int draw = 0; draw < 4; ++draw) {
        std::vector<Numbers> micros;
        for (int count = look.whole(2, 5); count > 0; --count) micros.push_back(look.uniforms(3, -2, 2));
        const Numbers w = look.uniforms(3);
        look_at(
            "random gradients of " + std::to_string(micros.size()) + " micro-batches, all four",
            {w, {0.1, 0.2, 0.3}}, micros,
            {look.uniform(0.1, 0.5), look.uniform(0.5, 0.9), look.uniform(0.1, 0.5), look.uniform(0.2, 0.6)});
    }
}

const exercise::Add add(
    {.number = 11,
     .slug = "once-per-update",
     .title = "penalty, clip and momentum, each once per update",
     .minutes = 10,
     .lesson = "once-per-update",
     .functions = {"update"},
     .hints =
         {"Of all that happens in the loop, which part gives the same result whether it is done once or in N "
          "parts?",
          "Only adding up is. Declare g before the loop, add to it inside, and let all else happen after it.",
          "Numbers g(state.w.size()) begins at 0. In the loop g[i] takes its part of micro[i], divided by "
          "their number; then comes the rest, once."},
     .why = "A mean can be added up part by part; clipping, momentum and a penalty cannot. So they belong to "
            "the update, not to the micro-batch: normalise, penalty, clip, momentum, step, each once. A "
            "Window does it in this order."},
    examine, Functions{right::update},
    {{"all_of_it_each_time",
      {all_of_it_each_time::update},
      "Everything happens once for each micro-batch: N penalties, N clips, N steps of momentum. What belongs "
      "to the update must stand after the loop."},
     {"each_one_clipped",
      {each_one_clipped::update},
      "You clip each micro-batch's gradient. Clipping is not additive: the mean of clipped gradients is not "
      "the clipped mean."},
     {"running_sum_clipped",
      {running_sum_clipped::update},
      "You clip the running sum after each micro-batch, so those that come late count more than those that "
      "came early."},
     {"penalty_each_time",
      {penalty_each_time::update},
      "The penalty is inside of the loop: it counts once for each micro-batch, N times as much as it "
      "should."},
     {"clipped_before_the_division",
      {clipped_before_the_division::update},
      "The sum is clipped, and then divided by N: the norm that is compared with max_norm is N times too "
      "large. First the mean, then the clip."},
     {"penalty_not_clipped",
      {penalty_not_clipped::update},
      "The penalty came after the clip. Both orders exist, but here it is part of the gradient that is "
      "clipped."},
     {"not_divided",
      {not_divided::update},
      "The micro-batches' gradients are added and never divided by their number. The clip may hide it, where "
      "it cuts both to the same norm."}});

}  // namespace
