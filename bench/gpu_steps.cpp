// Compares tally on a GPU with direct calls of cuBLAS and with copies. Compares the results of each row with
// the CPU's results, and prints one line of JSON for each row.
// Usage: bench_gpu_steps [--small | --cpu] [--rounds N] [NAME...]
//
// NAME selects the rows whose names begin with NAME. --small uses small sizes, and calls neither cuBLAS nor
// copies. --cpu also uses small sizes, and runs on the CPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/gpu_floor.hpp"
#include "bench/gpu_rows.hpp"
#include "bench/timing.hpp"
#include "tally/device/backend.hpp"

namespace {

using namespace tally;
using bench::Contestant;
using bench::Row;

constexpr double round_ns = 10e6;  // much longer than a tick of the host's clock plus a wait

struct Settings {
    Device device = Device::cuda;
    bool small = false;
    int rounds = 11;
    std::vector<std::string> wanted;

    bool wants(const std::string& name) const {
        return wanted.empty() || std::any_of(wanted.begin(), wanted.end(),
                                             [&](const std::string& w) { return name.starts_with(w); });
    }
    void finish() const {
        if (device == Device::cuda) bench::finish();
    }
};

double distance(const Array<float>& a, const Array<float>& b) {  // relative to the norm of b
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double difference = double{a.span()[i]} - double{b.span()[i]};
        apart += difference * difference;
        size += double{b.span()[i]} * double{b.span()[i]};
    }
    return std::sqrt(apart / size);
}

double sum_of_sizes(const Array<float>& a) {
    double total = 0;
    for (const float value : a.span()) total += std::abs(double{value});
    return total;
}

// Compares the result of one run on the GPU with the CPU's result. A result with NaN never agrees.
bool agrees_with_cpu(const Row& row, const Row& on_cpu, double tolerance = 1e-5) {
    row.run();
    on_cpu.run();
    const double apart = distance(row.seen(), on_cpu.seen());
    if (apart <= tolerance) return true;
    std::fprintf(stderr, "%s: the relative difference from the CPU's result is %g\n", row.name.c_str(),
                 apart);
    return false;
}

std::size_t repeats(const std::function<void()>& run, const Settings& settings) {
    using clock = std::chrono::steady_clock;
    if (settings.small) return 1;  // times of small sizes are meaningless
    run();
    settings.finish();
    const auto start = clock::now();
    run();
    settings.finish();
    const std::chrono::duration<double, std::nano> took = clock::now() - start;
    return static_cast<std::size_t>(std::clamp(round_ns / took.count(), 1.0, 2000.0));
}

// Measures and prints the time of `row` and the time of `floor`. Returns false if the host waited for the GPU
// during the runs.
bool race(const Row& row, const char* floor_name, const std::function<void()>& floor,
          const Settings& settings) {
    row.run();
    const double check = sum_of_sizes(row.seen());
    std::vector<Contestant> contestants{{"tally", row.run, repeats(row.run, settings)}};
    if (floor) contestants.push_back({floor_name, floor, repeats(floor, settings)});

    const std::uint64_t before = detail::waits(settings.device);
    const auto times = bench::measure(contestants, settings.rounds, [&] { settings.finish(); });
    const std::uint64_t waited = detail::waits(settings.device) - before;

    std::printf(R"({"row": "%s", "per": "%s", "moved": %zu, "waits": %llu, "check": %.9g, "contestants": [)",
                row.name.c_str(), row.per.c_str(), row.moved, static_cast<unsigned long long>(waited), check);
    for (std::size_t i = 0; i < contestants.size(); ++i) {
        std::printf(
            R"(%s{"name": "%s", "median_ns": %.1f, "minimum_ns": %.1f, "times_tally": %.4f, "rounds_ns": [)",
            i == 0 ? "" : ", ", contestants[i].name.c_str(), bench::median(times[i]),
            *std::min_element(times[i].begin(), times[i].end()), bench::times_longer(times[i], times[0]));
        for (std::size_t r = 0; r < times[i].size(); ++r)
            std::printf("%s%.1f", r == 0 ? "" : ", ", times[i][r]);
        std::printf("]}");
    }
    std::printf("]}\n");
    std::fflush(stdout);
    if (waited != 0)
        std::fprintf(stderr, "%s: the host waited %llu times during the runs\n", row.name.c_str(),
                     static_cast<unsigned long long>(waited));
    return waited == 0;
}

