// Lesson 19: an update needs fixed memory, and memory for items. Accumulation reduces only the latter.
#include <chrono>

#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct WhereMemoryGoes {
    void talk() {
        the_articles_table();
        fixed_and_items();
        what_gets_smaller();
        before_and_after();
        smaller_images();
        out_of_memory();
        automatic();
        large_weights();
    }

    static void the_articles_table() {
        predict(
            "An article: a batch of 4 takes 14949 MB; one item at a time, 8681 MB. Fixed, in MB:",
            {right(6592).within(2), wrong(2089, "That is one item."), wrong(8681, "One item is still in it."),
             wrong(6268, "That is three items."), wrong(0, "Then one item would take a quarter of 14949.")},
            hint("What do 14949 and 8681 differ by?", "Two equations: F + 4 a = 14949 and F + a = 8681."),
            "3 items are 6268 MB, one is 2089.");
        const double a = (14949.0 - 8681) / 3, fixed = 8681 - a;
        auto rows = table({"", "Time", "% longer than above", "MB", "of items", "fixed"});
        rows.row("BEFORE  batch 4", "57.82", "", 14949, std::lround(4 * a), std::lround(fixed));
        rows.row("AFTER   4 x 1", "66.03", std::lround((66.03 / 57.82 - 1) * 100), 8681, std::lround(a),
                 std::lround(fixed));
        rows.row("AFTER   and checkpoints", "85.47", std::lround((85.47 / 66.03 - 1) * 100), 6775,
                 std::lround(6775 - fixed), std::lround(fixed));
        check_article(a, fixed);
        note("Its prose says 20 %, and leaves out that BEFORE is a batch of 4.");
    }

    static void fixed_and_items() {
        step(
            "Ours: 4 layers of 32 units under Adam. Two sizes give F, what is fixed, and A, an item's; two "
            "more test them.");
        auto rows = table({"items", "peak, bytes", "F + items x A", "residual"});
        std::vector<std::int64_t> peaks, line;
        const std::vector<std::int64_t> sizes{64, 128, 256, 512};
        for (const std::int64_t items : sizes) {
            const auto x = items_of(items, 32);
            peaks.push_back(std::int64_t(peak_of([&] {
                                             Net net(4, 32);
                                             net.update(x, items);
                                             net.update(x, items);
                                         }).peak));
        }
        const std::int64_t A = (peaks[1] - peaks[0]) / 64, fixed = peaks[0] - 64 * A;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            line.push_back(fixed + sizes[i] * A);
            rows.row(sizes[i], peaks[i], line[i], peaks[i] - line[i]);
        }
        const std::int64_t weights = 4 * 32 * 32 * std::int64_t(sizeof(real));
        show("A, bytes an item", A);
        show("F, and 4 x the weights", {fixed, 4 * weights});
        check_equal("residual 0", peaks, line);
        check("F: weights, gradients, two averages", fixed >= 4 * weights && fixed < 4 * weights + 2048);
        note("Less than 2 KiB on top: sums, counts, the loss. The items themselves are not counted.");
    }

    void what_gets_smaller() const {
        predict(
            "\"Instead of constantly carrying all the book summaries (gradients), you save them up\": "
            "accumulation saves",
            {right("activations"), wrong("gradients", "One sum of them stays, as large as before."),
             wrong("both alike", "One of the two does not know how large the batch is."),
             wrong("weights", "They are there, whatever comes.")},
            hint("What is there while the next micro-batch comes?",
                 "Look for what grows with the number of items."),
            "It keeps the gradient, as large as the weights.");
        const auto x = items_of(64, 32);
        auto rows = table({"bytes", "weights", "gradients", "Adam", "saved", "other", "in all"});
        std::vector<std::vector<real>> trained;
        std::vector<std::size_t> fixed, saved, rows_add_up_to, peaks;
        for (const std::int64_t at_a_time : {std::int64_t{64}, 64 / n}) {
            Net net(4, 32);
            net.update(x, 64);
            const std::size_t adam = averages_beside(x);
            memory::reset_peak(options().device);
            const Timeline timeline(options().device);
            net.update(x, at_a_time);
            const Timeline::Peak& peak = timeline.peak();
            const auto memory_class = [&](MemoryClass what) {
                return peak.at.in_use_by[static_cast<std::size_t>(what)];
            };
            const std::size_t weights = memory_class(MemoryClass::parameter),
                              gradients = memory_class(MemoryClass::gradient),
                              others =
                                  memory_class(MemoryClass::temporary) - adam + (peak.bytes - peak.at.in_use);
            saved.push_back(memory_class(MemoryClass::saved));
            rows.row(at_a_time == 64 ? "64" : say("{} x {}", n, at_a_time), weights, gradients, adam,
                     saved.back(), others, peak.bytes);
            fixed.push_back(weights + gradients + adam);
            rows_add_up_to.push_back(fixed.back() + saved.back() + others);
            peaks.push_back(memory::peak(options().device));
            trained.push_back(net.numbers());
        }
        show("less, in %", std::lround(100 * (1 - double(peaks[1]) / double(peaks[0]))));
        check_smaller(rows_add_up_to, peaks, fixed, saved, trained);

        step("One update of 64 items, operation by operation.");
        Net net(4, 32);
        net.update(x, 64);
        const std::size_t averages = averages_beside(x);
        memory::reset_peak(options().device);
        const Timeline timeline(options().device);
        net.update(x, 64);
        drawn_timeline(timeline, averages);
        check_equal("its peak is the ledger's", timeline.peak().bytes, memory::peak(options().device));
    }

    void before_and_after() const {
        step(say("The article's table for 8 layers of 128 units: 256 items, {} x {}, and checkpoints.", n,
                 256 / n));
        const auto x = items_of(256, 128);
        struct Way {
            std::string name;
            std::int64_t at_a_time;
            std::size_t segments;
            std::vector<double> seconds = {};
            std::size_t peak = 0;
        };
        std::vector<Way> ways{{"BEFORE  256", 256, 1},
                              {say("AFTER   {} x {}", n, 256 / n), 256 / n, 1},
                              {"AFTER   and checkpoints", 256 / n, 3}};
        Net net(8, 128);
        net.update(x, 256);
        for (int round = 0; round < 5; ++round)
            for (Way& way : ways) {
                net.segments = way.segments;
                const auto start = std::chrono::steady_clock::now();
                way.peak = peak_of([&] {
                               net.update(x, way.at_a_time);
                               net.weights[0].value().to_vector();  // waits for a GPU
                           }).peak;
                way.seconds.push_back(
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
            }
        auto rows = table({"", "Time, ms", "Samples/second", "memory"});
        for (Way& way : ways) {
            const double quickest = *std::min_element(way.seconds.begin(), way.seconds.end());
            rows.row(way.name, 1000 * quickest, std::lround(256 / quickest), format_bytes(way.peak));
        }
        check("each needs less memory than the one before",
              ways[1].peak < ways[0].peak && ways[2].peak < ways[1].peak);
        note(
            "Memory beyond weights, gradients and averages. The quickest of five; time is shown, not "
            "checked.");
    }

    static void smaller_images() {
        predict(
            "The other cure: smaller images. With half the side, activations take how many times as much?",
            {right(0.25), wrong(0.5, "Half as high, and half as wide, too."),
             wrong(0.125, "There are three channels, but they are not halved."),
             wrong(4, "Smaller: below 1."), wrong(1, "An activation has a number for each pixel.")},
            hint("An image of half the side has how many pixels?",
                 "Draw 32 x 32, and 16 x 16 in its corner."),
            "Half as high and half as wide: a quarter of the pixels.");
        auto rows = table({"side", "saved an item, bytes", "by the side squared", "weights"});
        std::vector<std::size_t> per_pixel;
        for (const std::int64_t side : {32, 16, 8}) {
            const auto image = constant(drawn({4, 3, side, side}, 0, 1));
            const auto first = parameter(drawn({8, 3, 3, 3}, 1, 0.2)),
                       second = parameter(drawn({8, 8, 3, 3}, 2, 0.2));
            const auto report = peak_of(
                [&] { sum(tanh(conv2d(tanh(conv2d(image, first, 1, 1)), second, 1, 1))).backward(); });
            const std::size_t saved = report.peak_by[int(MemoryClass::saved)] / 4;
            per_pixel.push_back(saved / std::size_t(side * side));
            rows.row(side, saved, per_pixel.back(), first.value().size() + second.value().size());
        }
        show("half the side: times", double(per_pixel[1] * 16 * 16) / double(per_pixel[0] * 32 * 32));
        check_equal("19 numbers a pixel: 3 + 8 + 8", per_pixel,
                    std::vector<std::size_t>(3, 19 * sizeof(real)));
        note("But what the small picture does not show, nobody learns.");
    }

    static void out_of_memory() {
        predict(
            "10 blocks of 64 KiB fill a device. Every other one is let go. How large a block will it give, "
            "in KiB?",
            {right(64), wrong(320, "So much is free. Does it lie side by side?"),
             wrong(128, "No two neighbours are free."), wrong(0, "Five blocks have been let go."),
             wrong(640, "Five of the ten blocks are still held.")},
            hint("320 KiB are free. In one piece?", "Draw ten blocks and cross out every other one."),
            "320 KiB are free, in five pieces of 64.");
        constexpr std::size_t block = 64 * 1024;
        const Budget budget(10 * block);
        const auto numbers = [](std::size_t bytes) {
            return Array<real>::zeros({std::int64_t(bytes / sizeof(real))}, options().device);
        };
        std::vector<Array<real>> blocks;
        for (int i = 0; i < 10; ++i) blocks.push_back(numbers(block));
        const std::string full = in_their_words(block);
        check("full: refused",
              refusal([&] { void(numbers(block)); }, ":").find("out of memory") != std::string::npos);
        for (std::size_t i = 0; i < 10; i += 2) blocks[i] = Array<real>();
        memory::drop_cache(options().device);
        const std::string in_pieces = in_their_words(2 * block),
                          ours = refusal([&] { void(numbers(2 * block)); }, "; use");
        const memory::Report now = memory::report(options().device);
        note("Full. " + full);
        note("In pieces. " + in_pieces);
        note(ours);
        show("largest piece, KiB", now.largest_free / 1024);
        check("free >= asked, and refused",
              now.budget - now.in_use >= 2 * block && ours.find("fragmented") < ours.size());
        check_equal("the largest piece", now.largest_free, block);
    }

    void automatic() const {
        std::string tries = "64";
        std::int64_t halved = 64;
        while (halved > fits) tries += ", " + std::to_string(halved /= 2);
        predict(say("64 items, and a budget that {} at a time fit into. How many are taken at a time?", fits),
                {right(double(halved)),
                 wrong(double(fits),
                       say("{} would fit. But it does not search: it halves what did not fit.", fits)),
                 wrong(double(2 * halved), say("{} do not fit.", 2 * halved)),
                 wrong(64, "64 do not fit: it runs out of memory, and tries less."),
                 wrong(1, "It stops at the first that fits."),
                 wrong(double(fits / 2), say("It halves 64, not {}.", fits))},
                hint("What does it try first, and what when that does not fit?",
                     "64, then half of it, then half of that."),
                say("{}: each time the same window of 64 items begins anew.", tries));
        std::vector<real> wanted;
        const auto needed = [&](std::int64_t at_a_time) {
            memory::reset_peak(options().device);
            const auto x = items_of(64, 8);
            Net net(16, 8);
            net.update(x, 1);  // Adam's averages are allocated in the first update
            net.update(x, at_a_time);
            wanted = net.numbers();
            return memory::peak(options().device);
        };
        const std::size_t for_5 = needed(5), for_some = needed(fits), for_64 = needed(64);
        auto rows = table({"budget, bytes", "enough for", "found", "retries", "updated as by 64"});
        std::vector<std::int64_t> found;
        bool same = true;
        for (const std::int64_t enough_for : {std::int64_t{64}, fits, std::int64_t{5}}) {
            // The gaps between blocks of memory need a few more bytes.
            const std::size_t bytes = enough_for == 64 ? for_64 * 5 / 4 : enough_for == 5 ? for_5 : for_some;
            const Budget budget(bytes + 256);
            const auto x = items_of(64, 8);
            Net net(16, 8);
            net.update(x, 1);
            Window window(net.adam, {.total = 64 * 8});
            MicroBatchSize size(64);
            size.update(window, 64, [&](std::int64_t most) { net.fill(window, x, most); });
            found.push_back(size.now());
            same = same && net.numbers() == wanted;
            rows.row(bytes + 256, enough_for, size.now(), size.retries(), net.numbers() == wanted);
        }
        check_equal("found", found, {std::int64_t{64}, halved, std::int64_t{4}});
        check("whatever was found: the update of 64, bit for bit", same);

        step("And where not even one fits? What is fixed does not get smaller.");
        const Budget budget(for_5 / 2);
        const auto x = items_of(64, 8);
        Net net(16, 8);
        Window window(net.adam, {.total = 64 * 8});
        const std::string said = refusal(
            [&] {
                MicroBatchSize(64).update(window, 64, [&](std::int64_t most) { net.fill(window, x, most); });
            },
            "; use");
        note(said);
        check("refused", said.find("not even one item") != std::string::npos);
    }

    void large_weights() const {
        predict(say("16 layers of 64 units, only 8 items. Gradients are freed after each update. Beside 8 at "
                    "once, "
                    "{} x {} need",
                    n, 8 / n),
                {right("more memory"),
                 wrong("less memory", "Activations, yes: these are small here. What is large?"),
                 wrong("as much memory", "In one case there are gradients while a forward pass runs.")},
                hint("When are gradients there, in the one case and the other?",
                     "List what is alive during the second micro-batch's forward."),
                n == 2 ? "They wait while one more forward pass needs its room."
                       : say("They wait while {} more forward passes need their room.", to_text(n - 1)));
        const auto x = items_of(8, 64);
        auto rows = table({"peak, bytes", "beyond weights", "of it gradients"});
        std::vector<std::size_t> peaks;
        for (const std::int64_t at_a_time : {std::int64_t{8}, 8 / n}) {
            Net net(16, 64);
            const auto report = peak_of([&] {
                for (std::int64_t from = 0; from < 8; from += at_a_time) {
                    const auto y = checkpoint_sequential(net.layers, 1, slice(x, 0, from, from + at_a_time));
                    (mean(y * y) * (double(at_a_time) / 8)).backward();
                }
                sgd_step(net.weights, 0.1);
                for (const auto& W : net.weights) W.free_grad();
            });
            peaks.push_back(report.peak);
            rows.row(at_a_time == 8 ? "8 at once" : say("{} x {}", n, at_a_time), report.peak,
                     report.peak_by[int(MemoryClass::gradient)]);
        }
        check("accumulation gains nothing here", peaks[1] >= peaks[0]);
        note(
            "At once, activations go as gradients come. Accumulated, both are there from the second "
            "micro-batch on.");
    }

    const std::int64_t n = setting("micro");     // micro-batches, in each step that splits a batch
    const std::int64_t fits = setting("items");  // so many items at a time fit into a step's budget

    // A `Net` is a network of layers tanh(h W), which Adam trains to return 0 for every input.
    struct Net {
        using V = Tensor;

        std::vector<V> weights;
        Chain<Array<real>> layers;
        Adam<real> adam;
        std::size_t segments = 1;

        Net(std::size_t deep, std::int64_t width) : weights(drawn_weights(deep, width)), adam(weights) {
            for (const V& W : weights) layers.push_back([W](const V& h) { return tanh(matmul(h, W)); });
        }
        // Makes an update from all items of x, `at_a_time` items at a time.
        void update(const V& x, std::int64_t at_a_time) {
            Window window(adam, {.total = double(x.value().size())});
            fill(window, x, at_a_time);
            window.finish();
        }
        void fill(Window<real>& window, const V& x, std::int64_t at_a_time) const {
            const std::int64_t items = x.shape()[0];
            for (std::int64_t from = 0; from < items; from += at_a_time) {
                const V micro =
                    constant(x.value().slice_rows(from, std::min(from + at_a_time, items)).clone());
                const V y = checkpoint_sequential(layers, segments, micro);
                window.add(Loss(y * y));
            }
        }
        std::vector<real> numbers() const {
            std::vector<real> all;
            for (const V& W : weights)
                for (const real number : W.value().to_vector()) all.push_back(number);
            return all;
        }

    private:
        static std::vector<V> drawn_weights(std::size_t deep, std::int64_t width) {
            std::vector<V> all;
            for (std::size_t i = 0; i < deep; ++i)
                all.push_back(parameter(drawn({width, width}, i + 1, 1.5 / std::sqrt(double(width)))));
            return all;
        }
    };

    // Returns the temporary memory without x, which between updates contains only Adam's averages.
    static std::size_t averages_beside(const Tensor& x) {
        return memory::report(options().device).in_use_by[int(MemoryClass::temporary)] -
               x.value().storage()->bytes;
    }

    // Runs f and returns the memory report. The peak excludes the bytes that were in use before f.
    template <class F> static memory::Report peak_of(F f) {
        const Device device = options().device;
        const memory::Report before = memory::report(device);
        memory::reset_peak(device);
        f();
        memory::Report most = memory::report(device);
        most.peak -= before.in_use;
        return most;
    }

    struct Budget {
        explicit Budget(std::size_t bytes) {
            memory::drop_cache(options().device);
            memory::set_budget(bytes, options().device);
        }
        ~Budget() {
            memory::drop_cache(options().device);
            memory::set_budget(0, options().device);
        }
    };

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static Array<real> drawn(Shape shape, std::uint64_t stream, double most) {
        return uniform<real>(shape, -most, most, {.seed = options().seed, .stream = stream})
            .value()
            .to(options().device);
    }

    static Tensor items_of(std::int64_t items, std::int64_t width) {
        return constant(drawn({items, width}, 0, 1));
    }

    // Returns the part of the error message of f that precedes the text `until`.
    template <class F> static std::string refusal(F f, const std::string& until) {
        try {
            f();
        } catch (const Error& error) {
            const std::string text = error.what();
            return text.substr(0, text.find(until));
        }
        return "nothing was refused";
    }

    // Formats the memory report like an out-of-memory message of PyTorch.
    static std::string in_their_words(std::size_t asked) {
        const memory::Report now = memory::report(options().device);
        return "Tried to allocate " + format_bytes(asked) + " (" + format_bytes(now.budget) +
               " total capacity; " + format_bytes(now.in_use) + " already allocated; " +
               format_bytes(now.budget - now.in_use - now.cached) + " free)";
    }

    // Draws the memory of one update by class of memory. The DOT version has a node for each event.
    static void drawn_timeline(const Timeline& timeline, std::size_t adam) {
        std::string dot = "digraph bytes {\n  rankdir=LR; node [shape=box];\n";
        for (const auto& sample : timeline.samples())
            dot += "  e" + std::to_string(sample.event) + " [label=\"" + format_bytes(sample.in_use) + "\"" +
                   (sample.event == timeline.peak().at.event ? ", style=filled" : "") + "];\n" +
                   (sample.event > 1 ? "  e" + std::to_string(sample.event - 1) + " -> e" +
                                           std::to_string(sample.event) + ";\n"
                                     : "");
        graph("bytes", timeline.svg("One update of 64 items: bytes in use", {"Adam's averages", adam}),
              dot + "}\n", timeline.strip({.columns = 60, .ascii = true}));
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    void check_smaller(const std::vector<std::size_t>& rows_add_up_to, const std::vector<std::size_t>& peaks,
                       const std::vector<std::size_t>& fixed, const std::vector<std::size_t>& saved,
                       const std::vector<std::vector<real>>& trained) const {
        check_equal("each row adds up to the ledger's peak", rows_add_up_to, peaks);
        check_equal("fixed: 4 x the weights, either way", fixed,
                    std::vector<std::size_t>(2, 4 * 4 * 32 * 32 * sizeof(real)));
        check_equal(say("saved: 1/{}", n), std::size_t(n) * saved[1], saved[0]);
        // Adam's step for a tiny gradient is as long as for a large one, so rounding may change this step.
        check_close("the same weights", trained[1], trained[0], 1e-5);
    }

    static void check_article(double a, double fixed) {
        check_equal("2089 an item, 6592 fixed", {std::lround(3 * a), std::lround(3 * fixed)}, {6268, 19775});
        check_equal("+14 %, +29 %",
                    {std::lround(100 * (66.03 / 57.82 - 1)), std::lround(100 * (85.47 / 66.03 - 1))},
                    {14, 29});
    }
};

const RegisterLesson<WhereMemoryGoes> lesson(
    {.number = 19,
     .slug = "where-memory-goes",
     .title = "where memory goes",
     .minutes = 25,
     .steps = 10,
     .parameters = {
         one_of("micro", "micro-batches that a batch is cut into", 4, {2, 4, 8}),
         one_of("items", "so many at a time fit into the budget", 20, {4, 6, 10, 12, 20, 24, 40, 50})}});

}  // namespace
