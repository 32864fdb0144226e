// Lesson 20: checkpointing recomputes values, to need less memory. No bit of the gradient changes.
#include <chrono>
#include <map>
#include <numeric>

#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Checkpointing {
    const std::size_t depth = setting("items"), root = std::size_t(std::lround(std::sqrt(depth)));

    void talk() {
        step(say("{} layers tanh(h W). Backward reads what each has made, so all of it waits.", depth));
        Tower tower(depth);
        {
            const SavedValues kept;
            code(2);
            Tensor h = tower.x;
            for (const auto& layer : tower.layers) h = layer(h);
            show_kept(kept);
        }
        const Taken plain = tower.plain();
        check_equal(say("x and {} results, at the peak", depth), plain.buffers, depth + 1);
        check_equal("begun", plain.begun, depth);

        step(say("The same layers in {} segments: of each but the last, only its input is kept.",
                 to_text(std::int64_t(root))));
        {
            const SavedValues kept;
            code(1);
            const Tensor h = checkpoint_sequential(tower.layers, root, tower.x);

            predict(
                say("Every {}'s input is kept. How many buffers are there at most, during backward too?",
                    ordinal(root)),
                {right(double(2 * root)),
                 wrong(double(root), "So many are kept. But a segment must be made again to go back."),
                 wrong(double(root + 1), say("A segment has {} layers, and its backward needs all of them.",
                                             to_text(std::int64_t(root)))),
                 wrong(double(depth), "Only one segment at a time is made again."),
                 wrong(double(depth + 1), "Only one segment at a time is made again.")},
                hint(say("Besides the {} inputs, what does backward need of one segment?",
                         to_text(std::int64_t(root))),
                     "Count for the moment when backward is in the middle of one segment."),
                "What a segment makes again is there while it goes back.");
            show_kept(kept);
        }
        const Taken cut_up = tower.segments(root);
        show("buffers", cut_up.buffers);
        check_equal(say("{} inputs of segments + {} of one", root, root), cut_up.buffers,
                    root + depth / root);

        step("Each segment but the last begins again when backward comes to it.");
        show("layers begun", cut_up.begun);
        drawn_beside(cut_up.times_begun);
        {
            Tower many(depth, 128);
            const Timeline timeline(options().device);
            many.segments(root);
            graph("bytes",
                  timeline.svg(say("{} layers, 128 items, {} segments: bytes in use", depth,
                                   to_text(std::int64_t(root)))),
                  "");
        }
        check_equal(say("{} begun, and {} again", depth, depth - root), cut_up.begun,
                    2 * depth - depth / root);
        check_equal(say("{} gradients: the same bits", depth), numbers(cut_up.gradients),
                    numbers(plain.gradients));

        predict(say("With which number k of segments are the fewest buffers kept, for n = {} layers?", depth),
                {right(double(root)),
                 wrong(1, say("One segment is the whole chain: all its {} layers are kept.", depth)),
                 wrong(double(depth), say("{} inputs are kept: nothing is saved.", depth)),
                 wrong(2, say("A segment of {} is made again at once.", depth - depth / 2)),
                 wrong(double(depth / 2), say("{} inputs are kept all the time.", depth / 2))},
                hint("Which two numbers of buffers are added?", say("Add k and {} / k for each k.", depth)),
                "k inputs, and n/k in the segment that is on its way.");
        const auto cut = [](Table& rows, std::size_t n, std::size_t k, const Taken& taken) {
            rows.row(n, k, taken.buffers, k + n / k, taken.begun, 2 * n - n / k);
        };
        const std::vector<std::string> columns{"n", "k", "buffers", "k + n/k", "begun", "2n - n/k"};
        auto cuts = table(columns);
        for (std::size_t k = 1; k <= depth; ++k)
            if (depth % k == 0) cut(cuts, depth, k, tower.segments(k));
        check_cuts(cuts);
        note(say("With k = {} nothing is saved, and {} of {} begin again.", depth, depth - 1, depth));

        step("At k = the root of n it is twice the root. 64 layers, k from 1 to 64:");
        Tower high(64), higher(100);
        std::vector<std::size_t> peaks;
        for (std::size_t k = 1; k <= 64; ++k) peaks.push_back(high.segments(k).peak);
        plot("KiB at the peak, over k", in_kib(peaks));
        auto roots = table(columns);
        cut(roots, 64, 8, high.segments(8));
        cut(roots, 100, 10, higher.segments(10));
        check_roots(high, cuts, roots, peaks);

        step("Only x is kept: each layer's input is made from x, again and again.");
        code(2);
        const Revolve<Array<real>> only_x(tower.layers, 1);
        const Taken from_x = tower.run([&](const Tensor& x) { return only_x(x); });

        predict(say("How many layers are begun, forward included, for n = {}?", depth),
                {right(double(depth * (depth + 1) / 2)),
                 wrong(double(2 * depth - 1), "Twice each would need something kept on the way."),
                 wrong(double(depth * depth),
                       say("The last one asks for {} others; the first for none.", depth - 1)),
                 wrong(double(depth * (depth - 1) / 2),
                       "So many are run again. Each layer itself begins once more."),
                 wrong(double(depth), "That is forward alone.")},
                hint("How many layers run before the last one's input is there? And the one before?",
                     say("The last layer asks for {} others, the one before for {}.", depth - 1, depth - 2)),
                say("{} + {} + ... + 1 = n (n + 1) / 2.", depth, depth - 1));
        auto ways = table({say("{} layers", depth), "begun", "buffers"});
        ways.row("keep all", plain.begun, plain.buffers);
        ways.row(say("{} segments", root), cut_up.begun, cut_up.buffers);
        ways.row("keep x only", from_x.begun, from_x.buffers);
        check_equal("n (n + 1) / 2", from_x.begun, depth * (depth + 1) / 2);
        check_equal("the same bits", numbers(from_x.gradients), numbers(plain.gradients));

        step("The table of the article, of 16 layers of 256 units and 128 items.");
        Tower wide(16, 128, 256);
        std::vector<Taken> plainly, in_segments, unverified;  // measured alternately
        for (int round = 0; round < 5; ++round) {
            plainly.push_back(wide.plain());
            in_segments.push_back(wide.segments(4));
            const NoCheckpointVerification off;
            unverified.push_back(wide.segments(4));
        }
        const Taken before = quickest(plainly), after = quickest(in_segments);
        auto article = table({"", "Time, ms", "Samples/second", "memory", "times as long"});
        const auto line = [&](const char* name, const Taken& taken) {
            article.row(name, 1000 * taken.seconds, std::lround(128 / taken.seconds),
                        format_bytes(taken.peak), taken.seconds / before.seconds);
        };
        line("BEFORE", before);
        line("AFTER", after);
        line("AFTER   not verified", quickest(unverified));
        note(
            "12 of 16 layers begin again, 9 are computed: the last of a segment is the next one's input. In "
            "products: 16 forward, 31 backward, 9 again: +19 %. The clock adds what else runs.");
        check("less than half the memory", after.peak * 2 < before.peak);
        check_equal("the same bits", numbers(after.gradients), numbers(before.gradients));

        step("Dropout after each layer. A mask has a number: the layer's, or one from a counter.");
        std::uint64_t calls = 0;
        code(3);
        const auto dropped = [&](const Tensor& h, std::size_t layer, bool by_layer) {
            return dropout(h, 0.25, {options().seed, by_layer ? layer : calls++, 0});
        };
        const auto with_dropout = [&](bool by_layer) {
            Chain<Array<real>> layers;
            for (std::size_t i = 0; i < tower.layers.size(); ++i)
                layers.push_back(
                    [&, by_layer, i](const Tensor& x) { return dropped(tower.layers[i](x), i, by_layer); });
            calls = 0;
            return layers;
        };

        predict(
            "By a counter that counts on. Checkpointed, the gradient is",
            {right("another one"),
             wrong("the same bits", "If the masks were the same. Who numbers them when a block runs again?"),
             wrong("equal to rounding", "A mask is 0 or not: no rounding is as large."),
             wrong("zero", "Some of each layer is kept by any mask.")},
            hint("Which masks does a block draw when it runs again?",
                 "Write down the counter, forward and again."),
            "The counter has counted on: what runs again draws other masks.");
        const auto gradients = [&](bool by_layer, std::size_t k) {
            const auto layers = with_dropout(by_layer);
            return numbers(
                tower.run([&](const Tensor& x) { return checkpoint_sequential(layers, k, x); }).gradients);
        };
        const auto wanted = gradients(false, 1), by_layer = gradients(true, 4);
        std::vector<real> counted;
        {
            const NoCheckpointVerification off;
            counted = gradients(false, 4);
        }
        const std::string said = refusal([&] { gradients(false, 4); }, ";");
        const auto apart = [&](const std::vector<real>& other) {
            double most = 0;
            for (std::size_t i = 0; i < wanted.size(); ++i)
                most = std::max(most, std::abs(double(wanted[i]) - double(other[i])));
            return most;
        };
        auto masks = table({"masks", "max|difference| to plain"});
        masks.row("by a counter, nobody looks", apart(counted));
        masks.row("by seed, layer and item", apart(by_layer));
        check("by a counter: more than 0.1 apart", apart(counted) > 0.1);
        check("detected, and named", said.find("'dropout'") != std::string::npos, said);
        check_equal("by seed, layer and item: the same bits", by_layer, wanted);

        step("Whatever gives other values is noticed: here, a factor counts the calls.");
        int ticks = 0;
        const auto unsteady = [&] {
            const Tensor y = checkpoint([&](const Tensor& x) { return tanh(tanh(x * double(++ticks))); },
                                        tower.weights[0]);
            sum(y).backward();
        };
        const std::string unsteady_said = refusal(unsteady, ";");
        note(unsteady_said);
        check("by value", unsteady_said.find("other values") != std::string::npos);

        step("Batch norm in a layer, which runs plainly or in a checkpoint; there it runs twice.");
        std::vector<std::vector<real>> statistics;
        std::vector<int> runs, updates;
        for (const bool checkpointed : {false, true}) {
            BatchNorm<real> norm(16);
            norm.to(options().device);
            ForwardPass pass{.training = true};
            runs.push_back(0);
            const auto layer = [&](const Tensor& h) {
                ++runs.back();
                return tanh(norm(tanh(h * 2), pass));
            };
            if (!checkpointed) code(2);
            sum(checkpointed ? checkpoint(layer, tower.weights[0]) : layer(tower.weights[0])).backward();
            pass.effects.commit();
            statistics.push_back(norm.running.mean.to_vector());
            for (const real variance : norm.running.variance.to_vector())
                statistics.back().push_back(variance);
            updates.push_back(norm.updates.item());
        }

        predict(
            "In the checkpoint, how often do its running statistics move?",
            {right(1), wrong(2, "So they do in PyTorch. Here a run that repeats another knows that it does."),
             wrong(0, "The first run is a real one.")},
            hint("Which of the two runs is there only to make values again?", "An effect is not a value."),
            "A run that only makes values again leaves no effects.");
        auto moved = table({"", "runs", "updates", "running mean [0]", "running variance [0]"});
        for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
            moved.row(i == 0 ? "plain" : "checkpointed", runs[i], updates[i], statistics[i][0],
                      statistics[i][16]);
        check_equal("runs", runs, {1, 2});
        check_equal("and the statistics move once", updates, {1, 1});
        check_equal("the same statistics", statistics[1], statistics[0]);

        step("Nine layers in five segments, ten in four; and four in five.");
        show("9 in 5", words(even_segments(9, 5)));
        show("10 in 4", words(even_segments(10, 4)));
        Tower ten(10);
        const Taken uneven = ten.segments(4);
        auto remainder = table({"n", "k", "buffers", "at most k + n/k, up", "begun", "2n - n/k, down"});
        remainder.row(10, 4, uneven.buffers, 4 + 3, uneven.begun, 20 - 2);
        const std::string too_many = refusal([] { even_segments(4, 5); }, ";");
        show("4 in 5", too_many);
        check_remainder(uneven, too_many);
    }

    // Measurements of one forward pass and one backward pass.
    struct Taken {
        std::vector<Array<real>> gradients;
        std::vector<int> times_begun = {};  // runs of each layer
        int begun = 0;                      // runs of all layers
        std::size_t buffers = 0;            // the most buffers, each of the size of x, saved for backward
        std::size_t peak = 0;               // peak of the bytes, without the bytes in use before
        double seconds = 0;
    };

    // A `Tower` is a network of layers tanh(h W). It counts how often each layer runs.
    struct Tower {
        Tensor x;
        std::vector<Tensor> weights;
        Chain<Array<real>> layers;
        std::vector<int> times_begun;  // runs of each layer

        explicit Tower(std::size_t n, std::int64_t items = 16, std::int64_t width = 16)
            : x(constant(drawn({items, width}, 0, 1))) {
            for (std::size_t i = 0; i < n; ++i) {
                weights.push_back(parameter(drawn({width, width}, i + 1, 1.5 / std::sqrt(double(width)))));
                layers.push_back([this, i, W = weights.back()](const Tensor& h) {
                    ++times_begun[i];
                    return tanh(matmul(h, W));
                });
                weights.back().backward(
                    Array<real>::zeros({width, width}, options().device));  // allocates the gradient
            }
            times_begun.resize(n);
        }
        Tower(const Tower&) = delete;

        template <class Way> Taken run(Way way) {
            for (const Tensor& W : weights) W.zero_grad();
            times_begun.assign(layers.size(), 0);
            const Device device = options().device;
            const std::size_t before = memory::in_use(device);
            memory::reset_peak(device);
            const auto start = std::chrono::steady_clock::now();
            sum(way(x)).backward();
            const std::vector<real> last = weights.front().grad().to_vector();  // waits for a GPU
            Taken taken;
            taken.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            taken.times_begun = times_begun;
            taken.begun = std::accumulate(times_begun.begin(), times_begun.end(), 0);
            taken.peak = memory::peak(device) - before;
            taken.buffers =
                memory::report(device).peak_by[int(MemoryClass::saved)] / x.value().storage()->bytes;
            for (const Tensor& W : weights) taken.gradients.push_back(W.grad().clone());
            return taken;
        }
        Taken plain() {
            return run([&](const Tensor& h) { return checkpoint_sequential(layers, 1, h); });
        }
        Taken segments(std::size_t k) {
            return run([&](const Tensor& h) { return checkpoint_sequential(layers, k, h); });
        }
    };

    // Shows all values that are saved when backward begins, and the operations that read these values.
    static void show_kept(const SavedValues& kept) {
        std::vector<const void*> in_order;
        std::map<const void*, std::string> readers;
        std::map<std::string, std::size_t> buffers, bytes;
        std::map<const void*, std::size_t> size;
        for (const SavedValues::Entry& entry : kept.entries()) {
            const bool there_anyway = entry.why == SavedValues::Why::parameter;
            std::string& reader = readers[entry.storage];
            if (reader.empty()) in_order.push_back(entry.storage);
            reader += (reader.empty() ? "" : ", ") + entry.op +
                      (there_anyway                            ? " (a parameter, there anyway)"
                       : entry.why == SavedValues::Why::output ? " (its result)"
                                                               : " (its operand)");
            size[entry.storage] = there_anyway ? 0 : entry.bytes;
        }
        std::vector<std::string> reasons;
        for (const void* storage : in_order) {
            const std::string& reader = readers[storage];
            if (buffers[reader]++ == 0) reasons.push_back(reader);
            bytes[reader] += size[storage];
        }
        auto rows = table({"buffers", "bytes", "kept for"});
        for (const std::string& reason : reasons) rows.row(buffers[reason], bytes[reason], reason);
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static Array<real> drawn(Shape shape, std::uint64_t stream, double most) {
        return uniform<real>(shape, -most, most, {.seed = options().seed, .stream = stream})
            .value()
            .to(options().device);
    }

    static std::vector<real> numbers(const std::vector<Array<real>>& arrays) {
        std::vector<real> all;
        for (const Array<real>& array : arrays)
            for (const real number : array.to_vector()) all.push_back(number);
        return all;
    }

    // Draws a row of boxes for each segment. Boxes of recomputed values are hatched.
    void drawn_beside(const std::vector<int>& times_begun) const {
        Diagram diagram;
        diagram.title = say("{} layers in {} segments: the input of each is kept, and all of the last", depth,
                            to_text(std::int64_t(root)));
        for (std::size_t i = 0; i < times_begun.size(); ++i) {
            const int lane = int(i / root);
            const bool last_of_segment = i % root == root - 1, again = times_begun[i] > 1;
            const bool kept_there = !again && (!last_of_segment || i + 1 == times_begun.size());
            if (i % root == 0) {
                diagram.lanes.push_back("segment " + std::to_string(lane + 1));
                diagram.boxes.push_back({Diagram::Role::data,
                                         i == 0 ? "x" : "h" + std::to_string(i),
                                         "",
                                         "",
                                         "",
                                         lane,
                                         true,
                                         false,
                                         {}});
            }
            const int before = int(diagram.boxes.size()) - 1;
            diagram.boxes.push_back({Diagram::Role::operation,
                                     "h" + std::to_string(i + 1),
                                     "",
                                     "",
                                     "",
                                     lane,
                                     kept_there,
                                     again,
                                     {{before, false, ""}}});
        }
        graph("checkpointing", to_svg(diagram), to_dot(diagram));
    }

    // Returns the part of the error message of f that precedes the text `until`.
    template <class F> static std::string refusal(F f, const std::string& until) {
        try {
            f();
        } catch (const Error& error) {
            return std::string(error.what()).substr(0, std::string(error.what()).find(until));
        }
        return "nothing was refused";
    }

    // Returns the ordinal number as a word, such as "third" for 3.
    static std::string ordinal(std::size_t number) {
        return number == 3   ? "third"
               : number == 5 ? "fifth"
                             : to_text(std::int64_t(number)) + (number == 8 ? "h" : "th");
    }

    static std::vector<double> in_kib(const std::vector<std::size_t>& bytes) {
        std::vector<double> all;
        for (const std::size_t each : bytes) all.push_back(double(each) / 1024);
        return all;
    }

    static std::string words(const std::vector<std::size_t>& sizes) {
        std::string text;
        for (const std::size_t size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
        return text;
    }

    static const Taken& quickest(const std::vector<Taken>& runs) {
        return *std::min_element(runs.begin(), runs.end(),
                                 [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    static void check_cuts(const Table& cuts) {
        check_equal("buffers", cuts.column("buffers"), cuts.column("k + n/k"));
        check_equal("begun", cuts.column("begun"), cuts.column("2n - n/k"));
    }

    void check_roots(const Tower& high, const Table& cuts, const Table& roots,
                     const std::vector<std::size_t>& peaks) const {
        const std::vector<double> of_cuts = values(cuts.column("buffers"));  // the root is the middle divisor
        check_equal(say("2 x the root: {}, 16, 20", 2 * root),
                    {of_cuts[of_cuts.size() / 2], values(roots.column("buffers"))[0],
                     values(roots.column("buffers"))[1]},
                    {2.0 * double(root), 16.0, 20.0});
        const std::size_t least = *std::min_element(peaks.begin(), peaks.end()),
                          chosen = detail::default_segment_count(64);
        check("peak at the root: the least, to one buffer",
              peaks[chosen - 1] <= least + high.x.value().storage()->bytes);
        check("and less than a third of plain", peaks[chosen - 1] * 3 < peaks.front());
    }

    static void check_remainder(const Taken& uneven, const std::string& too_many) {
        check_equal("a remainder is spread", even_segments(9, 5), {2, 2, 2, 2, 1});
        check_equal("10 in 4: begun", uneven.begun, 2 * 10 - 10 / 4);
        check("10 in 4: at most 7 buffers", uneven.buffers <= 4 + 3);
        check("refused", too_many.find("4 layers cannot be cut into 5 segments") != std::string::npos);
    }
};

const RegisterLesson<Checkpointing> lesson({.number = 20,
                                            .slug = "checkpointing",
                                            .title = "checkpointing",
                                            .minutes = 25,
                                            .steps = 15,
                                            .parameters = {one_of("items", "layers", 16, {9, 16, 25, 64})}});

}  // namespace
