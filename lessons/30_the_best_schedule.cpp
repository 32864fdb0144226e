// Lesson 30: Revolve recomputes the fewest steps for c snapshots. It also works with micro-batches.
#include "schedule.hpp"

struct Revolved {
    Revolve<Array<real>>::Count count;
    int most;        // the most runs of a step without recording
    bool same_bits;  // as the gradient without a schedule
};
static Revolved revolved(std::size_t l, std::size_t c) {
    Walk walk(l), plain(l);
    const Revolve<Array<real>> revolve(walk.steps, c);
    sum(revolve(walk.x)).backward();
    sum(checkpoint_sequential(plain.steps, 1, plain.x)).backward();
    return {revolve.count(), walk.most(), same_bits(walk.x.grad(), plain.x.grad())};
}
struct Cost {
    int begun;
    std::size_t peak;
    std::vector<real> gradients;
};
// Trains once with N micro-batches. forward(x) runs all layers.
template <class Forward> static Cost cost_of(Tower& tower, const Forward& forward, std::int64_t N = 1) {
    tower.runs.assign(tower.layers.size(), 0);
    for (const Tensor& W : tower.weights) W.zero_grad();
    const std::size_t before = memory::in_use(options().device);
    memory::reset_peak(options().device);
    for (std::int64_t from = 0; from < 64; from += 64 / N)
        (mean(forward(slice(tower.x, 0, from, from + 64 / N))) / double(N)).backward();
    const std::size_t peak = memory::peak(options().device) - before;
    return {std::accumulate(tower.runs.begin(), tower.runs.end(), 0), peak, tower.gradients()};
}
static auto snapshots(const Tower& tower, std::size_t c) {
    return [revolve = Revolve<Array<real>>(tower.layers, c)](const Tensor& x) { return revolve(x); };
}
static auto segments(const Tower& tower, std::size_t k) {
    return [&tower, k](const Tensor& x) { return checkpoint_sequential(tower.layers, k, x); };
}

LESSON(whole_number("items", "steps of the first chain", 10, 5, 11),
       one_of("micro", "micro-batches with checkpoints", 4, {2, 4, 8})) {
    const std::size_t l = setting("items"), least = fewest(l, 3), alone = l * (l - 1) / 2;
    const std::int64_t n = setting("micro");

    step("A chain is a sequence of steps. A snapshot keeps a step's input, so that the step can run again.");
    note("Revolve chooses where to place a given number of snapshots. Here is a chain of {} steps.", l);
    Walk walk(l);
    code(2);
    const Revolve<Array<real>> revolve(walk.steps, 3);
    sum(revolve(walk.x)).backward();

    const std::size_t a = first_part(l, 3), b = first_part(l - a, 2);
    ask("only-run", "l", l, "right", least, "alone", alone, "up", l - 1, "two", fewest(l, 2), "a", a, "b", b,
        "c", l - a - b, "reach", a + b);
    show("only run", revolve.count().advanced, "recorded", revolve.count().recorded);
    show("snapshots", revolve.count().snapshots, "with x alone", alone);
    check_equal("no schedule needs fewer runs", revolve.count().advanced, least);

    step("In the picture, time goes right, steps up. Each step runs once with its graph kept for backward.");
    walk.draw();

    ask("longest-chain");
    auto lengths = table({"r", "longest, C(3 + r, 3)", "a step runs at most", "one step longer"});
    for (std::size_t r = 1; r <= 5; ++r) {
        const std::size_t longest = choose(3 + r, 3);
        lengths.row(r, longest, revolved(longest, 3).most, revolved(longest + 1, 3).most);
    }
    check_equal("no step runs more than r times", lengths.column("a step runs at most"), lengths.column("r"));

    step("l steps with c snapshots need r l - binomial(c + r, r - 1) extra runs, at most r for each step.");
    auto cases = table({"steps l", "snapshots c", "only run", "formula", "for each step"});
    for (const auto& [steps, c] :
         {std::pair<std::size_t, std::size_t>{10, 3}, {16, 4}, {100, 5}, {100, 10}, {1000, 10}}) {
        const std::size_t runs = revolved(steps, c).count.advanced;
        cases.row(steps, c, runs, fewest(steps, c), double(runs) / double(steps));
    }
    check_equal("the formula", cases.column("only run"), cases.column("formula"));

    bool same = true;
    std::vector<std::size_t> counted, formula;
    for (std::size_t steps = 1; steps <= 64; ++steps)
        for (std::size_t c = 1; c <= 8; ++c) {
            const Revolved one = revolved(steps, c);
            counted.push_back(one.count.advanced), formula.push_back(fewest(steps, c));
            same = same && one.same_bits && one.count.snapshots <= c && one.count.recorded == steps;
        }
    check_equal("512 chains of up to 64 steps, with up to 8 snapshots", counted, formula);
    check("their gradients have the same bits, and never more than c snapshots are kept", same);

    ask("five-snapshots");
    Tower thin(64, 64, 8), thick(64, 64, 8, 8);
    auto compared = table({"64 layers", "begun", "peak", "peak, 8 results a layer"});
    const auto add = [&](const std::string& name, const Cost& one, const Cost& eight) {
        compared.row(name, one.begun, format_bytes(one.peak), format_bytes(eight.peak));
        return one.peak;
    };
    for (const std::size_t k : {1, 8})
        add(say("segments: {}", k), cost_of(thin, segments(thin, k)), cost_of(thick, segments(thick, k)));
    std::size_t five = 0, best = SIZE_MAX;
    for (const std::size_t c : {13, 8, 5})
        five = add(say("snapshots: {}", c), cost_of(thin, snapshots(thin, c)),
                   cost_of(thick, snapshots(thick, c)));
    for (std::size_t k = 1; k <= 64; ++k) best = std::min(best, cost_of(thin, segments(thin, k)).peak);
    check("5 snapshots need less memory than any number of segments", five < best);

    ask("both", "n", n, "each", 64 / n, "twice", 2 * n);
    Tower tower(16, 64, 8);
    const Cost full = cost_of(tower, segments(tower, 1)), micro = cost_of(tower, segments(tower, 1), n),
               four = cost_of(tower, segments(tower, 4)), both = cost_of(tower, segments(tower, 4), n);
    auto all = table({"", "peak", "layers begun", "of the full batch"});
    const auto row = [&](const std::string& name, const Cost& cost) {
        all.row(name, format_bytes(cost.peak), cost.begun, double(cost.peak) / double(full.peak));
    };
    row("full batch", full);
    row(say("{} micro-batches", n), micro);
    row("4 segments", four);
    row("both", both);
    check("both together need less memory than either", both.peak < std::min(micro.peak, four.peak));
    check_equal("both: the bits of the full batch", both.gradients, full.gradients);
}
