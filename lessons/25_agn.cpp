// Lesson 25: accumulated gradient normalisation moves w within an update, but accumulation does not.
#include <algorithm>

#include "course/kit/window_gradient.hpp"

// The loss of an item is a (w - c)^2 / 2, with the slope a (w - c), or -a c if the item is straight.
struct Item {
    double a, c;
    bool straight = false;
};
using Batch = std::vector<Item>;
using Method = double (*)(const Batch& items, double start, double rate);

static Tensor loss_of(const Item& item, const Tensor& w) {
    if (item.straight) return -item.a * item.c * w;
    return item.a / 2 * (w - item.c) * (w - item.c);
}
static Tensor weight(double w) { return parameter(Array<real>({1}, {real(w)}, options().device)); }

// Plain accumulation: adds the slopes of all items at one w, and makes one step by their mean.
static double accumulated(const Batch& items, double start, double rate) {
    const Tensor w = weight(start);
    for (const Item& item : items) (loss_of(item, w) / double(items.size())).backward();
    sgd_step({w}, rate);
    return w.item();
}
// Local SGD: makes one step after each item.
static double local(const Batch& items, double start, double rate) {
    double w = start;
    for (const Item& item : items) w = accumulated({item}, w, rate);
    return w;
}
// AGN: goes a part of the way of local SGD.
static double agn(const Batch& items, double start, double rate) {
    return start + (local(items, start, rate) - start) / double(items.size());
}

LESSON(real_number("rate", "learning rate", 0.1, 0.05, 0.2)) {
    const double rate = setting("rate");
    const Batch four{{1, 1}, {2, -1}, {4, 0.5}, {1, 3}};
    const std::vector<std::pair<const char*, Method>> methods{
        {"accumulation", accumulated}, {"AGN", agn}, {"local SGD", local}};

    step("Each of four items has numbers a and c. Its loss is a (w - c)^2 / 2, and its slope is a (w - c).");
    note("Accumulation adds the four slopes at w = 0. Then it makes one step by their mean.");
    const Tensor w = weight(0);
    auto slopes = table({"item", "a", "c", "slope at w = 0"});
    for (std::size_t i = 0; i < 4; ++i)
        slopes.row(i + 1, four[i].a, four[i].c, grad(loss_of(four[i], w), {w}).front().item());
    code(2);
    for (const Item& item : four) (loss_of(item, w) / 4).backward();
    sgd_step({w}, rate);
    show("w after the update", w.item());

    step("Now make a step after every item. Compute each item's slope at the current w.");
    std::vector<double> path{0};
    code(1);
    for (const Item& item : four) path.push_back(accumulated({item}, path.back(), rate));

    ask("four-items", "rate", rate, "end", path[4], "within", rate / 20, "all", 4 * rate, "two", path[2]);
    auto steps = table({"item", "slope taken at", "w afterwards"});
    for (std::size_t i = 0; i < 4; ++i) steps.row(i + 1, path[i], path[i + 1]);

    step("Accumulated gradient normalisation (AGN) divides the sum of four steps by their number, lambda.");
    code(1);
    const double by_agn = (path[4] - path[0]) / 4;
    auto ways = table({"", "w after the four items"});
    for (const auto& [name, method] : methods) ways.row(name, method(four, 0, rate));
    check("AGN does not make the step of accumulation", std::abs(by_agn - w.item()) > 0.2 * rate * rate);
    std::vector<double> at_zero{0};
    for (const Item& item : four) at_zero.push_back(at_zero.back() + rate * item.a * item.c);
    graph("path", "The sum of the steps after each item, before it is divided by 4",
          curves("items", "w", {{"all slopes at w = 0", at_zero}, {"each slope at a new w", path}}));
    note("AGN was published in 2017 (Hermans, Spanakis, Moeckel). Local SGD does not divide this sum.");

    ask("same-step");
    const Batch lines{{1, 1, true}, {2, -1, true}, {4, 0.5, true}, {1, 3, true}};
    auto same = table({"", "accumulation", "AGN"});  // 4 steps, each of which rounds 6 times; |w| is below 3
    same.row("item 1 alone", accumulated({four[0]}, 0, rate), agn({four[0]}, 0, rate));
    same.row("four straight lines", accumulated(lines, 0, rate), agn(lines, 0, rate));
    check_close("both methods agree", same.column("AGN"), same.column("accumulation"), roundings(24) * 3);

    ask("another-order");
    std::vector<std::size_t> order{0, 1, 2, 3};
    std::vector<double> plain_steps, agn_steps;
    do {
        Batch batch;
        for (const std::size_t i : order) batch.push_back(four[i]);
        plain_steps.push_back(accumulated(batch, 0, rate));
        agn_steps.push_back(agn(batch, 0, rate));
    } while (std::ranges::next_permutation(order).found);
    auto spread = table({"24 orders", "smallest step", "largest step"});
    spread.row("accumulation", std::ranges::min(plain_steps), std::ranges::max(plain_steps));
    spread.row("AGN", std::ranges::min(agn_steps), std::ranges::max(agn_steps));
    std::ranges::sort(agn_steps);
    show("different steps of AGN", std::unique(agn_steps.begin(), agn_steps.end()) - agn_steps.begin());
    check_equal("accumulation: one step for all orders", plain_steps, std::vector<double>(24, w.item()));

    ask("after-many-updates");
    auto rests = table({"", "updates", "rate", "w"});
    for (const auto& [name, method] : methods) {
        double place = 0;
        for (int update = 0; update < 200; ++update) place = method(four, place, rate);
        rests.row(name, 200, rate, place);
    }
    double slowly = 0;
    for (int update = 0; update < 2000; ++update) slowly = agn(four, slowly, rate / 10);
    rests.row("AGN", 2000, rate / 10, slowly);
    const std::vector<double> places = rests.column("w").values;  // an update rounds 24 times
    check_close("accumulation ends at the minimum", places[0], 0.5, roundings(24) * 15 / rate);
    check("AGN does not end at the minimum", std::abs(places[1] - 0.5) > 0.1 * rate);
    check_close("its path ends where it began", local(four, places[1], rate), places[1], roundings(24) * 30);
}
