// Lesson 21: Revolve recomputes the fewest steps for c snapshots. Revolve also works with micro-batches.
#include <functional>

#include "course/kit/pictures.hpp"
#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct TheBestSchedule {
    const std::size_t steps = setting("items");
    const std::size_t n = setting("micro");  // micro-batches in the last step of the lesson

    void talk() {
        step(say("A chain of {} steps. A snapshot keeps a step's input; from there steps are run again.",
                 to_text(std::int64_t(steps))));
        Walk walk(steps);
        const std::vector<real> plain = walk.plain();
        code(2);
        const Revolve<Array<real>> revolve(walk.steps, 3);
        const std::vector<real> again = walk.gradient(revolve);

        const std::size_t least = fewest(steps, 3), alone = steps * (steps - 1) / 2;
        predict(
            "3 snapshots, x being one. Each step is recorded once. How many runs are there besides, only to "
            "get there?",
            {right(double(least)),
             wrong(double(alone), say("So it is with x alone: {} + {} + ... + 1.", steps - 1, steps - 2)),
             wrong(double(steps - 1), "So few only if all were kept on the first way."),
             wrong(double(steps), "Those are recorded. Count what runs to get there."),
             wrong(double(fewest(steps, 2)), "That is the least with two snapshots.")},
            hint(say("With x alone it would be {} + {} + ... + 1 = {}. What do two more places save?",
                     steps - 1, steps - 2, alone),
                 say("No step needs to run more than {}.", times(std::int64_t(walk.most_runs())))),
            say("{}. With x alone it would be {}.", capital(how_often(walk)), alone));
        show("only run", revolve.count().advanced);
        show("recorded", revolve.count().recorded);
        show("snapshots", revolve.count().snapshots);
        check_equal("only run", revolve.count().advanced, least);
        if (!settings_changed()) check_equal("as Griewank and Walther count them", least, 15);
        check_equal("begun in all", walk.begun.size(), least + steps);
        check_equal("d x: the same bits", again, plain);

        step(say("Its way: time to the right, the {} steps upwards.", to_text(std::int64_t(steps))));
        std::vector<std::size_t> back;
        for (std::size_t i = 0; i < walk.begun.size(); ++i)
            if (walk.recorded()[i]) back.push_back(walk.begun[i] + 1);
        drawn(walk.begun, walk.recorded(), walk.steps.size());
        std::vector<std::size_t> from_the_last;
        for (std::size_t i = steps; i > 0; --i) from_the_last.push_back(i);
        check_equal("recorded from the last to the first", back, from_the_last);

        predict(
            "3 snapshots; no step may run more than 3 times before it is recorded. Longest chain, in steps:",
            {right(20), wrong(9, "3 times 3: but a snapshot is used again when its part is done."),
             wrong(12, "4 parts of 3: but a part has snapshots of its own."),
             wrong(10, "So many if a step may run twice only."), wrong(4, "So many with one snapshot.")},
            hint("With one snapshot: 4 steps, of which the last is recorded at once. And with two?",
                 "4, then 10: C(1 + 3, 1), C(2 + 3, 2), where C(n, k) is n over k."),
            "c snapshots and r runs: C(c + r, c) = C(6, 3), which is 6 over 3.");
        auto lengths = table({"r", "longest, C(3 + r, 3)", "a step runs at most", "one step longer"});
        std::vector<std::size_t> most, expected;
        for (std::size_t r = 1; r <= 5; ++r) {
            const auto longest = static_cast<std::size_t>(choose(3 + r, 3));
            most.push_back(revolved(longest, 3).most), expected.push_back(r);
            most.push_back(revolved(longest + 1, 3).most), expected.push_back(r + 1);
            lengths.row(r, longest, most[most.size() - 2], most.back());
        }
        check_equal("r, and r + 1 where it is one longer", most, expected);

        step(
            "How often steps run without being recorded: counted, and by the formula r l - C(c + r, r - 1).");
        auto cases = table({"steps l", "snapshots c", "only run", "formula", "for each step"});
        std::vector<std::size_t> counted, formula;
        for (const auto& [l, c] :
             {std::pair<std::size_t, std::size_t>{10, 3}, {16, 4}, {100, 5}, {100, 10}, {1000, 10}}) {
            counted.push_back(revolved(l, c).count.advanced);
            formula.push_back(static_cast<std::size_t>(fewest(l, c)));
            cases.row(l, c, counted.back(), formula.back(), double(counted.back()) / double(l));
        }
        check_equal("counted", counted, {15, 27, 316, 222, 3636});
        check_equal("formula", formula, counted);
        if (!settings_changed()) check_all();  // the parameters do not change these checks

        predict("64 layers. 8 segments keep 16 buffers and begin 120. Revolve with 5 snapshots begins",
                {right("nearly twice as many"),
                 wrong("somewhat fewer", "It keeps less, and what is not kept is run again."),
                 wrong("just as many", "With fewer buffers, for nothing? They are paid for with runs."),
                 wrong("8 times as many", "No step runs more than a few times: C(5 + 3, 5) is 56.")},
                hint("What does it keep less of, and what is that paid for with?",
                     "C(5 + 3, 5) = 56 is a little less than 64: most steps run up to 3 times."),
                say("It goes below twice the root of 64, and pays for it: {} begun.", 64 + fewest(64, 5)));
        auto compared = table({"64 layers", "begun", "peak", "begun, 8 results a layer", "peak"});
        Tower thin(64), thick(64, 8);
        std::vector<Row> rows;
        const auto row = [&](const std::string& name, auto way, std::size_t number) {
            const std::size_t peak = thin.peak(way(thin, number));
            rows.push_back({thin.begun, peak, thick.peak(way(thick, number))});
            compared.row(name, thin.begun, format_bytes(peak), thick.begun, format_bytes(rows.back().thick));
        };
        row("plain", in_segments, 1);
        row("8 segments", in_segments, 8);
        row("13 snapshots", with_snapshots, 13);
        row("8 snapshots", with_snapshots, 8);
        row("5 snapshots", with_snapshots, 5);
        check_begun(rows);
        if (!settings_changed()) check_memory(thin, thick, rows);

        predict(say("16 layers, 64 items. {} x {} items take {}, 4 segments about a half. Both:", n, 64 / n,
                    part(n)),
                {right(part(2 * n)),
                 n == 2 ? wrong("an eighth", "A half of a half is more than that.")
                        : wrong(part(n), "So if one made the other needless. They save different things."),
                 wrong("three quarters", "Parts of parts are multiplied."),
                 wrong("a half", "That is one of the two alone.")},
                hint("Do both make the same thing smaller?",
                     say("A half of the buffers, each {} as large.", part(n))),
                "One makes the buffers smaller, the other makes them fewer.");
        Tower tower(16);
        const auto remember = [&](const Tensor& x) { return checkpoint_sequential(tower.layers, 1, x); };
        const auto forget = [&](const Tensor& x) { return checkpoint_sequential(tower.layers, 4, x); };
        auto both = table({"", "peak", "layers begun", "of the full batch"});
        std::vector<std::size_t> peaks;
        std::vector<std::vector<real>> gradients;
        const auto trained = [&](const std::string& name, auto way_of, std::size_t micro_batches) {
            peaks.push_back(tower.peak(way_of, micro_batches));
            gradients.push_back(tower.gradients());
            both.row(name, format_bytes(peaks.back()), tower.begun, double(peaks.back()) / double(peaks[0]));
        };
        trained("full batch", remember, 1);
        trained(say("{} micro-batches", n), remember, n);
        trained("4 segments", forget, 1);
        trained("both", forget, n);
        check("both take less than either", peaks[3] < std::min(peaks[1], peaks[2]));
        check("about what is said", std::abs(double(peaks[3]) / double(peaks[0]) * 2 * double(n) - 1) < 0.1);
        check_equal(say("{} micro-batches: the full batch's bits", n), gradients[1], gradients[0]);
        check_equal("4 segments: the same", gradients[2], gradients[0]);
        check_equal("both: the same", gradients[3], gradients[0]);
    }

    // A `Walk` is a chain of steps that counts its runs. `begun` lists the index of the step of each run. A
    // `Walk` uses only the CPU, because the counts are equal on every device.
    struct Walk {
        Tensor x = parameter(Array<real>({2}, {0.5, -0.25}));
        Chain<Array<real>> steps;
        std::vector<std::size_t> begun;

        explicit Walk(std::size_t length) {
            for (std::size_t i = 0; i < length; ++i)
                steps.push_back([this, i](const Tensor& h) {
                    begun.push_back(i);
                    return sin(h + 0.125 * double(i));
                });
        }
        Walk(const Walk&) = delete;

        template <class Way> std::vector<real> gradient(Way way) {
            x.zero_grad();
            begun.clear();
            sum(way(x)).backward();
            return x.grad().to_vector();
        }
        std::vector<real> plain() {
            return gradient([&](const Tensor& h) { return checkpoint_sequential(steps, 1, h); });
        }
        // Returns true for each run that records a graph, which is the last run of a step.
        std::vector<bool> recorded() const {
            std::vector<bool> last(begun.size()), seen(steps.size());
            for (std::size_t i = begun.size(); i-- > 0; seen[begun[i]] = true) last[i] = !seen[begun[i]];
            return last;
        }
        std::size_t most_runs() const {
            const std::vector<std::size_t> runs = only_run();
            return *std::max_element(runs.begin(), runs.end());
        }
        // Returns how often each step ran without recording a graph.
        std::vector<std::size_t> only_run() const {
            std::vector<std::size_t> times(steps.size());
            for (const std::size_t step : begun) ++times[step];
            for (std::size_t& each : times) --each;
            return times;
        }
    };

    // Returns how often steps ran without recording a graph, such as "one step never, 3 once, 6 twice".
    static std::string how_often(const Walk& walk) {
        std::vector<std::string> words;
        const std::vector<std::size_t> runs = walk.only_run();
        for (std::size_t often = 0; often <= walk.most_runs(); ++often) {
            const auto steps_so = std::count(runs.begin(), runs.end(), often);
            words.push_back(say("{} {}", words.empty() ? many_in_words(steps_so, "steps") : to_text(steps_so),
                                often == 0 ? "never" : times(std::int64_t(often))));
        }
        return list_of(words, "and");
    }

    // Describes a run of the class Revolve with l steps and c snapshots.
    struct Revolved {
        Revolve<Array<real>>::Count count;
        std::size_t begun, most;  // all runs; the largest number of runs of a step without recording
        bool same_bits;
    };
    static Revolved revolved(std::size_t l, std::size_t c) {
        Walk walk(l);
        const std::vector<real> plain = walk.plain();
        const Revolve<Array<real>> revolve(walk.steps, c);
        const std::vector<real> again = walk.gradient(revolve);
        const std::vector<std::size_t> times = walk.only_run();
        return {revolve.count(), walk.begun.size(), *std::max_element(times.begin(), times.end()),
                again == plain};
    }

    // A `Tower` is a network that counts the runs of its layers. A layer applies tanh(h W) `deep` times.
    struct Tower {
        Tensor x;
        std::vector<Tensor> weights;
        Chain<Array<real>> layers;
        std::size_t begun = 0;

        explicit Tower(std::size_t n, std::size_t deep = 1, std::int64_t items = 64, std::int64_t width = 8) {
            const auto drawn = [](Shape shape, std::uint64_t stream) {
                return uniform<real>(shape, -0.5, 0.5, {.seed = options().seed, .stream = stream})
                    .value()
                    .to(options().device);
            };
            x = constant(drawn({items, width}, 0));
            for (std::size_t i = 0; i < n; ++i) {
                weights.push_back(parameter(drawn({width, width}, i + 1)));
                layers.push_back([this, deep, W = weights.back()](Tensor h) {
                    ++begun;
                    for (std::size_t times = 0; times < deep; ++times) h = tanh(matmul(h, W));
                    return h;
                });
                weights.back().backward(
                    Array<real>::zeros({width, width}, options().device));  // allocates the gradient
            }
        }
        Tower(const Tower&) = delete;

        // Computes gradients, and returns the additional memory at the peak. way(x) runs the forward pass.
        template <class Way> std::size_t peak(Way way, std::size_t micro_batches = 1) {
            for (const Tensor& W : weights) W.zero_grad();
            begun = 0;
            const std::size_t before = memory::in_use(options().device);
            memory::reset_peak(options().device);
            const auto of_each = x.shape()[0] / std::int64_t(micro_batches);
            for (std::int64_t from = 0; from < x.shape()[0]; from += of_each)
                (mean(way(slice(x, 0, from, from + of_each))) / double(micro_batches)).backward();
            return memory::peak(options().device) - before;
        }
        std::vector<real> gradients() const {
            std::vector<real> all;
            for (const Tensor& W : weights)
                for (const real number : W.grad().to_vector()) all.push_back(number);
            return all;
        }
    };

    struct Row {
        std::size_t begun, thin, thick;
    };
    using Way = std::function<Tensor(const Tensor&)>;  // runs all layers
    static Way in_segments(Tower& tower, std::size_t k) {
        return [&tower, k](const Tensor& x) { return checkpoint_sequential(tower.layers, k, x); };
    }
    static Way with_snapshots(Tower& tower, std::size_t c) {
        return [revolve = Revolve<Array<real>>(tower.layers, c)](const Tensor& x) { return revolve(x); };
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static std::string part(std::size_t n) {
        return n == 2 ? "a half" : n == 4 ? "a quarter" : n == 8 ? "an eighth" : "a sixteenth";
    }

    // Draws all runs of steps as SVG and as DOT, where an arrow connects each run with the next run.
    static void drawn(const std::vector<std::size_t>& begun, const std::vector<bool>& recorded,
                      std::size_t steps) {
        const auto at = [](std::size_t number) { return std::to_string(number); };
        std::vector<std::string> rows(steps);
        std::string dot = "digraph schedule {\n  rankdir=LR; node [shape=circle];\n";
        for (std::size_t time = 0; time < begun.size(); ++time) {
            rows[begun[time]].resize(2 * time, ' ');
            rows[begun[time]] += recorded[time] ? 'x' : 'o';
            dot += "  t" + at(time + 1) + " [label=\"" + at(begun[time] + 1) + "\"" +
                   (recorded[time] ? ", style=filled" : "") + "];\n";
            if (time > 0) dot += "  t" + at(time) + " -> t" + at(time + 1) + ";\n";
        }
        std::string text;
        for (std::size_t step = steps; step-- > 0;)
            text += (step < 9 ? " " : "") + at(step + 1) + " |" + rows[step] +
                    (step + 1 == steps ? "   o only run   x recorded" : "") + "\n";
        const std::string title = at(steps) + " steps, each recorded once; " + at(begun.size()) + " begun";
        graph("schedule", sheet_of(title, Runs{begun, recorded}).svg(), dot + "}\n", text);
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // fewest(l, c) returns the least number of steps that run without recording a graph. This number is r l -
    // C(c + r, r - 1), where r is the least number with C(c + r, c) >= l.
    static std::uint64_t choose(std::uint64_t n, std::int64_t k) {
        if (k < 0) return 0;
        std::uint64_t ways = 1;
        for (std::uint64_t i = 1;
             i <= std::min(static_cast<std::uint64_t>(k), n - static_cast<std::uint64_t>(k)); ++i)
            ways = ways * (n - i + 1) / i;
        return ways;
    }
    static std::uint64_t fewest(std::uint64_t l, std::uint64_t c) {
        std::uint64_t r = 0;
        while (choose(c + r, static_cast<std::int64_t>(c)) < l) ++r;
        return r * l - choose(c + r, static_cast<std::int64_t>(r) - 1);
    }

    static void check_all() {
        std::vector<std::size_t> all_counted, all_formula, begun;
        bool within = true, same_bits = true;
        for (std::size_t l = 1; l <= 64; ++l)
            for (std::size_t c = 1; c <= 8; ++c) {
                const Revolved one = revolved(l, c);
                all_counted.push_back(one.count.advanced), all_formula.push_back(fewest(l, c));
                begun.push_back(one.begun - l);
                within = within && one.count.snapshots <= c && one.count.recorded == l;
                same_bits = same_bits && one.same_bits;
            }
        check_equal("all l <= 64, c <= 8: counted", all_counted, all_formula);
        check_equal("and begun", begun, all_formula);
        check("never more than c snapshots", within);
        check("512 gradients: the same bits", same_bits);
    }

    static void check_begun(const std::vector<Row>& rows) {
        check_equal("begun", {rows[1].begun, rows[2].begun, rows[3].begun, rows[4].begun},
                    {std::size_t{120}, 64 + fewest(64, 13), 64 + fewest(64, 8), 64 + fewest(64, 5)});
    }

    static void check_memory(Tower& thin, Tower& thick, const std::vector<Row>& rows) {
        Row least = rows[0];  // the least memory over all numbers of segments
        for (std::size_t k = 2; k <= 64; ++k) {
            const NoCheckpointVerification off;  // these 126 training runs only measure bytes
            least.thin = std::min(least.thin, thin.peak(in_segments(thin, k)));
            least.thick = std::min(least.thick, thick.peak(in_segments(thick, k)));
        }
        check("5 snapshots: less memory than any k segments", rows[4].thin < least.thin);
        check("one layer recorded at a time: less than half of any", rows[4].thick * 2 < least.thick);
        const std::size_t buffer = thin.x.value().storage()->bytes;
        check("by the ledger: c snapshots and 3 buffers more", rows[2].thin <= (13 + 3) * buffer + 256 &&
                                                                   rows[3].thin <= (8 + 3) * buffer + 256 &&
                                                                   rows[4].thin <= (5 + 3) * buffer + 256);
    }
};

const RegisterLesson<TheBestSchedule> lesson(
    {.number = 21,
     .slug = "the-best-schedule",
     .title = "the best schedule",
     .minutes = 20,
     .steps = 7,
     .parameters = {whole_number("items", "steps of the first chain", 10, 5, 11),
                    one_of("micro", "micro-batches beside checkpoints", 4, {2, 4, 8})}});

}  // namespace
