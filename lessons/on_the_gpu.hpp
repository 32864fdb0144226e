// Measurements of lesson 31: one product, and one epoch of lesson 22's network, on either device; and its kernel.
#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "course/data/fashion.hpp"
#include "course/kit/toy.hpp"
#include "execute.hpp"
#include "tally/device/backend.hpp"
#include "tally/train.hpp"

namespace {
// Returns the message of the Error that a call throws.
inline std::string message_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

// The gradient of the mean of X W with respect to W, for random X and W.
inline std::vector<double> product_gradient(Device device, Products by, int rows, int inputs, int outputs) {
    const Products chosen = products();
    set_products(by);
    const Tensor X =
        uniform<real>({rows, inputs}, -1, 1, {.seed = options().seed, .stream = 1}).value().to(device);
    const Tensor W = parameter(
        uniform<real>({inputs, outputs}, -1, 1, {.seed = options().seed, .stream = 2}).value().to(device));
    const Tensor product = matmul(X, W);
    mean(product * product).backward();
    set_products(chosen);
    return values(W.grad());
}

struct Microseconds {
    double queued, done;
};

// Measures the forward pass and the backward pass of mean(X W), with `extent` rows and columns. Returns the
// shortest time until the calls return, and the shortest time until the results are computed.
inline Microseconds time_on(Device device, int extent) {
    const Tensor X = uniform<real>({extent, extent}, -1, 1, {.stream = 1}).value().to(device);
    const Tensor W = parameter(uniform<real>({extent, extent}, -1, 1, {.stream = 2}).value().to(device));
    constexpr double never = std::numeric_limits<double>::infinity();
    Microseconds best{never, never};
    for (int pass = 0; pass <= 5; ++pass) {
        using Clock = std::chrono::steady_clock;
        const auto since = [start = Clock::now()] {
            return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
        };
        W.zero_grad();
        const Tensor loss = mean(matmul(X, W));
        loss.backward();
        const double queued = since();
        loss.item();
        const double done = since();
        if (pass > 0) best = {std::min(best.queued, queued), std::min(best.done, done)};
    }
    return best;
}

struct Epoch {
    std::vector<double> weights;
    double seconds = 0;
    std::uint64_t waits = 0;
};

// Trains with the images in order. An update has four micro-batches of 16 images.
inline Epoch train(const Pictures<real>& pictures, std::int64_t count, Device device) {
    const std::uint64_t seed = options().seed;
    Sequential<real> model(Linear<real>(fashion_pixels, 512, {seed, 1}), ReLU<real>(),
                           Linear<real>(512, 512, {seed, 2}), ReLU<real>(), Linear<real>(512, 10, {seed, 3}));
    model.to(device);
    Sgd sgd(model.parameters(), {.learning_rate = 1e-3});
    Window window(sgd, {.total = 64});
    const Array<real> images = pictures.images.to(device);
    const Array<std::int32_t> labels = pictures.labels.to(device);
    rows(labels, Items(0, 64)).to_vector();  // waits until all data is on the device

    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const auto waited = waits(device);
    for (const Items& part : split(Items::in_order(count), 64)) {
        for (const Items& micro : split(part, 16))
            window.add(cross_entropy(model(constant(rows(images, micro))), rows(labels, micro)));
        window.flush();  // the last window is a tail
    }
    Epoch done{{}, 0, waits(device) - waited};
    for (const auto& parameter : model.parameters())
        for (const real w : parameter.value().to_vector()) done.weights.push_back(w);
    done.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return done;
}

// The default is a tenth of lesson 22's images, and leaves half a batch over. TALLY_IMAGES=160 takes 1 s.
inline std::int64_t images_wanted() {
    const char* wanted = std::getenv("TALLY_IMAGES");
    const std::int64_t images = wanted ? std::atoll(wanted) : 6432;
    if (images < 64 || images > 60000)
        throw Error("[fashion] TALLY_IMAGES must be from 64 to 60000; it is '" + std::string(wanted) + "'");
    return images;
}

// Bounds the difference of two trainings that add numbers in different orders. Rounding errors of weights are
// independent, and a rounding error in a ReLU may change a sixteenth of an update.
inline double bound_of_training(std::int64_t updates, const std::vector<double>& weights,
                                double first_update) {
    const double largest = furthest(weights, std::vector<double>(weights.size()));
    return 6 * std::sqrt(2.0 / 3 * double(updates)) * roundings(1) * largest + first_update / 16;
}

// Returns the text of a file in this folder.
inline std::string text_of(const std::string& name) {
    const std::filesystem::path built(__FILE__), here = built.parent_path().filename();
    std::ifstream file(built.parent_path() / name);
    if (!file) file.open(here / name);  // if the lesson was built elsewhere, but runs in the repository
    if (!file) throw Error("[text_of] cannot read lessons/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Shows lines of a file in this folder, without the margin of four spaces.
inline void show_lines(const std::string& name, std::initializer_list<int> numbers) {
    std::istringstream text(text_of(name));
    std::vector<std::string> lines{""};  // the first line has the number 1
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    auto shown = table({"", name});
    for (const int number : numbers)
        shown.row(std::to_string(number), lines[static_cast<std::size_t>(number)].substr(4));
}

// Makes a comment of the last line that contains the instruction.
inline std::string without_last(std::string ptx, const std::string& instruction) {
    return ptx.replace(ptx.rfind(instruction), 0, "// ");
}

struct Execution {
    double loss;
    std::string finding;  // empty if there is none
};

// Whether the executor found a race in line 11, where both threads read.
inline bool is_race(const Execution& one) {
    return one.finding.find(": race: ") != one.finding.npos &&
           one.finding.find("add_micro_batches.cu:11") != one.finding.npos;
}

inline void show_losses(const Execution& with_a, const Execution& with_b, const Execution& a,
                        const Execution& b) {
    auto orders = table({"", "loss with line 12", "loss without it"});
    orders.row("A  thread 0 first", with_a.loss, a.loss);
    orders.row("B  thread 1 first", with_b.loss, b.loss);
}

// Executes the kernel add_micro_batches for the toy on the CPU. Each thread runs up to the next barrier, and in
// "forward" order thread 0 runs first.
inline Execution execute(const std::string& kernel, const std::string& order) {
    const auto pointer = [](const Tensor& t) {
        const std::vector<double> numbers = values(t);
        return ptx::in_global_memory(std::vector<float>(numbers.begin(), numbers.end()));
    };
    float* const loss = ptx::in_global_memory(std::vector<float>(1));
    const std::vector<std::string> findings =
        ptx::execute(kernel, {.kernel = "add_micro_batches",
                              .threads = 2,
                              .pointers = {pointer(toy::rows()), pointer(toy::weights()), loss},
                              .order = order});
    return {*loss, findings.empty() ? "" : findings.front()};
}
}  // namespace
