// Lesson 22: a GPU computes the same gradients as the CPU. Each launch of a kernel takes time.
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "course/data/fashion.hpp"
#include "course/kit/toy.hpp"
#include "tally/device/backend.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct OnTheGpu {
    const int n = setting("micro");  // micro-batches of the six rows

    void talk() {
        if (options().device == Device::cpu) skip("it sets a GPU beside the CPU: --device cuda");
        const bool simulated = backend::name() == "simulated";
        const Toy toy;
        const auto rows = toy.x.value().to(Device::cpu), weights = toy.w.value().to(Device::cpu);

        step("An array says where it lives. Operations run there, and only there.");
        code(2);
        const auto there = rows.to(Device::cuda);
        const auto back = there.to(Device::cpu);
        auto places = table({"", "lives on"});
        places.row("rows", to_string(rows.device()));
        places.row("there", to_string(there.device()));
        places.row("back", to_string(back.device()));
        check_equal("there and back: the same bits", back, rows);
        std::string refusal;
        try {
            void(matmul<real>(there, weights));
        } catch (const Error& error) {
            refusal = error.what();
        }
        check("X there times w here: the error names both",
              refusal.find("cuda") != std::string::npos && refusal.find("cpu") != std::string::npos, refusal);

        step("Lessons 5 to 7 once more, on both devices.");
        const auto here = three_ways(rows, weights, Device::cpu);
        const auto over_there = three_ways(rows, weights, Device::cuda);
        const std::vector<std::string> names{"full batch", say("sum of {}x{}", n, 6 / n),
                                             say("sum / (6/{})", 6 / n)};
        std::vector<std::string> lines;
        for (const double factor : {1 / 6.0, n / 6.0, 1 / 6.0})
            lines.push_back(Toy::as_printed(toy.column_sums(factor)));
        auto ways = table({"w.grad", "cpu", "cuda", "bits"});
        bool printed = true;
        for (std::size_t i = 0; i < 3; ++i) {
            ways.row(names[i], here[i], over_there[i], same_bits(here[i], over_there[i]) ? "same" : "differ");
            printed = printed && to_string(Array<real>({3}, over_there[i])) == lines[i];
        }
        check("the GPU prints the three lines", printed);
        for (std::size_t i = 0; i < 3; ++i) check_equal(names[i], over_there[i], here[i]);
        note("Its own kernel adds in the same order, and rounds alike.");

        predict("A large product by OpenBLAS here and by cuBLAS there. They give",
                {right("equal within a bound"),
                 wrong("the same bits", "Two libraries, and each adds in the order that suits its machine."),
                 wrong("unrelated numbers", "The same products are added; only their order is another."),
                 wrong("fewer digits there", "Both have the same type.")},
                hint("In which order does each of them add?", "Lesson 8: the same numbers in another order."),
                "Each adds in an order of its own; an ordered product has one order on both.");
        const Products chosen = products();
        auto sizes = table({"X times W", "multiply-adds", "bits", "max|diff|"});
        bool ordered_are_equal = true;
        std::vector<double> all_cpu, all_cuda, all_bounds;
        for (const auto& [b, k, columns] : {std::tuple(6, 3, 1), std::tuple(16, 16, 16),
                                            std::tuple(17, 16, 16), std::tuple(1024, 32, 16)}) {
            const Array<real> X = uniform<real>({b, k}, -1, 1, {.seed = options().seed, .stream = 1}).value();
            const Array<real> W =
                uniform<real>({k, columns}, -1, 1, {.seed = options().seed, .stream = 2}).value();
            set_products(Products::ordered);
            ordered_are_equal = ordered_are_equal && same_bits(product_and_gradient(X, W, Device::cpu),
                                                               product_and_gradient(X, W, Device::cuda));
            set_products(Products::blas);
            const auto cpu = product_and_gradient(X, W, Device::cpu);
            const auto cuda = product_and_gradient(X, W, Device::cuda);
            const auto bounds = bounds_of(X, W);
            double largest = 0;
            for (std::size_t i = 0; i < cpu.size(); ++i)
                largest = std::max(largest, std::abs(double(cpu[i]) - double(cuda[i])));
            sizes.row(to_string(X.shape()) + " x " + to_string(W.shape()), b * k * columns,
                      same_bits(cpu, cuda) ? "same" : "differ", largest);
            all_cpu.insert(all_cpu.end(), cpu.begin(), cpu.end());
            all_cuda.insert(all_cuda.end(), cuda.begin(), cuda.end());
            all_bounds.insert(all_bounds.end(), bounds.begin(), bounds.end());
        }
        set_products(chosen);
        if (simulated)
            note("Simulated device: the host's library multiplies for both, so here they do not differ.");
        check("ordered products: the same bits", ordered_are_equal);
        check_close("by libraries: each within its bound", all_cuda, all_cpu, all_bounds);

        step(say("{}, forward and backward: the CPU hands work over to the GPU.",
                 capital(many_in_words(n, "micro-batches"))));
        const auto x = constant(rows.to(Device::cuda));
        const auto w = parameter(weights.to(Device::cuda).clone());
        std::vector<std::uint64_t> waited;
        auto before = waits(Device::cuda);
        const auto count = [&] {
            waited.push_back(waits(Device::cuda) - before);
            before = waits(Device::cuda);
        };
        const auto micros = split(x, 6 / n);
        code(1);
        for (const auto& m : micros) (mean(matmul(m, w)) / n).backward();
        count();

        predict("Then w.grad is read. How often has the CPU waited by then?",
                {right(1), wrong(0, "A number that is read must be there."),
                 wrong(n, "A backward pass is handed over like anything else: nobody reads anything yet."),
                 wrong(2 * n, "Forward and backward are handed over: nobody reads anything yet.")},
                hint("When does the CPU need a number that the GPU computes?",
                     "Count what is read, not what is computed."),
                "Once. The CPU only hands work over; to read a number it must wait until there is one.");
        const auto gradient = w.grad().to_vector();
        count();
        for (const auto& m : micros) mean(matmul(m, w)).item();
        count();
        auto waiting = table({"", "waits"});
        waiting.row(many_in_words(n, "micro-batches") + ", forward and backward", waited[0]);
        waiting.row("reading w.grad", waited[1]);
        waiting.row(n == 1 ? "its loss, read at once" : many_in_words(n, "losses") + ", each read at once",
                    waited[2]);
        check_equal("none, one, each", waited, {0, 1, n});
        check_equal("and w.grad is the full batch's", gradient, here[0]);
        note("Printing every loss makes the GPU idle after every micro-batch.");

        step("Forward and backward of a product, in microseconds: shown, not checked.");
        auto times = table({"X and W", "cpu", "cuda: handed over", "cuda: done", "faster"});
        for (const int extent : {4, 16, 64, 256}) {
            const auto cpu = time_on(Device::cpu, extent), cuda = time_on(Device::cuda, extent);
            times.row(to_string(Shape{extent, extent}), cpu.done, cuda.handed_over, cuda.done,
                      cuda.done < cpu.done ? "cuda" : "cpu");
        }
        note(simulated ? "Simulated device: the host computes. These times say nothing of a GPU."
                       : "Where a larger product takes the GPU no longer, handing the work over is what "
                         "takes the time.");
        train_on_both();
    }

    static void train_on_both() {
        const std::int64_t count = images_wanted(), updates = (count + batch - 1) / batch;
        step("Lesson 16's training, " + std::to_string(count) +
             " images as 4 x 16, rate 0.001, on both devices.");
        const Pictures<real> pictures = generated_pictures<real>(count, options().seed);
        const Epoch start = train(pictures, 0, Device::cpu);
        const Epoch first = train(pictures, batch, Device::cpu);
        const Epoch here = train(pictures, count, Device::cpu);
        const Epoch there = train(pictures, count, Device::cuda);
        const double bound = bound_of(updates, here.weights, apart(first.weights, start.weights));
        auto weights = table({"after " + many(updates, "updates"), "max|w - start|", "max|w - w cpu|"});
        const auto row = [&](const char* name, const Epoch& epoch) {
            weights.row(name, apart(epoch.weights, start.weights), apart(epoch.weights, here.weights));
        };
        row("cpu", here);
        row("cuda", there);
        check_close("cuda: the CPU's weights", apart(there.weights, here.weights), 0.0, bound);

        step("That training's time and waits: shown, not checked.");
        auto times = table({"", "seconds", "images/second", "waits"});
        const auto timed = [&](const char* name, const Epoch& epoch) {
            times.row(name, epoch.seconds, double(count) / epoch.seconds, epoch.waits);
        };
        timed("cpu", here);
        timed("cuda", there);
        note("A window waits three times: for its count, its gradients and its loss.");
    }

    // Returns the gradient of the full batch, and the sum and the mean of n micro-batches' gradients.
    std::vector<std::vector<real>> three_ways(const Array<real>& rows, const Array<real>& weights,
                                              Device device) const {
        const auto x = constant(rows.to(device));
        const auto w = parameter(weights.to(device).clone());
        std::vector<std::vector<real>> found;
        for (const auto& [items, divisor] : {std::pair(6, 1), std::pair(6 / n, 1), std::pair(6 / n, n)}) {
            w.zero_grad();
            for (const auto& micro : split(x, items)) (mean(matmul(micro, w)) / divisor).backward();
            found.push_back(w.grad().to_vector());
        }
        return found;
    }

    // Returns X W, followed by the gradient of mean(X W) with respect to W.
    static std::vector<real> product_and_gradient(const Array<real>& rows, const Array<real>& weights,
                                                  Device device) {
        const auto W = parameter(weights.to(device).clone());
        const auto product = matmul(constant(rows.to(device)), W);
        mean(product).backward();
        std::vector<real> numbers = product.value().to_vector();
        const std::vector<real> gradient = W.grad().to_vector();
        numbers.insert(numbers.end(), gradient.begin(), gradient.end());
        return numbers;
    }

    struct Microseconds {
        double handed_over, done;
    };

    // Measures the forward pass and the backward pass of mean(X W), with `extent` rows and columns. Returns
    // the shortest time until the calls return, and the shortest time until the results are computed.
    static Microseconds time_on(Device device, int extent) {
        const auto X = constant(
            uniform<real>({extent, extent}, -1, 1, {.seed = options().seed, .stream = 1}).value().to(device));
        const auto W = parameter(
            uniform<real>({extent, extent}, -1, 1, {.seed = options().seed, .stream = 2}).value().to(device));
        constexpr double never = std::numeric_limits<double>::infinity();
        Microseconds best{never, never};
        for (int pass = 0; pass <= 5; ++pass) {
            using Clock = std::chrono::steady_clock;
            const auto since = [start = Clock::now()] {
                return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
            };
            W.zero_grad();
            auto loss = mean(matmul(X, W));
            loss.backward();
            const double handed_over = since();
            loss.item();
            const double done = since();
            if (pass > 0) best = {std::min(best.handed_over, handed_over), std::min(best.done, done)};
        }
        return best;
    }

    // ---- lesson 16's training ----

    static constexpr std::int64_t batch = 64, micro_batch = 16;
    static constexpr double learning_rate = 1e-3;

    struct Epoch {
        std::vector<real> weights;
        double seconds = 0;
        std::uint64_t waits = 0;
    };

    // Trains one epoch with the images in order. An update has four micro-batches of 16 images.
    static Epoch train(const Pictures<real>& pictures, std::int64_t count, Device device) {
        const std::uint64_t seed = options().seed;
        Sequential<real> model(Linear<real>(fashion_pixels, 512, {seed, 1}), ReLU<real>(),
                               Linear<real>(512, 512, {seed, 2}), ReLU<real>(),
                               Linear<real>(512, 10, {seed, 3}));
        model.to(device);
        Sgd sgd(model.parameters(), {.learning_rate = learning_rate});
        Window window(sgd, {.total = double(batch)});
        const Array<real> images = pictures.images.to(device);
        const Array<std::int32_t> labels = pictures.labels.to(device);
        rows(labels, Items(0, batch)).to_vector();  // waits until all data is on the device

        using Clock = std::chrono::steady_clock;
        const auto start = Clock::now();
        const auto waited = waits(device);
        for (const Items& part : split(Items::in_order(count), batch)) {
            for (const Items& micro : split(part, micro_batch))
                window.add(cross_entropy(model(constant(rows(images, micro))), rows(labels, micro)));
            window.flush();  // the last window is a tail
        }
        Epoch done{{}, 0, waits(device) - waited};
        for (const auto& parameter : model.parameters())
            for (const real w : parameter.value().to_vector()) done.weights.push_back(w);
        done.seconds = std::chrono::duration<double>(Clock::now() - start).count();
        return done;
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static bool same_bits(const std::vector<real>& a, const std::vector<real>& b) {
        return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(real)) == 0;
    }

    // The default is a tenth of lesson 16's images, and leaves half a batch over. TALLY_IMAGES=160 takes 1 s.
    static std::int64_t images_wanted() {
        const char* wanted = std::getenv("TALLY_IMAGES");
        const std::int64_t images = wanted ? std::atoll(wanted) : 6432;
        if (images < batch || images > 60000)
            throw Error("[fashion] TALLY_IMAGES must be from 64 to 60000; it is '" + std::string(wanted) +
                        "'");
        return images;
    }

    static double apart(const std::vector<real>& a, const std::vector<real>& b) {
        double found = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            found = std::max(found, std::abs(double(a[i]) - double(b[i])));
        return found;
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // The results of two devices differ by at most twice the error bound of one device.
    static std::vector<double> bounds_of(const Array<real>& X, const Array<real>& W) {
        const auto rows = std::size_t(X.shape()[0]), inputs = std::size_t(X.shape()[1]);
        const auto outputs = std::size_t(W.shape()[1]);
        const double in_product = 2 * roundings(int(inputs)), in_gradient = 2 * roundings(int(rows) + 2);
        std::vector<double> product(rows * outputs), gradient(inputs * outputs);
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t in = 0; in < inputs; ++in)
                for (std::size_t out = 0; out < outputs; ++out) {
                    const double x = std::abs(double(X.span()[row * inputs + in]));
                    const double w = std::abs(double(W.span()[in * outputs + out]));
                    product[row * outputs + out] += in_product * x * w;
                    gradient[in * outputs + out] += in_gradient * x / double(rows * outputs);
                }
        product.insert(product.end(), gradient.begin(), gradient.end());
        return product;
    }

    // Bounds the difference of two training runs that add numbers in different orders. Rounding errors of
    // weights are independent, and rounding errors in a ReLU may change a sixteenth of an update.
    static double bound_of(std::int64_t updates, const std::vector<real>& weights, double first_update) {
        const double u = double(std::numeric_limits<real>::epsilon()) / 2;
        const double rounding =
            6 * std::sqrt(2.0 / 3 * double(updates)) * u * apart(weights, std::vector<real>(weights.size()));
        return rounding + (u > 1e-12 ? first_update / 16 : 0);
    }
};

const RegisterLesson<OnTheGpu> lesson({.number = 22,
                                       .slug = "on-the-gpu",
                                       .title = "on the GPU",
                                       .minutes = 15,
                                       .steps = 8,
                                       .device = "cuda",
                                       .parameters = {equal_micro_batches()}});

}  // namespace