// Returns a function that computes only the matrix products of one update. Products of later micro-batches
// add to the gradients.
std::function<void()> products_of(const bench::Network& network) {
    std::vector<std::size_t> buffers;
    const auto buffer = [&](std::int64_t high, std::int64_t wide) {
        buffers.push_back(static_cast<std::size_t>(high * wide));
        return buffers.size() - 1;
    };
    struct Layer {
        std::size_t in, out, w, gradient, y, dy;
    };
    const std::int64_t m = network.rows_each;
    std::vector<Layer> layers;
    for (std::size_t l = 1; l < network.sizes.size(); ++l) {
        const std::int64_t in = network.sizes[l - 1], out = network.sizes[l];
        layers.push_back({static_cast<std::size_t>(in), static_cast<std::size_t>(out), buffer(in, out),
                          buffer(in, out), buffer(m, out), buffer(m, out)});
    }
    std::vector<bench::Call> calls;
    const auto rows = static_cast<std::size_t>(m);
    for (std::int64_t micro = 0; micro < network.micro_batches; ++micro) {
        const std::size_t x = buffer(m, network.sizes[0]);
        const Write how = micro == 0 ? Write::set : Write::add;
        const auto input = [&](std::size_t l) { return l == 0 ? x : layers[l - 1].y; };
        for (std::size_t l = 0; l < layers.size(); ++l)
            calls.push_back({{rows, layers[l].out, layers[l].in, false, false},
                             input(l),
                             layers[l].w,
                             layers[l].y,
                             Write::set});
        for (std::size_t l = layers.size(); l-- > 0;) {
            calls.push_back({{layers[l].in, layers[l].out, rows, true, false},
                             input(l),
                             layers[l].dy,
                             layers[l].gradient,
                             how});
            if (l > 0)
                calls.push_back({{rows, layers[l].in, layers[l].out, false, true},
                                 layers[l].dy,
                                 layers[l].w,
                                 layers[l - 1].dy,
                                 Write::set});
        }
    }
    return bench::products(buffers, calls);
}

bool updates(const Settings& settings) {
    const bool small = settings.small;
    const std::vector<std::int64_t> mlp{784, 512, 512, 10},
        large = small ? std::vector<std::int64_t>{128, 128, 128, 64}
                      : std::vector<std::int64_t>{4096, 4096, 4096, 1024};
    const std::int64_t whole = small ? 64 : 4096;
    const std::vector<std::pair<std::string, bench::Network>> networks{
        {"MLP as 1x64", {mlp, 1, 64}},
        {"MLP as 4x16", {mlp, 4, 16}},
        {"MLP as 64x1", {mlp, 64, 1}},
        {"large MLP as 1x" + std::to_string(whole), {large, 1, whole}},
        {"large MLP as 4x" + std::to_string(whole / 4), {large, 4, whole / 4}}};
    bool good = true;
    for (const auto& [name, network] : networks) {
        if (!settings.wants(name)) continue;
        // Compares a smaller batch, because a CPU would take minutes for the large batch.
        const bench::Network fewer{network.sizes, network.micro_batches,
                                   std::min<std::int64_t>(network.rows_each, 64)};
        // The tolerance is large, because rounding may change the sign of an input of ReLU that is nearly 0.
        good = agrees_with_cpu(bench::update(name, fewer, settings.device),
                               bench::update(name, fewer, Device::cpu), 5e-3) &&
               good;
        good = race(bench::update(name, network, settings.device), "cuBLAS",
                    small ? nullptr : products_of(network), settings) &&
               good;
    }
    return good;
}

bool bandwidth(const Settings& settings) {
    const std::size_t extent = settings.small ? 256 : 8192;
    const auto few = bench::kernels_alone(67, 33, settings.device),
               few_on_cpu = bench::kernels_alone(67, 33, Device::cpu),
               rows = bench::kernels_alone(extent, extent, settings.device);
    bool good = true;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!settings.wants(rows[i].name)) continue;
        good = agrees_with_cpu(few[i], few_on_cpu[i]) && good;
        good = race(rows[i], "copy", settings.small ? nullptr : bench::copy(rows[i].moved), settings) && good;
    }
    return good;
}

}  // namespace

int main(int argc, char** argv) try {
    set_products(Products::blas);  // cuBLAS, like the direct calls
    Settings settings;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--small")
            settings.small = true;
        else if (word == "--cpu")
            settings.small = true, settings.device = Device::cpu;
        else if (word == "--rounds" && i + 1 < argc)
            settings.rounds = std::max(1, std::atoi(argv[++i]));
        else if (word.starts_with("-"))
            return std::fprintf(stderr, "usage: bench_gpu_steps [--small | --cpu] [--rounds N] [NAME...]\n"),
                   2;
        else
            settings.wanted.emplace_back(word);
    }
    if (settings.device == Device::cuda && !backend::unavailable_reason().empty())
        return std::fprintf(stderr, "skipped: %s\n", backend::unavailable_reason().c_str()), 77;
    set_threads(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u)));
    std::printf(R"({"device": "%s", "rounds": %d})"
                "\n",
                settings.device == Device::cpu ? "cpu" : bench::device_name().c_str(), settings.rounds);
    const bool right_updates = updates(settings);
    return bandwidth(settings) && right_updates ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu_steps: %s\n", error.what());
    return 1;
}
