// Lesson 28: a checkpoint keeps the input of a segment, and backward computes the other values again.
#include "segments_picture.hpp"
#include "tower.hpp"

struct Cost {
    int begun;              // runs of layers that began
    std::size_t buffers;    // the most saved for backward at one time, each as large as x
    double peak;            // KiB, without the memory in use before
    std::vector<int> runs;  // of each layer
    std::vector<real> gradients;
};
// forward(x) runs all layers of the tower.
template <class Forward> static Cost cost_of(Tower& tower, const Forward& forward) {
    tower.runs.assign(tower.layers.size(), 0);
    for (const Tensor& W : tower.weights) W.zero_grad();
    memory::reset_peak(options().device);
    const std::size_t before = memory::in_use(options().device);
    sum(forward(tower.x)).backward();
    const memory::Report report = memory::report(options().device);
    const std::size_t buffers = report.peak_by[int(MemoryClass::saved)] / tower.x.value().storage()->bytes;
    const double peak = double(report.peak - before) / 1024;
    const int begun = std::accumulate(tower.runs.begin(), tower.runs.end(), 0);
    return {begun, buffers, peak, tower.runs, tower.gradients()};
}
static Cost in_segments(Tower& tower, std::size_t k) {
    return cost_of(tower, [&](const Tensor& x) { return checkpoint_sequential(tower.layers, k, x); });
}

LESSON(one_of("items", "layers", 16, {9, 16, 25, 64})) {  // --items is the number of layers
    const std::size_t n = setting("items"), root = std::size_t(std::lround(std::sqrt(n)));
    Tower tower(n);  // n layers h = tanh(h W), and an input x of 16 items

    step("A network has {} layers. Backward needs the input and the result of each layer.", n);
    const auto run_plainly = [&](Tensor h) {
        code(1);
        for (const auto& layer : tower.layers) h = layer(h);
        return h;
    };
    show_saved("kept for", tower.x, run_plainly);  // lists the operations that read each buffer
    const Cost plain = in_segments(tower, 1);      // the only segment is the last, so no checkpoint
    check_equal("x and the results of all layers", plain.buffers, n + 1);

    step("A checkpoint throws values away. Backward computes them again when it needs them.");
    note("The {} layers form segments of {} layers. Only the input of each segment is kept.", n, root);
    note("Backward begins in the last segment, so the last segment is not checkpointed.");
    code(1);
    const auto run_in_segments = [&](Tensor h) { return checkpoint_sequential(tower.layers, root, h); };

    ask("buffers-at-most", "n", n, "k", root, "right", 2 * root, "one", root + 1, "all", n + 1);
    show_saved("kept when backward begins", tower.x, run_in_segments);
    const Cost segments = in_segments(tower, root);
    show("buffers", segments.buffers);
    check_equal("the inputs of all segments, and the layers of one", segments.buffers, root + n / root);

    step("Backward runs each segment except the last one again, when it reaches the segment.");
    show("layers begun", segments.begun);
    graph("checkpointing", segments_picture(segments.runs, root));
    const auto bytes_over_time = [&] {
        Tower heavy(n, 128);  // 128 items, so that the saved values are larger than the weights
        const Timeline timeline(options().device);  // records the bytes from here on
        in_segments(heavy, root);
        return timeline.svg(say("{} layers, 128 items, {} segments: bytes in use", n, root));
    };
    graph("bytes", bytes_over_time(), "");  // the picture exists as an SVG only
    check_equal("all layers, and again those before the last segment", segments.begun, 2 * n - n / root);
    check_equal("every gradient has the same bits", segments.gradients, plain.gradients);

    ask("how-many-segments", "n", n, "k", root, "half", n / 2);
    auto cuts = table({"n", "k", "buffers", "k + n/k", "layers begun", "2n - n/k"});
    for (std::size_t k = 1; k <= n; ++k) {
        if (n % k != 0) continue;
        const Cost cost = in_segments(tower, k);
        cuts.row(n, k, cost.buffers, k + n / k, cost.begun, 2 * n - n / k);
    }
    check_equal("buffers are k + n/k", cuts.column("buffers"), cuts.column("k + n/k"));
    note("With as many segments as layers, all inputs are kept, and all layers except one run again.");

    step("For n layers, the square root of n is the best number of segments. We test n = 64 and n = 100.");
    Tower high(64), higher(100);
    const Cost eight = in_segments(high, 8), ten = in_segments(higher, 10);
    std::vector<double> peaks;
    for (std::size_t k = 1; k <= 64; ++k) peaks.push_back(in_segments(high, k).peak);  // some are uneven
    const double least = *std::min_element(peaks.begin(), peaks.end());
    plot("KiB at the peak of 64 layers, over k", peaks);
    show("buffers of 64 layers in 8 segments, and of 100 in 10", {eight.buffers, ten.buffers});
    show("KiB with 8 segments, and the least", {eight.peak, least});
    check("8 segments need less than a third of the memory of one", peaks[7] * 3 < peaks[0]);  // k = 8, 1

    step("You can also keep only the network's input x. Backward computes the input of each layer from x.");
    code(1);
    const Revolve<Array<real>> only_x(tower.layers, 1);
    const Cost from_x = cost_of(tower, only_x);  // Revolve keeps the inputs of some layers: here 1, x

    const std::size_t all = n * (n + 1) / 2;  // n in forward, then n - 1, n - 2, ..., 1 in backward
    ask("keep-only-x", "n", n, "last", n - 1, "right", all, "unrecorded", all - n, "and_forward", all + n);
    auto ways = table({"kept", "layers begun", "buffers"});
    ways.row("everything", plain.begun, plain.buffers);
    ways.row("the inputs of segments", segments.begun, segments.buffers);
    ways.row("only x", from_x.begun, from_x.buffers);
    check_equal("all gradients have the same bits", from_x.gradients, plain.gradients);

    step("Segments differ by at most one layer. We cut 9 layers into 5 segments, and 10 layers into 4.");
    show("9 in 5", even_segments(9, 5), "10 in 4", even_segments(10, 4));  // the layers of each segment
    show("4 in 5", error_of([] { even_segments(4, 5); }));  // an error: a segment has at least one layer
}
