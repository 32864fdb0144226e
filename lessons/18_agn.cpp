// Lesson 18: accumulated gradient normalisation changes weights within an update, but accumulation does not.
#include <array>
#include <set>

#include "course/kit/pictures.hpp"
#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Agn {
    const double rate = setting("rate");

    void talk() {
        step(say("Four items, f = a (w - c)^2 / 2. Accumulated at w = 0, one step of rate {}.", rate));
        auto items = table({"item", "a", "c", "slope at w = 0"});
        for (std::size_t i = 0; i < four.size(); ++i) {
            auto w = weight(0);
            items.row(i + 1, four[i].a, four[i].c, double(grad(f(four[i], w), {w}).front().item()));
        }
        const real plain = accumulated(four, 0);
        show("w after the update", plain);
        check_slopes(items, plain);

        step("Instead, a step after each item, its slope taken where w is by then:");
        speaks = true;
        const auto path = local_steps(four, 0);

        const auto exact = path_in_double(four);
        predict("After the four items w is at",
                {right(four_digits(exact.back())).within(std::round(rate * 5000) / 1e5),
                 wrong(4 * rate, say("All four slopes at 0. But after the first item w is at {}.", rate)),
                 wrong(rate, "That is one step by the mean of the slopes."),
                 wrong(four_digits(exact[1]), "So far it is after two items.")},
                hint("Where is w when the second slope is taken?",
                     say("w goes 0, {}, {}, ...: each time minus {} a (w - c).", rate, exact[1], rate)),
                say("The second slope is taken at {}, no longer at 0.", rate));
        auto moving = table({"item", "w after it", settings_changed() ? "by hand" : "in whole numbers"});
        for (std::size_t i = 0; i < four.size(); ++i)
            moving.row(i + 1, path[i],
                       settings_changed() ? Cell(exact[i]) : Cell(in_whole_numbers(four, i + 1)));
        check_path(path);
        note("Adding up steps is not adding up gradients at one w.");

        step("Accumulated gradient normalisation commits that way, divided by lambda, its steps.");
        code(2);
        const real lambda = 4, before = 0, after = local_steps(four, 0).back();
        const real committed = before + (after - before) / lambda;
        auto three = table({"", "w after the four items"});
        three.row("plain accumulation", plain);
        three.row("AGN, lambda = 4", committed);
        three.row("local SGD: all of the way", path.back());
        check_close("a quarter of the way", committed, exact.back() / 4, bound(5));
        if (!settings_changed()) check_close("0.1038", committed, 4152.0 / 10000 / 4, bound(5));
        check("not the step of accumulation", std::abs(double(committed - plain)) > 0.2 * rate * rate);
        drawn(items.column("slope at w = 0"), path, plain, committed);
        note("Hermans, Spanakis and Moeckel, 2017: for workers that do not wait for one another.");

        predict(
            "When do AGN and plain accumulation take the same step?",
            {right("if slopes are constant"),
             wrong("if the rate is small", "Then they are near each other. The same they are not."),
             wrong("if lambda is large", "lambda divides both. The second slope is still taken elsewhere."),
             wrong("if items are shuffled",
                   "Any order has a second item, and its slope is not at the start.")},
            hint("Where is the second slope taken, in the one and in the other?",
                 "Think of a loss for which it does not matter where a slope is taken."),
            "What differs is where the slopes are taken. With lambda = 1 there is one slope only.");
        auto same = table({"", "plain", "AGN"});
        std::vector<real> plain_alone, agn_alone;
        for (const Item& item : four) {
            plain_alone.push_back(accumulated({item}, 0));
            agn_alone.push_back(agn({item}, 0));
        }
        same.row("lambda = 1, item 1", plain_alone[0], agn_alone[0]);
        same.row("lambda = 1, item 2", plain_alone[1], agn_alone[1]);
        auto frozen = weight(0), moved = weight(0);  // the line -a c w has the slope of f at w = 0
        for (const Item& item : four) (frozen * (-item.a * item.c / 4)).backward();
        sgd_step({frozen}, rate);
        for (const Item& item : four) {
            (moved * (-item.a * item.c)).backward();
            sgd_step({moved}, rate);
            moved.zero_grad();
        }
        const real of_lines = moved.item() / 4;
        same.row("four straight lines", frozen, of_lines);
        check_equal("lambda = 1: the same bits", agn_alone, plain_alone);
        check_close("constant slopes", {of_lines, frozen.item()}, {real(rate), real(rate)}, bound(4));

        predict("The same four items in another order. Which step is another one?",
                {right("AGN's"), wrong("the plain one", "Four slopes at one w: a sum has no order."),
                 wrong("both", "One of them takes all its slopes at the same w."),
                 wrong("neither", "One of them walks: its second slope depends on the first step.")},
                hint("Whose second slope depends on the first item?",
                     "Add in another order; walk in another order."),
                "A sum does not ask in which order; a path does.");
        std::vector<int> order{0, 1, 2, 3};
        std::vector<real> plain_steps, agn_steps;
        std::vector<double> by_order;
        std::set<std::int64_t> different;
        do {
            Items in_order;
            for (const int i : order) in_order.push_back(four[static_cast<std::size_t>(i)]);
            plain_steps.push_back(accumulated(in_order, 0));
            agn_steps.push_back(agn(in_order, 0));
            by_order.push_back(path_in_double(in_order).back() / 4);
            different.insert(std::llround(by_order.back() * 1e9));
        } while (std::next_permutation(order.begin(), order.end()));
        auto spread = table({"24 orders", "smallest step", "largest step"});
        const auto [low, high] = std::minmax_element(plain_steps.begin(), plain_steps.end());
        const auto [least, most] = std::minmax_element(agn_steps.begin(), agn_steps.end());
        spread.row("plain", *low, *high);
        spread.row("AGN", *least, *most);
        show("different AGN steps", different.size());
        check_equal("plain: one step", plain_steps, std::vector<real>(24, plain));
        check_close("AGN, exact", agn_steps, by_order, bound(5));
        check("AGN: many different ones", different.size() > 6, std::to_string(different.size()));

        const int updates = std::max(200, int(std::lround(20 / rate)));
        predict(
            say("\"A better direction towards local minima\": who is at the minimum, 0.5, after {} updates?",
                updates),
            {right("plain only"),
             wrong("AGN only", "AGN stands still where its path is closed. Is that 0.5?"),
             wrong("both", "At 0.5 the slopes add up to 0. Do the steps of a path?"),
             wrong("neither", "One of the two stops exactly where the mean slope is 0.")},
            hint("Where does each of them stand still?",
                 "The one where four slopes add up to 0, the other where four steps do."),
            "AGN rests where its path ends where it began.");
        double at_rest = 0, agn_rests = 0, local_rests = 0;
        for (int update = 0; update < updates; ++update) {
            at_rest = double(accumulated(four, at_rest));
            agn_rests = double(agn(four, agn_rests));
            local_rests = double(local_steps(four, local_rests).back());
        }
        const PathEnd pass = closed_form(four, rate);
        auto rests = table({"", say("after {} updates", updates), "the formula"});
        rests.row("plain", at_rest, 4.0 / 8);
        rests.row("AGN", agn_rests, pass.from_0 / (1 - pass.slope));
        double slowly = 0;
        const int more = std::max(1500, int(std::lround(150 / rate)));
        for (int update = 0; update < more; ++update) slowly = double(agn(four, slowly, rate / 10));
        const PathEnd slow = closed_form(four, rate / 10);
        rests.row(say("AGN, rate {}, {} updates", rate / 10, more), slowly, slow.from_0 / (1 - slow.slope));
        rests.row("local SGD", local_rests, pass.from_0 / (1 - pass.slope));
        check_rests(at_rest, {agn_rests, local_rests}, slowly);
        note("The sentence is from that paper's abstract, about its local steps.");
    }

    // An item has the loss f(w) = a (w - c)^2 / 2, whose slope is a (w - c).
    struct Item {
        int a;
        double c;
    };
    using Items = std::vector<Item>;
    inline static const Items four{{1, 1}, {2, -1}, {4, 0.5}, {1, 3}};
    inline static bool speaks = false;  // whether the next path shows its code

    static Tensor f(const Item& item, const Tensor& w) {
        const auto away = w - item.c;
        return item.a * 0.5 * away * away;
    }

    // Accumulates the gradients of all items for the same w, makes one update, and returns the new w.
    real accumulated(const Items& items, double start) const {
        auto w = weight(start);
        Sgd optimizer({w}, {.learning_rate = rate});
        Window window(optimizer, {.micro_batches = static_cast<std::int64_t>(items.size())});
        for (const Item& item : items) window.add(Loss(f(item, w)));
        window.finish();
        return w.item();
    }

    // Updates w after each item, and returns w after each update.
    std::vector<real> local_steps(const Items& items, double start) const {
        return local_steps(items, start, rate);
    }
    static std::vector<real> local_steps(const Items& items, double start, double step_rate) {
        auto w = weight(start);
        std::vector<real> path;
        for (const Item& item : items) {
            if (std::exchange(speaks, false)) code(3);
            f(item, w).backward();
            sgd_step({w}, step_rate);
            w.zero_grad();
            path.push_back(w.item());
        }
        return path;
    }

    // Returns w after accumulated gradient normalisation, which adds the mean of the local steps to w.
    real agn(const Items& items, double start) const { return agn(items, start, rate); }
    static real agn(const Items& items, double start, double step_rate) {
        const auto lambda = static_cast<real>(items.size());
        const real before = static_cast<real>(start), after = local_steps(items, start, step_rate).back();
        return before + (after - before) / lambda;
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static Tensor weight(double w) {
        return parameter(Array<real>({1}, {static_cast<real>(w)}, options().device));
    }

    // Draws four steps that all begin at w = 0, and four steps that begin at the end of the previous step.
    void drawn(const Numbers& slopes_at_0, const std::vector<real>& path, real plain, real committed) const {
        Walks all{"w",
                  {{"accumulated: all slopes at w = 0",
                    "a quarter of their sum: w = " + short_number(double(plain)),
                    {}},
                   {"AGN: each slope where w is by then",
                    "a quarter of the way: w = " + short_number(double(committed)),
                    {}}}};
        double from = 0;
        for (std::size_t i = 0; i < path.size(); ++i) {
            const std::string item = "item " + std::to_string(i + 1) + ": ";
            const double alone = -rate * values(slopes_at_0)[i], to = double(path[i]);
            all.walks[0].steps.push_back({item + short_number(0) + " to " + short_number(alone), 0, alone});
            all.walks[1].steps.push_back({item + short_number(from) + " to " + short_number(to), from, to});
            from = to;
        }
        graph("path", say("Where each slope is taken: four steps of rate {}, item after item", rate), all);
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // Returns the exact w as a fraction. After k local steps with rate 0.1, w is a multiple of 10^-k.
    static std::string in_whole_numbers(const Items& items, std::size_t steps) {
        std::int64_t w = 0, unit = 1;  // w / unit, from 0
        for (std::size_t i = 0; i < steps; ++i, unit *= 10)
            w = w * (10 - items[i].a) + unit * std::llround(items[i].a * items[i].c);
        return std::to_string(w) + " / 10^" + std::to_string(steps);
    }

    // Returns w after each local step, computed in double for any learning rate.
    std::vector<double> path_in_double(const Items& items) const {
        std::vector<double> path;
        double w = 0;
        for (const Item& item : items) path.push_back(w -= rate * item.a * (w - item.c));
        return path;
    }
    static double four_digits(double w) { return std::round(w * 1e4) / 1e4; }

    // The local steps of all items together change w to slope * w + from_0.
    struct PathEnd {
        double slope = 1, from_0 = 0;
    };
    static PathEnd closed_form(const Items& items, double step_rate) {
        PathEnd pass;
        for (const Item& item : items) {
            pass.slope *= 1 - step_rate * item.a;
            pass.from_0 = pass.from_0 * (1 - step_rate * item.a) + step_rate * item.a * item.c;
        }
        return pass;
    }

    // In all cases |w| is below 3 and slopes are below 12. A local step rounds 6 times.
    static double bound(int local) { return roundings(6 * local) * 3; }

    void check_rests(double at_rest, const std::vector<double>& rests, double slowly) const {
        const PathEnd pass = closed_form(four, rate), slow = closed_form(four, rate / 10);
        // An update multiplies earlier errors by f, so all errors together are at most the error of an update
        // divided by 1 - f. The number 1 - f is 2 * rate for accumulation, and (1 - slope) / 4 for AGN.
        const double exact = pass.from_0 / (1 - pass.slope);
        check_close("4/8", at_rest, 4.0 / 8, 1 / (2 * rate) * bound(4));
        check_close("where the path is closed", rests, {exact, exact}, 4 / (1 - pass.slope) * bound(5));
        if (!settings_changed()) check_close("519/764", rests, {519.0 / 764, 519.0 / 764}, 7 * bound(5));
        check("AGN does not rest at the minimum", std::abs(rests[0] - 0.5) > 0.1 * rate);
        check_close("at a tenth of the rate", slowly, slow.from_0 / (1 - slow.slope),
                    4 / (1 - slow.slope) * bound(5));
    }

    void check_slopes(const Table& items, real plain) const {
        std::vector<double> at_0;
        for (const Item& item : four) at_0.push_back(-item.a * item.c);
        check_close("slopes are -a c", items.column("slope at w = 0"), at_0, bound(1));
        check_close(say("{}: mean slope -1", rate), plain, rate, bound(4));
    }

    void check_path(const std::vector<real>& path) const {
        check_close("the whole path", path, path_in_double(four), bound(4));
        if (!settings_changed()) check_close("0.4152", path.back(), 4152.0 / 10000, bound(4));
    }
};

const RegisterLesson<Agn> lesson({.number = 18,
                                  .slug = "agn",
                                  .title = "accumulated gradient normalisation",
                                  .minutes = 10,
                                  .steps = 7,
                                  .parameters = {real_number("rate", "learning rate", 0.1, 0.05, 0.2)}});

}  // namespace
