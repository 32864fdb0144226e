// The answer and the check of exercise once-per-update.
#include "given.hpp"

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

#include "17_once_per_update.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
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
    look_at("[2 0] and [0 2], a rate of 0.1, without the other steps", {{1, 1}, {0, 0}}, two,
            {0.1, 0, 0, no_clip});
    look_at("[2 0] and [0 2], max_norm 1", {{1, 1}, {0, 0}}, two, {0.1, 0, 0, 1});
    look_at("[2 0] and [0 2], decay 0.5", {{1, 1}, {0, 0}}, two, {0.1, 0, 0.5, no_clip});
    look_at("[2 0] and [0 2], momentum 0.9", {{1, 1}, {0, 0}}, two, {0.1, 0.9, 0, no_clip});
    for (int draw = 0; draw < 4; ++draw) {
        std::vector<Numbers> micros;
        for (int count = look.whole(2, 5); count > 0; --count) micros.push_back(look.uniforms(3, -2, 2));
        const Numbers w = look.uniforms(3);
        look_at(
            "random gradients of " + std::to_string(micros.size()) + " micro-batches, all steps",
            {w, {0.1, 0.2, 0.3}}, micros,
            {look.uniform(0.1, 0.5), look.uniform(0.5, 0.9), look.uniform(0.1, 0.5), look.uniform(0.2, 0.6)});
    }
}

const exercise::Add add(
    {.title = "penalty, clip and momentum, each once per update",
     .minutes = 10,
     .lesson = "once-per-update",
     .hints = {"Which of the five steps (mean, penalty, clip, momentum, change of the weights) gives the "
               "same result in N parts, one for each micro-batch?",
               "Only the mean of the gradients can be computed in N parts, one for each micro-batch. "
               "Declare g, the mean gradient, before the loop, and put all lines that do not compute this "
               "mean after the loop.",
               "`Numbers g(state.w.size())` is a vector of zeros. In the loop over the micro-batches, add "
               "micro[i], divided by the number of micro-batches, to g[i]. After the loop, apply the "
               "penalty, the clip and momentum once, and change the weights once."},
     .why = "You can compute a mean in parts, one for each micro-batch, but not a clip, momentum or a "
            "penalty. Do each step once for each update, in the order mean, penalty, clip, momentum, "
            "step. tally's class Window also divides, clips and changes the weights only once for each "
            "update."},
    examine, answers);

}  // namespace
