// Lesson 17: a wrapper around an optimizer must know whether to compute a mean, and where an epoch ends.
#include <unistd.h>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>

#include "accumulate.hpp"
#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct WrapperAndSchedule {
    const std::int64_t n = setting("micro"),
                       b = 8 / n;  // micro-batches of the eight items, items in each micro-batch

    void talk() {
        step(say("An optimizer of rate 0.02, wrapped: step() updates every {} time.", n == 2   ? "second"
                                                                                      : n == 4 ? "fourth"
                                                                                               : "eighth"));
        {
            const Line line;
            Sgd sgd({line.w}, {.learning_rate = 0.02});
            code(1);
            Accumulate optimizer(sgd, n, Reduction::mean);
            note(optimizer.announcement());
            check("announced",
                  optimizer.announcement() == say("Wrapping 'SGD' optimizer with GA of {} steps", n));
            auto calls = table({"items", "loss", "w.grad, undivided", "updated", "w"});
            for (const Items& items : split(Items::in_order(8), b)) {
                const auto loss = line.loss(items).mean();
                loss.backward();
                const auto gradient = line.w.grad().item();
                const bool updated = optimizer.step(items.count());
                calls.row(as_words(rows(line.x, items)), loss, gradient, updated, line.w);
            }
            check_first(line.w);
        }

        step("A wrapper known for two frameworks divides by N in one, and only skips in the other.");
        speaks = true;
        after_an_epoch(b, n, Reduction::sum);

        predict(say("With the one that only skips, after the {} micro-batches w is", to_text(n)),
                {right(2.04 * double(n)).within(0.005), wrong(2.04, "That is the one that divides."),
                 wrong(2.04 / double(n), "Who does not divide goes farther, not less far."),
                 wrong(2, "That is where w should be; even the one that divides goes a little past it.")},
                hint(say("What stands in w.grad after {} backward passes that nobody divides?", to_text(n)),
                     "w began at 0, and its first step by the mean was 2.04."),
                say("Skipped steps leave the sum of {} means: {} times 2.04.", to_text(n), n));
        auto ways = table({"8 items as", "N", "reduction", "w"});
        std::vector<double> found;
        const auto way = [&](std::int64_t size, std::int64_t steps, Reduction reduction) {
            found.push_back(double(after_an_epoch(size, steps, reduction)));
            ways.row(std::to_string(8 / size) + " x " + std::to_string(size), steps,
                     reduction == Reduction::mean ? "mean" : "sum", digits(found.back()));
        };
        way(8, 1, Reduction::mean);
        way(b, n, Reduction::mean);
        way(b, n, Reduction::sum);
        check_ways(found);
        note("One name, two meanings: w should be 2. Here the reduction is said, or it does not compile.");

        step("A schedule: from which epoch on an update takes how many micro-batches.");
        std::vector<std::int64_t> per_update, updates;
        {
            const Line line;
            Sgd sgd({line.w}, {.learning_rate = 0.002});
            code(1);
            Accumulate optimizer(sgd, {{0, 8}, {4, 2}}, Reduction::mean);

            predict("How many updates do 8 micro-batches give in epoch 3?",
                    {right(1), wrong(4, "So it is from epoch 4 on: 8 / 2."),
                     wrong(8, "8 is how many micro-batches an update takes."),
                     wrong(2, "2 is how many an update takes, and only from epoch 4 on.")},
                    hint("Which of the two entries holds in epoch 3?", "Epoch 3 is before the second entry."),
                    "From epoch 0 on 8 each, from epoch 4 on 2.");
            auto epochs = table({"epoch", "micro-batches an update", "updates", "loss after it"});
            for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
                optimizer.begin_epoch(epoch);
                per_update.push_back(optimizer.window().planned_micro_batches());
                updates.push_back(0);
                for (const Items& item : split(Items::in_order(8), 1)) {
                    line.loss(item).mean().backward();
                    updates.back() += optimizer.step(1);
                }
                epochs.row(epoch, per_update.back(), updates.back(), line.loss(Items::in_order(8)).mean());
            }
        }
        check_equal("N is 8 8 8 8 2", per_update, {8, 8, 8, 8, 2});
        check_equal("updates", updates, {1, 1, 1, 1, 4});

        step("What makes no sense is refused, before anything is trained.");
        using Steps = Trainer<real>::AccumulationSteps;
        const std::string nothing = refusal([] { Steps{std::map<std::int64_t, std::int64_t>()}; });
        const std::string none = refusal([] { Steps{0}; }), negative = refusal([] { Steps{-4}; });
        const std::string no_epoch = refusal([] { Steps({{-1, 8}}); });
        show("{}", nothing);
        show("0", none);
        show("-4", negative);
        show("{{-1, 8}}", no_epoch);
        bool all = true;
        for (const std::string& said : {nothing, none, negative, no_epoch})
            all = all && said.starts_with("[accumulate]");
        check("each is refused", all);
        check_equal("{{4, 2}}, before and from epoch 4 on", {Steps({{4, 2}}).at(3), Steps({{4, 2}}).at(4)},
                    {1, 2});

        step("An epoch of 8 micro-batches, and N = 3: two are left over.");
        speaks = true;
        after_tail(Tail::scale, false);

        predict(
            "The epoch ends, and nobody tells the wrapper. The two that are left over",
            {right("join the next epoch"),
             wrong("are used at once", "Who should know that the epoch has ended? step() cannot."),
             wrong("are lost at once", "They stand in w.grad, and in the count. Nobody has cleared them."),
             wrong("stop the training", "Two of three is a usual state: it waits for the third.")},
            hint("Can step() know that an epoch has ended?",
                 "2 of 3 are there; then more micro-batches come."),
            "step() cannot know that it ended. flush() says so, and a tail policy what then.");
        auto tails = table({"tail", "updates", "left open", "w", "w an epoch later"});
        std::vector<double> ends, later;
        const auto tail = [&](const char* name, Tail policy, bool flushed) {
            const AfterTail ended = after_tail(policy, flushed);
            ends.push_back(ended.w), later.push_back(ended.later);
            tails.row(name, ended.updates, ended.left_open, digits(ended.w), digits(ended.later));
        };
        tail("nobody says so", Tail::scale, false);
        tail("scale", Tail::scale, true);
        tail("drop", Tail::drop, true);
        tail("carry", Tail::carry, true);
        check_tails(tails, ends, later);
        note("Say nothing, and it is carry by accident; after the last epoch they are lost.");

        step("Interrupted with two of three micro-batches in the window, and resumed.");
        const auto file = std::filesystem::temp_directory_path() /
                          ("tally-lesson-17-" + std::to_string(::getpid()) + ".state");
        Run whole, before, after;
        whole.train(0, 24);
        before.train(0, 14);
        TrainingState state;
        code(2);
        before.optimizer.window().save(state, "training");
        state.save(file.string());
        after.optimizer.window().load(TrainingState::load(file.string()), "training");
        std::filesystem::remove(file);
        auto runs = table({"", "seen", "in the window", "w.grad", "w"});
        const auto row = [&](const char* name, int seen, const Run& run) {
            runs.row(name, seen, run.optimizer.window().micro_batches(), gradient(run.line.w), run.line.w);
        };
        row("saved", 14, before);
        row("loaded", 14, after);
        after.train(14, 24);
        row("resumed", 24, after);
        row("never interrupted", 24, whole);
        check_equal("the same bits", after.line.w.value(), whole.line.w.value());
        check_equal("and as many updates", after.optimizer.window().updates(),
                    whole.optimizer.window().updates());
    }

    // Eight items x have the targets y = 2x. The correct value of the model's only weight is 2.
    struct Line {
        Array<real> x, y;
        Tensor w;

        Line()
            : x({8}, {1, 2, 3, 4, 5, 6, 7, 8}, options().device),
              y({8}, {2, 4, 6, 8, 10, 12, 14, 16}, options().device),
              w(parameter(Array<real>::zeros({}, options().device))) {}
        Loss<Array<real>> loss(const Items& items) const {
            return mse<real>(w * constant(rows(x, items)), rows(y, items));
        }
    };

    // Trains one epoch. After every `steps` micro-batches, step() makes an update.
    static real after_an_epoch(std::int64_t size, std::int64_t steps, Reduction reduction) {
        const Line line;
        Sgd sgd({line.w}, {.learning_rate = 0.02});
        Accumulate optimizer(sgd, steps, reduction);
        for (const Items& items : split(Items::in_order(8), size)) {
            if (std::exchange(speaks, false)) code(2);
            line.loss(items).mean().backward();
            optimizer.step(items.count());
        }
        return line.w.item();
    }

    // Results of an epoch with N = 3 and micro-batches of one item. `later` is w after a second epoch.
    struct AfterTail {
        std::int64_t updates, left_open;
        double w, later;
    };
    static AfterTail after_tail(Tail policy, bool flushed) {
        const Line line;
        Sgd sgd({line.w}, {.learning_rate = 0.002});
        Accumulate optimizer(sgd, 3, Reduction::mean, policy);
        const auto epoch = [&] {
            for (const Items& item : split(Items::in_order(8), 1)) {
                if (std::exchange(speaks, false)) code(2);
                line.loss(item).mean().backward();
                optimizer.step(1);
            }
            if (flushed) optimizer.flush();
            return double(line.w.item());
        };
        const double w = epoch();
        const AfterTail found{optimizer.window().updates(), optimizer.window().micro_batches(), w, 0};
        return {found.updates, found.left_open, w, epoch()};
    }

    inline static bool speaks = false;  // whether the next run shows its code

    // Trains with momentum over three epochs of 8 micro-batches. With N = 3, an update may contain
    // micro-batches of two epochs. The run can stop before any micro-batch and continue from a file.
    struct Run {
        Line line;
        Sgd<real> sgd{{line.w}, {.learning_rate = 0.002, .momentum = 0.9}};
        Accumulate<real> optimizer{sgd, 3, Reduction::mean, Tail::carry};

        void train(std::int64_t from, std::int64_t to) {
            for (std::int64_t micro = from; micro < to; ++micro) {
                line.loss(Items(micro % 8, micro % 8 + 1)).mean().backward();
                optimizer.step(1);
                if (micro % 8 == 7) optimizer.flush();
            }
        }
    };

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static std::string refusal(const std::function<void()>& attempt) {
        try {
            attempt();
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing";
    }

    static std::string as_words(const Array<real>& numbers) {
        std::string text;
        for (const real number : numbers.to_vector())
            text += (text.empty() ? "" : " ") + Filling(double(number)).text;
        return text;
    }

    static std::string digits(double number) {
        char text[32];
        std::snprintf(text, sizeof text, "%.5f", number);
        return text;
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    static void check_first(const Tensor& w) {
        // The gradient for w = 0 is the mean of -4 x^2, which is -102. The learning rate is 0.02. Eight
        // products, seven additions and the learning rate cause fewer than 20 roundings.
        check_close("w is 0.02 * 102", w, 2.04, roundings(20) * 2.04);
    }

    void check_ways(const std::vector<double>& found) const {
        const double of_sum = 2.04 * double(n);
        check_close("full batch, mean, sum", found, {2.04, 2.04, of_sum}, roundings(20) * of_sum);
        check("both ways 2.04000", digits(found[0]) == "2.04000" && digits(found[1]) == "2.04000");
    }

    static void check_tails(const Table& tails, const std::vector<double>& ends,
                            const std::vector<double>& later) {
        check_equal("updates", tails.column("updates"), {2, 3, 2, 2});
        check_equal("left open", tails.column("left open"), {2, 0, 0, 2});
        // An update multiplies the error 2 - w by 1 - 0.004 mean(x^2), where x are the items of this update.
        const double two = 2 - 2 * (1 - 0.004 * 14 / 3) * (1 - 0.004 * 77 / 3),
                     three = 2 - (2 - two) * (1 - 0.004 * 113 / 2);
        check_close("w, in exact decimals", ends, {two, three, two, two}, roundings(60) * 4);
        check("saying nothing is carry by accident", later[0] == later[3]);
        check("and neither scale nor drop", later[3] != later[1] && later[3] != later[2]);
    }
};

const RegisterLesson<WrapperAndSchedule> lesson(
    {.number = 17,
     .slug = "wrapper-and-schedule",
     .title = "a wrapper and a schedule",
     .minutes = 15,
     .steps = 9,
     .parameters = {
         one_of("micro", "micro-batches of the eight items, for the first wrapper", 4, {2, 4, 8})}});

}  // namespace
