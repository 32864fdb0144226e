// Lesson 10: the last window of an epoch may have fewer micro-batches, and needs another divisor.
#include "tail_plans.hpp"

// Row i has the loss w_i. Two epochs of SGD with the rate 1, from w = 0, end at minus the weight of row i.
static Plan plan_of_rows(std::int64_t count) {
    return {count, 1, count, 2, 1, [](const Items& micro, const Tensor& w) {
                return Loss(slice(w, 0, micro[0], micro[0] + micro.count()));
            }};
}

// A window divides by the items that were added. flush() applies the policy for the tail.
static Trained by_window(const Plan& plan, Tail tail, int micro_batches) {
    const Tensor w = zeros({plan.weights});
    Sgd sgd({w}, {.learning_rate = plan.rate});
    Window window(sgd, {.micro_batches = micro_batches, .tail = tail});
    Trained trained;
    for (int epoch = 0; epoch < plan.epochs; ++epoch) {
        for (const Items& micro : split(Items::in_order(plan.items), plan.each)) {
            window.add(plan.loss_of(micro, w));
            if (window.full()) window.finish();
        }
        window.flush();
        trained.after.push_back(values(w));
    }
    trained.updates = window.updates();
    return trained;
}

static std::vector<std::pair<std::string, Trained>> all_rules(const Plan& plan) {
    Plan large = plan;
    large.each = n * plan.each;
    return {{"large batches", by_window(large, Tail::scale, 1)},
            {"divided by N", by_listing(plan)},
            {"scale", by_window(plan, Tail::scale, n)},
            {"drop", by_window(plan, Tail::drop, n)},
            {"carry", by_window(plan, Tail::carry, n)}};
}

LESSON(one_of("items", "images of an epoch", 60000, {50000, 60000, 70000})) {
    const int images = setting("items");

    step("A published program trains with {} images. It takes 16 images at a time.", images);
    note("An update has N = 4 micro-batches, instead of one batch of 64 images.");
    note("The program also updates after the last micro-batch of an epoch, so that no image is lost:");
    note("if (batch + 1) % N == 0 or batch + 1 == len(dataloader):");

    const int micros = images / 16, left = micros % n;
    const double share = left / 4.0;
    ask("how-many-left", "images", images, "micros", micros, "full", micros / n, "left", left, "part", share);
    auto epoch = table({"images at a time", "batches", "updates", "batches in the last", "its images"});
    for (const int in_window : {1, n}) {
        const std::vector<Items> batches = split(Items::in_order(images), 64 / in_window);
        const std::vector<Items> windows = split(Items::in_order(std::int64_t(batches.size())), in_window);
        const Items last = windows.back();
        std::int64_t seen = 0;
        for (std::int64_t i = 0; i < last.count(); ++i) seen += batches[std::size_t(last[i])].count();
        epoch.row(64 / in_window, batches.size(), windows.size(), last.count(), seen);
    }
    check_equal("the same number of updates", epoch.column("updates"), {images / 64 + 1, images / 64 + 1});

    ask("the-last-gradient", "left", left, "share", share, "inverse", 4.0 / left);
    const Tensor tail = slice(toy::rows(), 0, 6 - left, 6), w = zeros({3});
    note("Our example has rows of numbers instead of the last images. Each micro-batch has one row.");
    code(1);
    for (auto& row : split(tail, 1)) (mean(matmul(row, w)) / n).backward();
    const Array<real> published = w.grad().clone(), right = grad(mean(matmul(tail, w)), {w}).front();
    show("the published gradient", published, "the mean over the tail", right);
    show("their ratio", ratios(published, right));
    // Both are means of up to three numbers, whose magnitudes add up to below 3. Together they round 9 times.
    check_close("their ratio is micro-batches left / N", published, scaled(right, share), roundings(9) * 3);
    graph("the-tail", say("The tail's losses, divided by {}, not by 4", left), [&](Picture& p) {
        const Tensor own = toy::weights();
        p.name(own, "w");
        for (const auto& [micro, row] : toy::micro_batches(tail, 1)) {
            const Tensor loss = mean(matmul(micro, own)) / left;
            p.name(micro, say("row {}", 6 - left + std::stoi(row))).name(loss, say("loss / {}", left));
            p.backward(loss);
        }
    });

    step("An epoch can end with fewer than 4 micro-batches, the tail. tally's Window has three policies:");
    note("scale makes an update with the tail's mean gradient. drop makes no update, and forgets the tail.");
    note("carry keeps the tail's gradient for the first update of the next epoch.");
    const Tensor v = zeros({3});
    Sgd sgd({v}, {.learning_rate = 1});  // so that v ends at minus the gradient
    Window window(sgd, {.micro_batches = n, .tail = Tail::scale});
    code(2);
    for (auto& row : split(tail, 1)) window.add(Loss(matmul(row, v)));
    window.flush();
    show("the gradient with scale", Array<real>::zeros({3}, options().device) - v);
    check_close("scale gives the mean over the tail", scaled(v, -1), right, roundings(9) * 3);  // as above

    const int few = n + left;  // rows of a small epoch
    ask("updates-with-carry", "rows", few, "all", 2 * few, "right", 2 * few / n, "half", few / 4.0);
    note("Row i has the loss w_i, and w starts at 0. With the learning rate 1, -w_i is the weight of row i.");
    auto counts = table({"rule", "updates", "weight of each row in two epochs"});
    for (const auto& [name, trained] : all_rules(plan_of_rows(few))) {
        std::vector<double> weights;
        for (const double end : trained.after.back()) weights.push_back(0 - end);
        counts.row(name, trained.updates, row_text(weights, 2));
    }

    const std::int64_t items = 48 + 2 * few;
    ask("which-rule", "items", items, "rest", 2 * left, "left", left);
    note("The last two columns show the largest difference from the weights of training with batches of 8.");
    auto ends = table({"rule", "updates", "weights after 5 epochs", "off after 1", "after 5"});
    const auto trained = all_rules(plan_of_items(items));
    const Trained& large = trained.front().second;
    std::vector<double> off;
    for (const auto& [name, run] : trained) {
        off.push_back(furthest(run.after[4], large.after[4]));
        ends.row(name, run.updates, run.after[4], short_text(furthest(run.after[0], large.after[0])),
                 short_text(off.back()));
    }
    // An update rounds the weights, at most about 3, by less than 2e-7. Later updates reduce this error.
    check_close("scale agrees with the large batches", off[2], 0, 1e-6);
    check("the other rules do not agree", std::min({off[1], off[3], off[4]}) > 1e-4);
}
