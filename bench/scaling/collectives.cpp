// Simulates each algorithm as a series of rounds, in which pairs of devices exchange messages.
#include "bench/scaling/collectives.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace tally::scaling {

namespace {

struct Run {
    Reduced so_far;
    const Network& network;

    void count(double bytes) {
        ++so_far.messages;
        so_far.bytes += bytes;
    }

    // Device i sends to device i + `ahead`. A device continues after it has sent and received its messages.
    void shift(std::size_t ahead, double bytes) {
        auto& done = so_far.done;
        std::vector<double> sender(done.size());
        std::rotate_copy(done.begin(), done.end() - static_cast<std::ptrdiff_t>(ahead), done.end(),
                         sender.begin());
        const double seconds = network.seconds(bytes);
        for (std::size_t i = 0; i < done.size(); ++i)
            done[i] = (done[i] < sender[i] ? sender[i] : done[i]) + seconds;
        so_far.messages += static_cast<std::int64_t>(done.size());
        so_far.bytes += static_cast<double>(done.size()) * bytes;
    }

    void send(std::size_t from, std::size_t to, double bytes) {
        auto& done = so_far.done;
        done[from] = done[to] = std::max(done[from], done[to]) + network.seconds(bytes);
        count(bytes);
    }

    void exchange(std::size_t one, std::size_t other, double bytes) {
        send(one, other, bytes);
        count(bytes);  // the message in the other direction takes no additional time
    }
};

void around(Run& run, double bytes, bool direct) {
    const std::size_t devices = run.so_far.done.size();
    for (int half = 0; half < 2; ++half)
        for (std::size_t round = 1; round < devices; ++round)
            run.shift(direct ? round : 1, bytes / static_cast<double>(devices));
}

void up_and_down(Run& run, double bytes) {
    const std::size_t devices = run.so_far.done.size(), top = std::bit_ceil(devices);
    for (std::size_t apart = 1; apart < top; apart *= 2)
        for (std::size_t i = 0; i + apart < devices; i += 2 * apart) run.send(i + apart, i, bytes);
    for (std::size_t apart = top / 2; apart > 0; apart /= 2)
        for (std::size_t i = 0; i + apart < devices; i += 2 * apart) run.send(i, i + apart, bytes);
}

void halves(Run& run, double bytes) {
    const std::size_t devices = run.so_far.done.size(), active = std::bit_floor(devices),
                      more = devices - active;
    for (std::size_t i = 0; i < more; ++i) run.send(active + i, i, bytes);  // devices beyond a power of two
    const auto round = [&](std::size_t apart, double part) {
        for (std::size_t i = 0; i < active; ++i)
            if ((i & apart) == 0) run.exchange(i, i + apart, part);
    };
    double part = bytes;
    for (std::size_t apart = 1; apart < active; apart *= 2) round(apart, part /= 2);
    for (std::size_t apart = active / 2; apart > 0; apart /= 2, part *= 2) round(apart, part);
    for (std::size_t i = 0; i < more; ++i) run.send(i, active + i, bytes);
}

}  // namespace

Reduced all_reduce(AllReduce how, const std::vector<double>& begin, double bytes, const Network& network) {
    if (begin.empty()) throw std::invalid_argument("all_reduce: no devices");
    Run run{{begin}, network};
    switch (how) {
        case AllReduce::ring:
            around(run, bytes, false);
            break;
        case AllReduce::rank_order:
            around(run, bytes, true);
            break;
        case AllReduce::tree:
            up_and_down(run, bytes);
            break;
        case AllReduce::halving:
            halves(run, bytes);
            break;
    }
    return std::move(run.so_far);
}

double all_reduce_seconds(AllReduce how, int devices, double bytes, const Network& network) {
    const double p = devices;
    const auto bits = [](int n) { return static_cast<double>(std::bit_width(static_cast<unsigned>(n)) - 1); };
    const double active = std::bit_floor(static_cast<unsigned>(devices));
    switch (how) {
        case AllReduce::ring:
        case AllReduce::rank_order:
            return 2 * (p - 1) * network.latency + 2 * (p - 1) / p * bytes * network.seconds_per_byte;
        case AllReduce::tree:
            return 2 * (bits(devices) + (p > active ? 1 : 0)) * network.seconds(bytes);
        case AllReduce::halving:
            return 2 * bits(devices) * network.latency +
                   2 * (active - 1) / active * bytes * network.seconds_per_byte +
                   (p > active ? 2 * network.seconds(bytes) : 0);
    }
    throw std::invalid_argument("all_reduce_seconds: no such algorithm");
}

}  // namespace tally::scaling
