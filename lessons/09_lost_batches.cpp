// Lesson 9: call backward() directly after each micro-batch. A later call loses batches or saves no memory.
#include "course/kit/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct LostBatches : Toy {
    const int pieces = setting("micro"), b = 6 / pieces;  // the number of micro-batches, and of rows in one

    void talk() {
        step(say("{} of {}, each alone, and the gradient we want.",
                 capital(many_in_words(pieces, "micro-batches")), many_in_words(b, "rows")));
        auto alone = table({"rows", "loss", "gradient of this loss alone"});
        for (const auto& [micro, rows] : micro_batches(b))
            alone.row(rows, loss_of(micro), grad(loss_of(micro), {w}).front());
        const auto full = grad(loss_of(x), {w}).front();
        show("full batch", full);
        check_alone(alone, full);

        step("A published listing. It sums the losses, and goes backward when all have come.");
        const auto parts = split(x, b);
        Tensor total = Array<real>::zeros({}, options().device), loss;
        code(3);
        for (const auto& p : parts) loss = loss_of(p), total = total + loss;
        total = total / pieces;
        loss.backward();
        note("loss_of(p) is the mean of p's rows times w. pieces is their number.");

        predict("w.grad is now the gradient of",
                {right("the last micro-batch"),
                 wrong(all_of_them() + ", divided", "So it was meant. But which variable goes backward?"),
                 wrong(all_of_them() + ", summed",
                       say("`total` is a sum of {}. Is it `total` that goes backward?", to_text(pieces))),
                 wrong("no micro-batch", "`loss` was made with w: something comes back from it.")},
                hint("Which variable is backward called on?", "Say what `loss` holds after the loop."),
                "`loss` is the last micro-loss.");
        show("total", total);
        show("w.grad", w.grad());
        check_lost(total);
        note(say("The logged total is right. {} of {} micro-batches {} lost.", capital(to_text(pieces - 1)),
                 to_text(pieces), pieces == 2 ? "is" : "are"));
        graph("lost-batches", "As published: nothing comes back from the losses that are only added up",
              [this](Picture& p) { drawn(p); });

        step(say("Mended by one word: total.backward(). It reaches {}.", all_of_them()));
        w.zero_grad();
        total = constant(Array<real>::zeros({}, options().device));
        code(2);
        for (const auto& part : parts) total = total + loss_of(part);
        (total / pieces).backward();
        show("w.grad", w.grad());
        check_mended();

        predict("The gradient is right. How much memory do N stored losses hold?",
                {right("as the full batch"),
                 wrong("as one micro-batch", "So it would be if each went backward before the next came."),
                 wrong("next to nothing", "A loss is one number. But something hangs from it."),
                 wrong("N times the batch", "Each holds what its own rows need, and these are few.")},
                hint("What must be kept until a loss goes backward?",
                     "Count the graphs that are alive at the end."),
                "A loss holds its graph, and a graph holds what backward will need.");
        note(
            "Counted on a layer of 64 units, 16 items in a micro-batch: bytes that backward will need, and "
            "nodes of the graphs.");
        auto late = table({"micro-batches", "bytes kept", "of the full batch", "nodes", "of one"});
        const Alive one = alive(How::at_once, 1);
        for (const int n : {1, 4, 16}) {
            const Alive full_batch = alive(How::full_batch, n), stored = alive(How::at_the_end, n);
            late.row(n, stored.kept, full_batch.kept, stored.nodes, one.nodes);
        }

        check_stored(late, one);

        step("Backward at once, as a window does: one graph is alive at a time.");
        w.zero_grad();
        Sgd sgd({w}, {.learning_rate = 0.1});
        Window window(sgd, {.micro_batches = pieces, .total = 6});
        code(1);
        for (const auto& part : parts) window.add(Loss(matmul(part, w)));
        show("w.grad", w.grad());
        check_equal("the full batch, bit for bit", w.grad(), full);
        window.finish();
        auto soon = table({"micro-batches", "bytes kept", "at the peak", "stored: at the peak", "nodes"});
        const Alive two = alive(How::at_once, 2);
        for (const int n : {2, 4, 16}) {
            const Alive at_once = alive(How::at_once, n), stored = alive(How::at_the_end, n);
            soon.row(n, at_once.kept, at_once.peak, stored.peak, at_once.nodes);
        }
        note("A window adds up sums and counts, and divides once. The peak has gradients in it, too.");

        check_at_once(soon, one, two);

        predict(
            "An epoch is one pass over all items, here 938 batches. As published, with an update at every "
            "fifth: how many batches reach an update?",
            {right(187), wrong(938, "Each loss would have to go backward."),
             wrong(935, "So many if it were mended: three are left over then, too."),
             wrong(188, "The last three have no fifth after them: no update comes."),
             wrong(751, "So many are lost.")},
            hint("From how many of five losses does it go backward?",
                 "938 / 5, and no update for a part of five."),
            "One for each update. Mended, 935: three are left over.");
        auto used = table({"", "batches that reach an update, of 938"});
        const std::vector<std::int64_t> reached{batches_used(Listing::published, 938, 5),
                                                batches_used(Listing::mended, 938, 5),
                                                batches_used(Listing::window, 938, 5)};
        used.row("as published", reached[0]);
        used.row("total.backward()", reached[1]);
        used.row("a window, flushed at the end", reached[2]);
        check_equal("938 / 5, 938 - 938 % 5, 938", reached, {938 / 5, 938 - 938 % 5, 938});
        note("What becomes of the 3 that are left over is lesson 11.");
    }

    enum class How { full_batch, at_the_end, at_once };

    struct Alive {
        std::int64_t nodes;      // the most nodes of graphs at a time
        std::size_t kept, peak;  // peaks of the bytes saved for backward and of all bytes
    };

    // Measures the memory of a layer of 64 units. There are n micro-batches of 16 items, each of 8 numbers.
    static constexpr std::int64_t items = 16, width = 8, units = 64;
    static Alive alive(How how, int n) {
        const Device device = options().device;
        const auto random = [&](Shape shape, int stream) {
            return uniform<real>(shape, -1, 1, {.seed = options().seed, .stream = std::uint64_t(stream)})
                .value()
                .to(device);
        };
        const auto W = parameter(random({width, units}, 0));
        const std::int64_t nodes_before = Node::live_count();
        const std::size_t before = memory::in_use(device);
        memory::reset_peak(device);
        std::int64_t nodes = 0;
        std::vector<Tensor> losses;
        const int parts = how == How::full_batch ? 1 : n;
        const auto loss_of = [&](int k) {
            return mean(tanh(matmul(Tensor(random({items * n / parts, width}, k)), W))) / parts;
        };
        for (int k = 1; k <= parts; ++k) {
            losses.push_back(loss_of(k));
            nodes = std::max(nodes, Node::live_count() - nodes_before);
            if (how != How::at_once) continue;
            losses.back().backward();
            losses.clear();
        }
        for (const auto& loss : losses) loss.backward();
        const memory::Report report = memory::report(device);
        return {nodes, report.peak_by[int(MemoryClass::saved)], report.peak - before};
    }

    Tensor loss_of(const Tensor& some) const { return mean(matmul(some, w)); }

    // Runs the published listing. Batch i changes the number w[i], unless the listing loses batch i.
    enum class Listing { published, mended, window };
    static std::int64_t batches_used(Listing listing, std::int64_t batches, std::int64_t every) {
        const auto w = parameter(Array<real>::zeros({batches}, options().device));
        Sgd sgd({w}, {.learning_rate = 1});
        if (listing == Listing::window) {
            Window window(sgd, {.micro_batches = every});
            for (const auto& own : split(w, 1)) {
                window.add(Loss(own));
                if (window.full()) window.finish();
            }
            window.flush();
        } else {
            const Tensor nothing = Array<real>::zeros({}, options().device);
            Tensor total = nothing;
            for (std::int64_t i = 0; i < batches; ++i) {
                const auto loss = sum(slice(w, 0, i, i + 1));
                total = total + loss;
                if ((i + 1) % every != 0) continue;
                (listing == Listing::published ? loss : total / every).backward();
                sgd.step();
                sgd.zero_grad();
                total = nothing;
            }
        }
        const std::vector<real> moved = w.value().to_vector();
        return batches - std::count(moved.begin(), moved.end(), real(0));
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    std::string all_of_them() const { return pieces == 2 ? "both of them" : "all " + to_text(pieces); }

    // ---- tools: the picture ----------------------------------------------------------------------------

    void drawn(Picture& picture) const {
        const LostBatches own;  // has its own w
        picture.name(own.w, "w");
        const auto parts = own.micro_batches(b);
        for (const auto& [micro, rows] : parts) {
            const auto loss = own.loss_of(micro);
            picture.name(micro, many_rows(rows)).name(loss, "loss");
            if (&micro == &parts.back().micro)
                picture.backward(loss, "the last: loss.backward()");
            else
                picture.add(loss, "lost: no backward");
        }
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    static void check_stored(const Table& late, const Alive& one) {
        check_equal("one: matmul, tanh, mean, / N", one.nodes, 4);
        check_equal("one: 16 rows of 8 and 64 numbers", one.kept,
                    items * (width + units) * std::int64_t(sizeof(real)));
        bool n_times = true;
        for (std::size_t i = 0; i < 3; ++i) {
            const double n = values(late.column("micro-batches"))[i];
            n_times = n_times && values(late.column("nodes"))[i] == n * double(one.nodes) &&
                      values(late.column("bytes kept"))[i] == n * double(one.kept);
        }
        check("N of them: N times the nodes and bytes", n_times);
        check("which is what the full batch holds",
              values(late.column("bytes kept")) == values(late.column("of the full batch")));
    }

    static void check_at_once(const Table& soon, const Alive& one, const Alive& two) {
        const auto all = [&](const char* column, auto number) {
            return values(soon.column(column)) == std::vector<double>(3, double(number));
        };
        check("at once: the same for every N",
              all("nodes", one.nodes) && all("bytes kept", one.kept) && all("at the peak", two.peak));
        const auto stored = values(soon.column("stored: at the peak")),
                   peak = values(soon.column("at the peak"));
        bool peak_grows = true;
        for (std::size_t i = 0; i < 3; ++i) {
            const int n = int(values(soon.column("micro-batches"))[i]);
            peak_grows =
                peak_grows && stored[i] >= double(alive(How::at_the_end, n).kept) && stored[i] > peak[i];
        }
        check("stored: the peak grows with N", peak_grows);
    }

    // Each term has at most 9 roundings, and the weight of a row is at most 1/b.
    const double bound = roundings(9) * largest_column() / b;

    void check_alone(const Table& alone, const Array<real>& full) const {
        std::vector<double> means;
        for (std::size_t from = 0, rows = std::size_t(b); from < 6; from += rows)
            for (const double one : exact_means(from, from + rows)) means.push_back(one);
        check_close("the means of " + many_in_words(b, "rows"), alone.column("gradient of this loss alone"),
                    means, bound);
        check("prints [-0.3536  0.0207 -0.6125]", to_string(full) == "[-0.3536  0.0207 -0.6125]");
    }

    void check_lost(const Tensor& total) const {
        check_close("total", total, -3.97205 / 6, roundings(12) * 2);
        const std::vector<double> last = exact_means(std::size_t(6 - b), 6);
        check("prints " + as_printed(last), to_string(w.grad()) == as_printed(last));
        check_close("w.grad", w.grad(), last, bound);
    }

    void check_mended() const {
        check("prints [-0.3536  0.0207 -0.6125]", to_string(w.grad()) == "[-0.3536  0.0207 -0.6125]");
        check_close("w.grad", w.grad(), exact_means(), bound);
    }
};

const RegisterLesson<LostBatches> lesson(
    {.number = 9,
     .slug = "lost-batches",
     .title = "lost batches",
     .minutes = 15,
     .steps = 7,
     .parameters = {one_of("micro", "equal micro-batches of the six rows", 3, {2, 3, 6})}});

}  // namespace
