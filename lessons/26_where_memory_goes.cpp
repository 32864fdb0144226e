// Lesson 26: an update needs fixed memory, and memory for each item. Accumulation reduces only the latter.
#include "net.hpp"

// Makes one update from all items of x, `each` items at a time.
static void update(Net& net, const Tensor& x, std::int64_t each, std::size_t segments = 1) {
    Window window(net.adam, {.total = double(x.value().size())});
    for (std::int64_t from = 0; from < x.shape()[0]; from += each) {
        const Tensor micro = constant(x.value().slice_rows(from, from + each).clone());
        const Tensor y = checkpoint_sequential(net.layers, segments, micro);
        window.add(Loss(y * y));
    }
    window.finish();
}

LESSON(one_of("micro", "micro-batches of a batch", 4, {2, 4, 8})) {
    const std::int64_t n = setting("micro");

    const double item = (14949.0 - 8681) / 3, fixed = 8681 - item;
    const std::int64_t mb = std::lround(item), mb_fixed = std::lround(fixed);
    step("In an article, a batch of 4 takes 14949 MB, and one item at a time takes 8681 MB.");
    note("The difference is the memory of three items. An item needs {} MB; {} MB are fixed.", mb, mb_fixed);
    auto article = table({"", "Time", "% longer", "MB", "of items", "fixed"});
    const auto longer = [](double time, double before) { return std::lround(100 * (time / before - 1)); };
    article.row("BEFORE  batch 4", "57.82", "", 14949, std::lround(4 * item), mb_fixed);
    article.row("AFTER   4 x 1", "66.03", longer(66.03, 57.82), 8681, mb, mb_fixed);
    article.row("AFTER   and checkpoints", "85.47", longer(85.47, 66.03), 6775, std::lround(6775 - fixed),
                mb_fixed);
    note("The article says that checkpoints take 20 % longer, but not that the first row has batches of 4.");

    step("Which data does an update keep in memory? We take 4 layers of 32 units and 64 items.");
    const Tensor x = random_items(64, 32);
    std::vector<memory::Report> after;  // each line
    {
        Net net(4, 32);
        Window window(net.adam, {.total = 64 * 32});
        after.push_back(memory::report(options().device));
        code(2);
        Tensor y = x;
        for (const Tensor& W : net.weights) y = tanh(matmul(y, W));
        after.push_back(memory::report(options().device));
        code(1);
        window.add(Loss(y * y));
        after.push_back(memory::report(options().device));
        code(1);
        window.finish();
        after.push_back(memory::report(options().device));
    }
    note("Activations are the results of layers. Backward needs them. window.add() calls backward().");

    ask("which-line-frees");
    auto in_use = table({"bytes after", "weights", "gradients", "saved activations"});
    for (const char* line : {"before", "y = tanh(...)", "window.add()", "window.finish()"}) {
        const auto& [weights, gradients, saved, other] = after.front().in_use_by;
        in_use.row(line, weights, gradients, saved);
        after.erase(after.begin());
    }
    note("In the first update, window.finish() also allocates two averages of Adam for each weight.");

    step("An update's peak memory is F + items x A bytes: F fixed, A per item. Two batches give F and A.");
    std::vector<std::int64_t> peaks;
    for (const std::int64_t items : {64, 128, 256, 512}) {
        const Tensor batch = random_items(items, 32);
        peaks.push_back(std::int64_t(peak_of([&] {
            Net net(4, 32);
            update(net, batch, items);  // allocates gradients and averages
            update(net, batch, items);
        })));
    }
    show("peak with 64 items, and with 128", {peaks[0], peaks[1]});

    ask("peak-of-256");
    const std::int64_t A = (peaks[1] - peaks[0]) / 64, F = peaks[0] - 64 * A;
    auto line = table({"items", "peak, bytes", "F + items x A", "residual"});
    for (std::int64_t items = 64; const std::int64_t peak : peaks) {
        line.row(items, peak, F + items * A, peak - (F + items * A));
        items *= 2;
    }
    show("A, bytes of an item", A);
    show("F, and 4 x the weights", {F, 4 * 4 * 32 * 32 * std::int64_t(sizeof(real))});
    check_equal("the residual is 0", line.column("peak, bytes"), line.column("F + items x A"));
    check("F is 4 x the weights, and less than 2 KiB more", F >= 65536 && F < 65536 + 2048);
    note("Weights, gradients and Adam's two averages need 4 times the weights' bytes. F is a bit more.");

    ask("what-gets-smaller", "n", n);
    const AtPeak whole = second_update(x, 64, update), parts = second_update(x, 64 / n, update);
    auto smaller = table({"bytes", "weights", "gradients", "Adam", "saved", "other", "in all"});
    const auto add_row = [&](const std::string& name, const AtPeak& at) {
        const std::size_t other = at.all - at.weights - at.gradients - at.averages - at.saved;
        smaller.row(name, at.weights, at.gradients, at.averages, at.saved, other, at.all);
    };
    add_row("64", whole);
    add_row(say("{} x {}", n, 64 / n), parts);
    show("less, in %", std::lround(100 - 100 * double(parts.all) / double(whole.all)));
    check_equal("micro-batches keep 1/N of the activations", parts.saved * std::size_t(n), whole.saved);
    // Adam's step for a tiny gradient is as long as for a large one, so rounding may change this step.
    check_close("the same weights", parts.trained, whole.trained, 1e-5);

    step("The picture shows the bytes in use during the update of 64 items.");
    graph("bytes", whole.svg, "", whole.strip);

    step("Train 8 layers of 128 units: 256 items at once, {} x {} items, and with checkpoints.", n, 256 / n);
    Net deep(8, 128);
    const Tensor many = random_items(256, 128);
    update(deep, many, 256);
    auto ours = table({"", "Time, ms", "Samples/second", "memory"});
    const auto measure = [&](const char* name, std::int64_t each, std::size_t segments) {
        std::size_t peak = 0;
        const double quickest = quickest_of_five([&] {
            peak = peak_of([&] { update(deep, many, each, segments); });
            deep.numbers();  // waits for a GPU
        });
        ours.row(name, quickest, std::lround(256000 / quickest), format_bytes(peak));
        return peak;
    };
    const std::size_t before = measure("BEFORE  one batch", 256, 1),
                      micro = measure("AFTER   accumulation", 256 / n, 1),
                      both = measure("AFTER   and checkpoints", 256 / n, 3);
    check("each row needs less memory than the row before", before > micro && micro > both);
    note("Weights, gradients and averages are not counted. The table shows the shortest time of five runs.");
}
