// Lesson 9: call backward() directly after each micro-batch. A later call loses batches or saves no memory.
#include "lost_batches.hpp"

enum When { full_batch, at_the_end, at_once };
struct Held {
    std::int64_t nodes;      // of the graph, at most
    std::size_t kept, peak;  // bytes that are saved for backward, and all bytes, at most
};
// Calls backward() for n micro-batches of 16 items, on a layer of 64 units.
static Held held(When when, int n) {
    const int parts = when == full_batch ? 1 : n, items = 16 * n / parts;
    const Device device = options().device;
    const auto random = [&](const Shape& shape, int stream) {
        const Tensor drawn =
            uniform<real>(shape, -1, 1, {.seed = options().seed, .stream = std::uint64_t(stream)});
        return drawn.value().to(device);
    };
    const Tensor W = parameter(random({8, 64}, 0));
    const std::int64_t nodes_before = Node::live_count();
    const std::size_t before = memory::in_use(device);
    memory::reset_peak(device);
    std::int64_t nodes = 0;
    std::vector<Tensor> losses;
    for (int k = 1; k <= parts; ++k) {
        losses.push_back(mean(tanh(matmul(Tensor(random({items, 8}, k)), W))) / parts);
        nodes = std::max(nodes, Node::live_count() - nodes_before);
        if (when != at_once) continue;
        losses.back().backward();
        losses.clear();
    }
    for (const Tensor& loss : losses) loss.backward();
    const memory::Report report = memory::report(device);
    return {nodes, report.peak_by[int(MemoryClass::saved)], report.peak - before};
}

LESSON(equal_micro_batches({2, 3, 6})) {
    const int n = setting("micro"), each = 6 / n;  // micro-batches, and rows in each of them
    const Tensor x = toy::rows(), w = toy::weights();

    step("We want the gradient of six rows. Micro-batches: {}, rows in each: {}.", n, each);
    auto alone = table({"rows", "loss", "gradient of this loss alone"});
    for (const auto& [micro, rows] : toy::micro_batches(x, each)) {
        const Tensor loss = mean(matmul(micro, w));
        alone.row(rows, loss, grad(loss, {w}).front());
    }
    const Array<real> full = grad(mean(matmul(x, w)), {w}).front();
    show("full batch", full);

    step("This listing was published on a web page. It calls backward() only after the last micro-batch.");
    const std::vector<Tensor> micros = split(x, each);
    Tensor loss, total = Array<real>::zeros({}, options().device);
    code(3);
    for (const Tensor& micro : micros) {
        loss = mean(matmul(micro, w));
        total = total + loss;
    }
    code(2);
    total = total / n;
    loss.backward();

    ask("which-gradient", "n", n);
    show("total", total, "w.grad", w.grad());
    note("The total is right, but w.grad lacks the gradients of {} of {} micro-batches.", n - 1, n);
    check_close("the total is the loss of six rows", total, -3.97205 / 6, roundings(12) * 2);
    check("w.grad is another gradient", furthest(w.grad(), full) > 0.1);
    graph("lost-batches", "Nothing comes back from the losses that the listing only adds", [&](Picture& p) {
        const Tensor v = toy::weights();
        p.name(v, "w");
        for (const auto& [micro, rows] : toy::micro_batches(x, each)) {
            const Tensor own = mean(matmul(micro, v));
            p.name(micro, many_rows(rows)).name(own, "loss");
            if (rows.ends_with('5'))
                p.backward(own, "the last: loss.backward()");
            else
                p.add(own, "lost: no backward");
        }
    });

    step("One word repairs the listing: total.backward(), not loss.backward(), reaches all micro-batches.");
    w.zero_grad();
    total = constant(Array<real>::zeros({}, options().device));
    code(2);
    for (auto& micro : micros) total = total + mean(matmul(micro, w));
    (total / n).backward();
    show("w.grad", w.grad());
    check_close("w.grad is the full batch", w.grad(), toy::mean_of_rows, toy::bound(15));  // 15 roundings

    ask("stored-losses");
    note("We count the bytes for a layer of 64 units, with 16 items in each micro-batch.");
    auto stored = table({"stored losses", "bytes kept", "full batch keeps", "graph nodes"});
    for (const int k : {1, 4, 16})
        stored.row(k, held(at_the_end, k).kept, held(full_batch, k).kept, held(at_the_end, k).nodes);
    check_equal("stored losses keep the bytes of the full batch", stored.column("bytes kept"),
                stored.column("full batch keeps"));

    step("tally's class Window calls backward() for each loss at once, so only one graph exists at a time.");
    w.zero_grad();
    Sgd<real> sgd({w}, {.learning_rate = 0.1});
    Window<real> window(sgd, {.micro_batches = n, .total = 6});
    code(1);
    for (const Tensor& micro : micros) window.add(Loss(matmul(micro, w)));
    show("w.grad", w.grad());
    note("Window's gradient has the bits of the full batch's gradient. PyTorch does not promise equal bits.");
    check_equal("w.grad has the bits of the full batch", w.grad(), full);
    auto soon = table({"micro-batches", "bytes kept", "graph nodes", "peak bytes", "peak if stored"});
    for (const int k : {2, 4, 16}) {
        const Held now = held(at_once, k);
        soon.row(k, now.kept, now.nodes, now.peak, held(at_the_end, k).peak);
    }
    const std::size_t with_two = held(at_once, 2).peak;
    check_equal("the peak is the same for all", soon.column("peak bytes"), {with_two, with_two, with_two});

    ask("contribute");
    auto used = table({"", "batches in an update, of 938"});
    used.row("as published", batches_used(Listing::published, 938, 5));
    used.row("total.backward()", batches_used(Listing::repaired, 938, 5));
    used.row("a window, flushed at the end", batches_used(Listing::window, 938, 5));
    check_equal("938 / 5, 938 - 3 and 938", used.column("batches in an update, of 938"), {187, 935, 938});
}
