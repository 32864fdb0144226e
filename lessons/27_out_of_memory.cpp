// Lesson 27: if memory runs out, smaller micro-batches help, unless the fixed part is too large.
#include "net.hpp"

// Adds all items of x to the window, at most `most` at a time.
static void fill(Window<real>& window, const Net& net, const Tensor& x, std::int64_t most) {
    for (std::int64_t from = 0, end = x.shape()[0]; from < end; from += most) {
        const Tensor micro = constant(x.value().slice_rows(from, std::min(from + most, end)).clone());
        const Tensor y = checkpoint_sequential(net.layers, 1, micro);
        window.add(Loss(y * y));
    }
}
struct Search {
    std::int64_t found, retries;
    std::size_t peak;
    std::vector<real> trained;
};
LESSON(one_of("items", "so many at a time fit into the budget", 20, {4, 6, 10, 12, 20, 24, 40, 50}),
       one_of("micro", "micro-batches of eight items", 4, {2, 4, 8})) {
    const std::int64_t fits = setting("items"), n = setting("micro");
    const Device device = options().device;

    step("A budget limits this program to 640 KiB of memory. Ten blocks of 64 KiB fill this memory.");
    std::string error;
    memory::Report now;
    {
        const auto zeros_of = [&](std::int64_t kib) { return Array<real>::zeros({256 * kib}, device); };
        const Budget budget(640 * 1024);
        std::vector<Array<real>> blocks;
        code(2);
        for (int i = 0; i < 10; ++i) blocks.push_back(zeros_of(64));
        for (std::size_t i = 0; i < 10; i += 2) blocks[i] = Array<real>();
        memory::drop_cache(device);
        now = memory::report(device);
        note("Now 128 KiB are requested. PyTorch would write:");
        note(in_words_of_pytorch(128 * 1024));
        error = error_of([&] { void(zeros_of(128)); }, "; use");
    }

    ask("largest-block");
    note(error);
    show("KiB free", (now.budget - now.in_use) / 1024, "KiB in the largest piece", now.largest_free / 1024);
    check("128 KiB do not fit", error.find("fragmented") != std::string::npos);
    check_equal("the largest piece is one block", now.largest_free, 64 * 1024);

    step("The class MicroBatchSize first tries all items at once, and if memory runs out, half of them.");
    note("Then MicroBatchSize repeats the update from the beginning. PyTorch leaves this search to you.");
    code(3);
    const auto update = [](MicroBatchSize& size, Window<real>& window, const Net& net, const Tensor& x) {
        size.update(window, 64, [&](std::int64_t most) { fill(window, net, x, most); });
    };
    const auto search = [&](std::int64_t begin) {
        memory::reset_peak(device);
        const Tensor x = random_items(64, 8);
        Net net(16, 8);
        Window window(net.adam, {.total = 64 * 8});
        MicroBatchSize one(1), size(begin);
        update(one, window, net, x);  // allocates gradients and averages
        update(size, window, net, x);
        return Search{size.now(), size.retries(), memory::peak(device), net.numbers()};
    };
    const Search with_64 = search(64), with_some = search(fits), with_5 = search(5);
    std::int64_t halved = 64;
    while (halved > fits) halved /= 2;

    ask("size-found", "fits", fits, "right", halved, "double", 2 * halved, "half", fits / 2);
    auto budgets = table({"budget, bytes", "enough for", "found", "retries", "weights as with 64"});
    // The gaps between blocks of memory need a few more bytes.
    for (const auto& [bytes, enough_for] : {std::pair(with_64.peak * 5 / 4, std::int64_t(64)),
                                            {with_some.peak + 256, fits},
                                            {with_5.peak + 256, 5}}) {
        const Budget budget(bytes);
        const Search result = search(64);
        budgets.row(bytes, enough_for, result.found, result.retries, result.trained == with_64.trained);
    }
    check_equal("the sizes that are found", budgets.column("found"), {64L, halved, 4L});
    check("every update has the bits of the update of 64 items", budgets.all("weights as with 64", "yes"));

    step("Now the memory budget cannot hold one item. A smaller micro-batch needs the same fixed memory.");
    const auto error_with = [&](std::size_t bytes) {
        const Budget budget(bytes);
        return error_of([&] { search(64); }, "; use");
    };
    note(error_with(with_5.peak / 2));

    ask("half-the-side");
    auto images = table({"side", "saved an item, bytes", "by the side squared", "weights"});
    for (const std::int64_t side : {32, 16, 8}) {
        const Tensor image = constant(drawn({4, 3, side, side}, 0, 1));
        const Tensor first = parameter(drawn({8, 3, 3, 3}, 1, 0.2)),
                     second = parameter(drawn({8, 8, 3, 3}, 2, 0.2));
        memory::reset_peak(device);
        sum(tanh(conv2d(tanh(conv2d(image, first, 1, 1)), second, 1, 1))).backward();
        const std::size_t saved = memory::report(device).peak_by[int(MemoryClass::saved)] / 4;
        images.row(side, saved, saved / std::size_t(side * side),
                   first.value().size() + second.value().size());
    }
    const std::vector<double> bytes = images.column("saved an item, bytes").values;
    show("half the side, times", bytes[1] / bytes[0]);
    note("Smaller images need less memory, but a network cannot learn details that they no longer show.");

    ask("large-weights", "n", n, "each", 8 / n);
    const Tensor x = random_items(8, 64);
    auto large = table({"peak, bytes", "beyond weights", "of it gradients"});
    for (const std::int64_t each : {std::int64_t(8), 8 / n}) {
        Net net(16, 64);
        const std::size_t peak = peak_of([&] {
            for (const Tensor& micro : split(x, each)) {
                const Tensor y = checkpoint_sequential(net.layers, 1, micro);
                (mean(y * y) * (double(each) / 8)).backward();
            }
            sgd_step(net.weights, 0.1);
            for (const Tensor& W : net.weights) W.free_grad();
        });
        large.row(say("{} at a time", each), peak,
                  memory::report(device).peak_by[int(MemoryClass::gradient)]);
    }
    const std::vector<double> peaks = large.column("beyond weights").values;
    check("accumulation needs more memory here", peaks[1] > peaks[0]);
}
