// Lesson 18: accumulated gradient normalisation lets the weights move within the window;
// accumulation does not.
#include <array>
#include <set>

#include "tally/lesson/pictures.hpp"
#include "tally/lesson/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Agn {
    void talk() {
        step("Four items, f = a (w - c)^2 / 2. Accumulated at w = 0, one step of rate 0.1.");
        auto items = table({"item", "a", "c", "slope at w = 0"});
        for (std::size_t i = 0; i < four.size(); ++i) {
            auto w = weight(0);
            items.row(i + 1, four[i].a, four[i].c, double(grad(f(four[i], w), {w}).front().item()));
        }
        const real plain = accumulated(four, 0);
        show("w after the update", plain);
        check_slopes(items, plain);

        predict("A step after each item, its slope taken where w is by then. w ends at",
                {right(0.4152).within(0.005),
                 wrong(0.4, "All four slopes at 0. But after the first item w is at 0.1."),
                 wrong(0.1, "That is one step by the mean of the slopes."),

                 wrong(-0.12, "So far it is after two items.")},
                hint("Where is w when the second slope is taken?",
                     "w goes 0, 0.1, -0.12, ...: each time minus 0.1 a (w - c)."),
                "The second slope is taken at 0.1, no longer at 0.");
        const auto path = local_steps(four, 0);
        const auto whole = in_whole_numbers(four);
        auto moving = table({"item", "w after it", "in whole numbers"});
        for (std::size_t i = 0; i < four.size(); ++i) {
            moving.row(i + 1, path[i], std::to_string(whole[i]) + " / 10^" + std::to_string(i + 1));
        }
        check_path(path);
        note("Adding up steps is not adding up gradients at one w.");

        step("Accumulated gradient normalisation commits the sum of local steps / lambda.");
        code(2);
        const real lambda = 4, before = 0, after = local_steps(four, 0).back();
        const real committed = before + (after - before) / lambda;
        auto three = table({"", "w after the four items"});
        three.row("plain accumulation", plain);
        three.row("AGN, lambda = 4", committed);
        three.row("local SGD", path.back());
        check_close("0.1038", committed, 4152.0 / 10000 / 4, bound(5));
        check("not the step of accumulation", std::abs(double(committed - plain)) > 0.003);
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
        auto frozen = weight(0), moved = weight(0);  // the lines -a c w, whose slopes are those at w = 0
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
        check_close("constant slopes", {of_lines, frozen.item()}, {real(0.1), real(0.1)}, bound(4));

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
            different.insert(in_whole_numbers(in_order).back());
            by_order.push_back(double(in_whole_numbers(in_order).back()) / 40000);
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

        predict("\"A better direction towards local minima\": who is at 0.5, after 200 updates?",
                {right("plain only"),
                 wrong("AGN only", "AGN stands still where its path is closed. Is that 0.5?"),
                 wrong("both", "At 0.5 the slopes add up to 0. Do the steps of a path?"),
                 wrong("neither", "One of the two stops exactly where the mean slope is 0.")},
                hint("Where does each of them stand still?",
                     "The one where four slopes add up to 0, the other where four steps do."),
                "AGN rests where its path ends where it began.");
        double at_rest = 0, agn_rests = 0, local_rests = 0;
        for (int update = 0; update < 200; ++update) {
            at_rest = double(accumulated(four, at_rest));
            agn_rests = double(agn(four, agn_rests));
            local_rests = double(local_steps(four, local_rests).back());
        }
        const PathEnd pass = closed_form(four, rate);
        auto rests = table({"", "after 200 updates", "the formula"});
        rests.row("plain", at_rest, 4.0 / 8);
        rests.row("AGN", agn_rests, pass.from_0 / (1 - pass.slope));
        double slowly = 0;
        for (int update = 0; update < 1500; ++update) slowly = double(agn(four, slowly, rate / 10));
        const PathEnd slow = closed_form(four, rate / 10);
        rests.row("AGN, rate 0.01, 1500 updates", slowly, slow.from_0 / (1 - slow.slope));
        rests.row("local SGD", local_rests, pass.from_0 / (1 - pass.slope));
        check_rests(at_rest, {agn_rests, local_rests}, slowly);
        note("The sentence is from that paper's abstract, about its local steps.");
    }

    // One item: f(w) = a (w - c)^2 / 2, whose slope is a (w - c).
    struct Item {
        int a;
        double c;
    };
    using Items = std::vector<Item>;
    inline static const Items four{{1, 1}, {2, -1}, {4, 0.5}, {1, 3}};
    static constexpr double rate = 0.1;

    static Tensor f(const Item& item, const Tensor& w) {
        const auto away = w - item.c;
        return item.a * 0.5 * away * away;
    }

    // One update from all items at one frozen w: plain accumulation.
    static real accumulated(const Items& items, double start) {
        auto w = weight(start);
        Sgd optimizer({w}, {.learning_rate = rate});
        Window window(optimizer, {.micro_batches = static_cast<std::int64_t>(items.size())});
        for (const Item& item : items) window.add(counted(f(item, w)));
        window.finish();
        return w.item();
    }

    // After each item a step: where w is after each of them.
    static std::vector<real> local_steps(const Items& items, double start, double step_rate = rate) {
        auto w = weight(start);
        std::vector<real> path;
        for (const Item& item : items) {
            f(item, w).backward();
            sgd_step({w}, step_rate);
            w.zero_grad();
            path.push_back(w.item());
        }
        return path;
    }

    // Accumulated gradient normalisation: the sum of the local steps, divided by their number, is committed.
    static real agn(const Items& items, double start, double step_rate = rate) {
        const auto lambda = static_cast<real>(items.size());
        const real before = static_cast<real>(start), after = local_steps(items, start, step_rate).back();
        return before + (after - before) / lambda;
    }

    // ---- the tools: text, and numbers as a table or a check wants them ---------------------------------

    static Tensor weight(double w) {
        return parameter(Array<real>({1}, {static_cast<real>(w)}, options().device));
    }

    // Four steps from w = 0, and four steps each from where the one before ended.
    static void drawn(const Numbers& slopes_at_0, const std::vector<real>& path, real plain, real committed) {
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
        graph("path", "Where each slope is taken: four steps of rate 0.1, item after item", all);
    }

    // ---- the witness ----------------------------------------------------------------------------------------

    // In units of 10^-k after k local steps of 0.1, w is a whole number: a, a c and 10 are.
    static std::vector<std::int64_t> in_whole_numbers(const Items& items) {
        std::vector<std::int64_t> path;
        std::int64_t w = 0, unit = 1;  // w / unit, from 0
        for (const Item& item : items) {
            w = w * (10 - item.a) + unit * static_cast<std::int64_t>(item.a * item.c);
            unit *= 10;
            path.push_back(w);
        }
        return path;
    }

    // Where one pass over the items takes w: slope * w + from_0, in closed form.
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

    // Every path below stays within |w| < 3, and so do its slopes within 12; a local step rounds 6 times.
    static double bound(int local) { return roundings(6 * local) * 3; }

    static void check_rests(double at_rest, const std::vector<double>& rests, double slowly) {
        // At a tenth of the rate 1 - slope is 0.078, so that an update shrinks what is wrong by 0.98.
        const PathEnd slow = closed_form(four, rate / 10);
        // An update shrinks what is wrong by 0.8 and 0.8472, so that roundings add up to at most 1 / (1 - 0.8472)
        // < 7 of them; nothing is left of the start.
        check_close("4/8", at_rest, 4.0 / 8, 7 * bound(4));
        check_close("519/764", rests, {519.0 / 764, 519.0 / 764}, 7 * bound(5));
        check_close("at 0.01", slowly, slow.from_0 / (1 - slow.slope), 52 * bound(5));
    }

    static void check_slopes(const Table& items, real plain) {
        std::vector<double> at_0;
        for (const Item& item : four) at_0.push_back(-item.a * item.c);
        check_close("slopes are -a c", items.column("slope at w = 0"), at_0, bound(1));
        check_close("0.1: mean slope -1", plain, 0.1, bound(4));
    }

    static void check_path(const std::vector<real>& path) {
        std::vector<double> exact;
        for (std::size_t i = 0; i < four.size(); ++i)
            exact.push_back(double(in_whole_numbers(four)[i]) / std::pow(10, i + 1));
        check_close("the whole path", path, exact, bound(4));
        check_close("0.4152", path.back(), 0.4152, bound(4));
    }
};

const Given<Agn> lesson(
    {.number = 18, .slug = "agn", .title = "accumulated gradient normalisation", .minutes = 10, .steps = 6});

}  // namespace
