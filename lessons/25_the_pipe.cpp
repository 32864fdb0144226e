// Lesson 25: each process computes one stage of a model. Shows how long stages wait, and what stages save.
#include <array>
#include <set>
#include <sstream>

#include "course/kit/on_ranks.hpp"
#include "course/kit/pictures.hpp"
#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct ThePipe {
    const int p = setting("ranks"), m = setting("micro");  // stages, one in each process; micro-batches
    static constexpr int rows = 16, width = 16;            // size of a micro-batch
    using Weights = std::array<real, width * width>;

    void talk() {
        step(say("{} layers tanh(h W), a process for each: stages 0 to {}.", capital(to_text(p)), p - 1));
        code(3);
        const auto losses = on_ranks([&](ProcessGroup& here) {
            Pipe<real> pipe(here, {stage_of(here.rank())}, by(gpipe));
            return pipe.run(1, batches_of(0), loss).loss;
        });
        note("F goes forward, B backward, which takes twice as long.");
        const Timetable uncut = Timetable::of(gpipe, p, 1);
        drawn("one-batch", "One batch", uncut);
        show("of the time a stage waits", uncut.bubble());
        check_close("one works, the others wait", uncut.bubble(), (p - 1.0) / p, 1e-12);
        check_equal("all know the loss", losses, std::vector<double>(layers.size(), losses[0]));

        const Timetable forward_first = Timetable::of(gpipe, p, m);
        predict(
            say("Now {} micro-batches of that size. GPipe: all F first, then all B. For which share of "
                "the time does a stage wait?",
                m),
            {right((p - 1.0) / (m + p - 1)).within(0.004),
             wrong((p - 1.0) / p, "So it is with one. Now a stage has the next while others have this one."),
             wrong((p - 1.0) / m, "That is the wait beside the work. What is the whole time?"),
             wrong(double(p) / (m + p), say("How many are before the last stage? Not {}.", p)),
             wrong(0, "What does the last stage do at first?")},
            hint("How many F of others come before the first F of the last stage?",
                 say("Divide the wait by what it comes to with the {} parts of work.", m)),
            say("For {} micro-batches it works, for p - 1 = {} it waits: (p - 1)/(m + p - 1).", m, p - 1));
        drawn("gpipe", "GPipe", forward_first);
        show("of the time a stage waits", forward_first.bubble());
        check_bubble(gpipe, forward_first);

        const Timetable in_turn = Timetable::of(in_turns, p, m);
        predict(
            "1F1B: a few F, the fewer the nearer the end, then B and F in turn; rather wait than run ahead. "
            "What gets smaller?",
            {right("what is kept"), wrong("the waiting", "Does its last column come sooner?"),
             wrong("the work", "Each F and each B is done, as before."),
             wrong("all of these", "It has as many columns, and as many dots.")},
            hint("When may a stage forget a micro-batch?", "Compare stage 0's first B with its last F."),
            "After a B the values of a micro-batch can go. A stage waits as long, at other times.");
        drawn("the-pipe", "1F1B", in_turn);
        show("of the time a stage waits", in_turn.bubble());
        check_bubble(in_turns, in_turn);

        predict(
            "A micro-batch's values are kept from F to B. Of how many at most, in stage 0 under 1F1B?",
            {right(std::min(p, m)), wrong(m, "So many with GPipe, where the first B follows the last F."),
             wrong(1, "Does it wait for this B before it begins another F?"),
             wrong(p - 1, "So many are on their way behind it. And its own?"),
             wrong(2 * (p - 1), "So many stages are passed there and back. What does stage 0 do meanwhile?")},
            hint("How far must micro-batch 0 go until its B is due in stage 0?",
                 "Look at the first lane, up to its first B."),
            m < p ? "All of them: there are fewer than stages."
                  : "As many as there are stages; then each F follows a B.");
        code(1);
        const std::vector<Ran> by_gpipe = ran(gpipe), by_turns = ran(in_turns);
        auto kept = table({"stage", "GPipe keeps", "1F1B keeps", "GPipe, KiB kept", "1F1B, KiB kept"});
        for (std::size_t s = 0; s < layers.size(); ++s)
            kept.row(s, by_gpipe[s].max_live, by_turns[s].max_live, by_gpipe[s].saved, by_turns[s].saved);
        check_kept(kept);

        predict(
            "More micro-batches, less waiting. How many until a stage waits a tenth of its time?",
            {right(9 * (p - 1)), wrong(10 * (p - 1), "That is a tenth of the work. Of the time it is less."),
             wrong(10 * p, say("{} before the last stage begins, not {}.",
                               p == 2 ? "1 comes" : say("{} come", p - 1), p)),
             wrong(10, "So many for a wait of one, and beside the work.")},
            hint("Of ten parts of the time, how many are work?",
                 say("The wait is as long as {}.", many(p - 1, "micro-batches"))),
            "Nine times p - 1: that many of work to p - 1 of waiting.");
        auto longer = table({"micro-batches", "waits", "(p-1)/(m+p-1)", "GPipe keeps", "1F1B keeps"});
        for (const int micro : std::set{1, m, 9 * (p - 1), 10 * (p - 1), 100 * p}) {
            const Timetable all_f = Timetable::of(gpipe, p, micro), turns = Timetable::of(in_turns, p, micro);
            longer.row(micro, turns.bubble(), (p - 1.0) / (micro + p - 1), all_f.max_live[0],
                       turns.max_live[0]);
        }
        note("Where each stays as large, only 1F1B can afford them: it keeps no more of them.");
        check_close("the formula", longer.column("waits"), longer.column("(p-1)/(m+p-1)"), 1e-12);

        const Timetable split = tally::detail::zero_bubble(p, m);
        predict(
            say("Backward has two parts: the gradient of the input (B), for which a stage waits, and of "
                "the weights (W), for which nobody does. With W later, how many units, of {}, does a stage "
                "wait?",
                3 * (p - 1)),
            {right(split.seconds - 3 * m), wrong(0, "The last stage still waits for the first F."),
             wrong(3 * (p - 1), "So it is where W is done before others get B."),
             wrong(2 * (p - 1), "Going back, W fills the waiting."),
             wrong(p, "For the F of how many others does the last stage wait?")},
            hint("What can fill the waiting at the beginning, and what at the end?",
                 "Count the dots of the last lane before its first F; at its end there is W to do, while it "
                 "lasts."),
            "W fills the waiting once a stage has had its first B; before that there is none to do.");
        drawn("zero-bubble", "Zero bubble", split);
        show("units that a stage waits", split.seconds - 3 * m);
        require_valid_split(split);

        predict("Beside one process that runs one micro-batch after the other, a stage's gradient has",
                {right("the same bits"),
                 wrong("other roundings", "In which order does a stage add the gradients of micro-batches?"),
                 wrong("1/p of the length", "Each stage has all of its own layer's gradient."),
                 wrong("1/m of the length", "Nothing was divided; the losses are sums.")},
                hint("Which micro-batch goes back first in each lane, and which next?",
                     "Number the B of a lane, from left to right."),
                "Each stage adds 0, 1, 2, ... as one process does.");
        const auto alone = one_after_the_other(0, m);
        auto bits = table({"stage", "one process", "GPipe", "1F1B"});
        for (std::size_t s = 0; s < layers.size(); ++s)
            bits.row(s, alone[s].gradient[0], by_gpipe[s].gradient[0], by_turns[s].gradient[0]);
        note("The first number of each gradient.");
        for (std::size_t s = 0; s < layers.size(); ++s) {
            check_equal(say("stage {}, GPipe: the same bits", s), by_gpipe[s].gradient, alone[s].gradient);
            check_equal(say("stage {}, 1F1B: the same bits", s), by_turns[s].gradient, alone[s].gradient);
        }
        check_equal("the loss, too", {by_gpipe[0].loss, by_turns[0].loss}, {alone[0].loss, alone[0].loss});

        predict(say("A window of three runs; after each, someone divides all gradients by m = {}. By what is "
                    "the first run's part divided in the end?",
                    m),
                {right(m * m * m), wrong(m, "So after its own run. And after the next?"),
                 wrong(3 * m, "One division by all would be right. These are three."),
                 wrong(m * m, "So often the second run's.")},
                hint("What is divided after the third run?", "Gradients add up in one place, run after run."),
                "Three divisions meet it: g1/m^3 + g2/m^2 + g3/m.");
        code(3);
        const auto average = on_ranks([&](ProcessGroup& here) {
            const Tensor W = layer_without_gradient(here.rank());
            three_runs(here, [&] { divide(W, m); });
            return numbers(W.grad());
        });
        auto parts = table({"run", "divided by", "its share", "should be"});
        for (int run = 1; run <= 3; ++run)
            parts.row(run, power(m, 4 - run), power(m, run - 1) / (1.0 + m + m * m), 1 / 3.0);
        note("A moving average: the last run counts most.");
        check_average(average);

        step("A window around the three runs divides once, by the number of all items.");
        code(3);
        const auto ours = updated_by([&](ProcessGroup& here, Window<real>& window) {
            three_runs(here, [&] { window.after_backward(rows * m); });
            window.finish();
        });
        const auto one = updated_alone();
        auto steps = table({"stage", "|step|", "of one process", "first weight", "of one process"});
        for (std::size_t s = 0; s < layers.size(); ++s)
            steps.row(s, step_length(ours, s), step_length(one, s), ours[s][0], one[s][0]);
        for (std::size_t s = 0; s < layers.size(); ++s)
            check_equal(say("stage {}: the same bits", s), ours[s], one[s]);
    }

    // Returns a stage that consists of one layer.
    Pipe<real>::Stage stage_of(int rank) const {
        return [W = layers[std::size_t(rank)]](const Tensor& h, int) { return tanh(matmul(h, W)); };
    }
    struct Ran {
        Weights gradient;
        int max_live;        // the largest number of micro-batches kept at a time
        double saved, loss;  // peak of the KiB saved for backward
    };
    std::vector<Ran> ran(Timetable::Schedule schedule) const {
        return on_ranks([&](ProcessGroup& here) {
            const Tensor W = layer_without_gradient(here.rank());
            Pipe<real> pipe(here, {stage_of(here.rank())}, by(schedule));
            memory::reset_peak(options().device);
            const auto piped = pipe.run(m, batches_of(0), loss);
            const std::size_t saved = memory::report(options().device).peak_by[int(MemoryClass::saved)];
            return Ran{numbers(W.grad()), piped.max_live[0], double(saved) / 1024, piped.loss};
        });
    }
    template <class After> void three_runs(ProcessGroup& here, const After& after_each) const {
        Pipe<real> pipe(here, {stage_of(here.rank())}, by(in_turns));
        for (int r = 0; r < 3; ++r) pipe.run(m, batches_of(r), loss), after_each();
    }

    template <class Around> std::vector<Weights> updated_by(const Around& around) const {
        return on_ranks([&](ProcessGroup& here) {
            const Tensor W = layer_without_gradient(here.rank());
            Sgd<real> sgd({W}, {.learning_rate = 0.5});
            Window<real> window(sgd);
            around(here, window);
            return numbers(W.value());
        });
    }

    // Runs all layers in one process without a pipe, and returns the results of each layer.
    std::vector<Ran> one_after_the_other(int first, int until) const {
        const std::vector<Tensor> all = drawn_layers();
        double sum = 0;
        for (int k = first; k < until; ++k) {
            const Tensor one = loss(through(all, batch(k)), k);
            one.backward();
            sum += double(one.item());
        }
        std::vector<Ran> ran;
        for (const Tensor& W : all) ran.push_back({numbers(W.grad()), 1, 0, sum});
        return ran;
    }
    std::vector<Weights> updated_alone() const {
        const std::vector<Tensor> all = drawn_layers();
        Sgd<real> sgd(all, {.learning_rate = 0.5});
        Window<real> window(sgd);
        for (int k = 0; k < 3 * m; ++k) window.add(Loss<Array<real>>{loss(through(all, batch(k)), k), items});
        window.finish();
        std::vector<Weights> weights;
        for (const Tensor& W : all) weights.push_back(numbers(W.value()));
        return weights;
    }
    static Tensor through(const std::vector<Tensor>& all, const Array<real>& x) {
        Tensor h = constant(x);
        for (const Tensor& W : all) h = tanh(matmul(h, W));
        return h;
    }

    // ---- tools: arrays and drawings -----------------------------------------------------------------------

    static constexpr Timetable::Schedule gpipe = Timetable::Schedule::gpipe,
                                         in_turns = Timetable::Schedule::one_forward_one_backward;
    static Pipe<real>::Options by(Timetable::Schedule schedule) { return {schedule, options().device}; }

    static Array<real> uniform(int stream) {
        return tally::uniform<real>({rows, width}, -0.5, 0.5,
                                    {.seed = options().seed, .stream = std::uint64_t(stream)})
            .value()
            .to(options().device);
    }
    static Array<real> batch(int k) { return uniform(100 + k); }
    Pipe<real>::Input batches_of(int run) const {
        return [first = run * m](int k) { return batch(first + k); };
    }
    static Tensor loss(const Tensor& h, int) { return sum(h * h) / 2; }
    // items of a micro-batch
    const Tensor items = Tensor(Array<real>({}, {real(rows)}).to(options().device));

    std::vector<Tensor> drawn_layers() const {
        std::vector<Tensor> all;
        for (int s = 0; s < p; ++s) all.push_back(parameter(uniform(s)));
        return all;
    }
    const std::vector<Tensor> layers = drawn_layers();  // each process uses its own layer

    const Tensor& layer_without_gradient(int rank) const {
        const Tensor& W = layers[std::size_t(rank)];
        W.zero_grad();
        return W;
    }
    static Weights numbers(const Array<real>& array) {
        Weights all{};
        std::ranges::copy(array.to_vector(), all.begin());
        return all;
    }
    static void divide(const Tensor& W, int by) {
        const Array<real> less = (constant(W.grad()) / double(by)).value();
        W.zero_grad();
        W.backward(less);
    }
    double step_length(const std::vector<Weights>& after, std::size_t stage) const {
        const Weights before = numbers(drawn_layers()[stage].value());
        double sum = 0;
        for (std::size_t i = 0; i < before.size(); ++i)
            sum += std::pow(double(after[stage][i]) - double(before[i]), 2);
        return std::sqrt(sum);
    }
    static int power(int base, int exponent) { return exponent == 0 ? 1 : base * power(base, exponent - 1); }

    // Returns the steps of a stage in order, such as "F0 F1 B0 B1 ".
    static std::string order_of(const std::vector<Timetable::Step>& steps) {
        std::string text;
        for (const Timetable::Step& each : steps) text += each.what + std::to_string(each.micro) + " ";
        return text;
    }

    void drawn(const std::string& name, const std::string& title, const Timetable& table) const {
        const std::string kinds = "FBW";
        Lanes lanes{{"F: forward", "B: backward"}, {}};
        if (table.stages[0].back().what == 'W')
            lanes.kinds = {"F: forward", "B: to the input", "W: to the weights"};
        std::istringstream drawing(table.drawing(1));
        std::string text, lane;
        for (std::size_t s = 0; std::getline(drawing, lane); ++s) {
            text += say("stage {} |{}\n", s, lane);
            lanes.lanes.push_back({say("stage {}", s), say("keeps {}", table.max_live[s]), {}});
            for (const Timetable::Step& each : table.stages[s])
                lanes.lanes[s].work.push_back({kinds.find(each.what), each.begin, each.end,
                                               each.what == 'W' ? "" : std::to_string(each.micro)});
        }
        const std::string heading =
            say("{}: {} stages, {}", title, p, many(table.stages[0].back().micro + 1, "micro-batches"));
        graph(name, sheet_of(heading, lanes).svg(), "", text);
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    static double dots(const std::string& drawing) {
        const auto count = [&](char what) {
            return double(std::count(drawing.begin(), drawing.end(), what));
        };
        return count('.') / (double(drawing.size()) - count('\n'));
    }
    void check_bubble(Timetable::Schedule schedule, const Timetable& table) const {
        check_close("counted in the picture", dots(table.drawing(1)), (p - 1.0) / (m + p - 1), 1e-12);
        check_equal("units in all", table.seconds, 3.0 * (m + p - 1));
        const auto did = on_ranks([&](ProcessGroup& here) {
            Pipe<real> pipe(here, {stage_of(here.rank())}, by(schedule));
            return order_of(pipe.run(m, batches_of(0), loss).steps);
        });
        bool so = did.size() == layers.size();
        for (std::size_t s = 0; s < layers.size(); ++s) so = so && did[s] == order_of(table.stages[s]);
        check("each process did what its lane says", so);
    }
    // F, B and W take equal times. In the schedule ZB-H1, W fills a part of the time in which stages wait.
    void require_valid_split(const Timetable& table) const {
        const double waits = p - 1 + std::max(0, p - m);
        check_close("counted in the picture", dots(table.drawing(1)), waits / (3 * m + waits), 1e-12);
        check_equal("keeps", table.max_live, std::vector<int>(layers.size(), std::min(p, m)));
    }
    // A stage saves its input and its output for each micro-batch.
    void check_kept(const Table& kept) const {
        const double KiB = 2.0 * rows * width * sizeof(real) / 1024;
        std::vector<double> all, few, all_saved, few_saved;
        for (int s = 0; s < p; ++s) {
            all.push_back(m), few.push_back(std::min(p - s, m));
            all_saved.push_back(all.back() * KiB), few_saved.push_back(few.back() * KiB);
        }
        check_equal("GPipe keeps all", kept.column("GPipe keeps"), all);
        check_equal("1F1B keeps p - s of them", kept.column("1F1B keeps"), few);
        check_equal("GPipe, bytes", kept.column("GPipe, KiB kept"), all_saved);
        check_equal("1F1B, bytes", kept.column("1F1B, KiB kept"), few_saved);
    }

    // Computes the mean of runs without a pipe. The error bound includes 3 m additions and three divisions.
    void check_average(const std::vector<Weights>& got) const {
        std::vector<double> all, expected(layers.size() * Weights{}.size()), bound = expected;
        const auto add = [](std::vector<double>& to, const std::vector<Ran>& stages, auto value) {
            for (std::size_t i = 0; i < to.size(); ++i)
                to[i] += value(double(stages[i / Weights{}.size()].gradient[i % Weights{}.size()]));
        };
        for (int r = 0; r < 3; ++r) {
            const double weight = std::pow(m, r - 3);
            add(expected, one_after_the_other(r * m, r * m + m), [&](double g) { return weight * g; });
            for (int k = r * m; k < r * m + m; ++k)
                add(bound, one_after_the_other(k, k + 1),
                    [&](double g) { return weight * std::abs(g) * roundings(4 * m + 3); });
        }
        for (const Weights& stage : got) all.insert(all.end(), stage.begin(), stage.end());
        check_close("g1/m^3 + g2/m^2 + g3/m", all, expected, bound);
    }
};

const RegisterLesson<ThePipe> lesson({.number = 25,
                                      .slug = "the-pipe",
                                      .title = "a model in stages",
                                      .minutes = 25,
                                      .steps = 9,
                                      .parameters = {
                                          whole_number("ranks", "processes, with a stage each", 4, 2, 5),
                                          whole_number("micro", "micro-batches of a run", 8, 2, 12)}});

}  // namespace
