// Compares the simulator of many devices with closed forms, published numbers and lower bounds.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "bench/scaling/update.hpp"
#include "catch.hpp"
#include "tally/distributed/timetable.hpp"

using namespace tally::scaling;
using tally::Timetable;

namespace {

constexpr AllReduce algorithms[] = {AllReduce::ring, AllReduce::tree, AllReduce::halving,
                                    AllReduce::rank_order};

double last(const Reduced& reduced) { return *std::max_element(reduced.done.begin(), reduced.done.end()); }

bool near(double x, double y, double bound = 1e-12) {
    return std::abs(x - y) <= bound * std::max(std::abs(x), std::abs(y));
}

}  // namespace

TEST_CASE("all_reduce: the duration follows the closed form when all devices begin together") {
    const Network network{5e-6, 1 / 25e9};
    for (const AllReduce how : algorithms)
        for (int devices = 1; devices <= 70; ++devices) {
            INFO("algorithm " << int(how) << ", " << devices << " devices");
            const Reduced reduced =
                all_reduce(how, std::vector<double>(std::size_t(devices), 0.0), 1e6, network);
            CHECK(near(last(reduced), all_reduce_seconds(how, devices, 1e6, network)));
        }
}

TEST_CASE("all_reduce: messages and bytes are those of the algorithm") {
    for (std::int64_t p = 1; p <= 40; ++p) {
        const std::vector<double> begin(std::size_t(p), 0.0);
        const auto sent = [&](AllReduce how) { return all_reduce(how, begin, 960, {1, 1}); };
        INFO(p << " devices");
        for (const AllReduce how : {AllReduce::ring, AllReduce::rank_order}) {
            CHECK(sent(how).messages == 2 * p * (p - 1));
            CHECK(near(sent(how).bytes, 2.0 * double(p - 1) * 960));
        }
        CHECK(sent(AllReduce::tree).messages == 2 * (p - 1));
        CHECK(near(sent(AllReduce::tree).bytes, 2.0 * double(p - 1) * 960));
        CHECK(near(sent(AllReduce::halving).bytes, 2.0 * double(p - 1) * 960));
    }
}

TEST_CASE("all_reduce: no device ends before the last one begins, and a later begin does not end earlier") {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> time(0, 3);
    for (const AllReduce how : algorithms)
        for (int round = 0; round < 50; ++round) {
            std::vector<double> begin(2 + random() % 30);
            for (double& one : begin) one = time(random);
            const Network network{0.01, 0.001};
            const Reduced reduced = all_reduce(how, begin, 100, network);
            const double latest = *std::max_element(begin.begin(), begin.end());
            INFO("algorithm " << int(how) << ", " << begin.size() << " devices, round " << round
                              << ", seed 7");
            CHECK(*std::min_element(reduced.done.begin(), reduced.done.end()) >= latest);
            CHECK(last(reduced) <= latest + all_reduce_seconds(how, int(begin.size()), 100, network) + 1e-9);
            begin[random() % begin.size()] += 1;
            CHECK(last(all_reduce(how, begin, 100, network)) >= last(reduced));
        }
}

TEST_CASE("update: the duration is that of the slower of backward pass and network, for all buckets") {
    for (const int buckets : {1, 2, 5, 20})
        for (const double bytes : {1e6, 1e9, 4e9, 4e10}) {
            const Training training{.devices = 16,
                                    .micro_batches = 3,
                                    .micro_seconds = 0.2,
                                    .gradient_bytes = bytes,
                                    .buckets = buckets,
                                    .network = {5e-6, 1 / 25e9}};
            const double backward = 0.2 * training.backward_share, spacing = backward / buckets;
            const double one = all_reduce_seconds(training.how, 16, bytes / buckets, training.network);
            const double expected =
                0.6 - backward + std::max(buckets * spacing + one, spacing + buckets * one);
            INFO(buckets << " buckets of " << bytes << " bytes");
            CHECK(near(update(training).seconds, expected));
            CHECK(near(update(training).waiting, expected - 0.6, 1e-9));
        }
}

TEST_CASE("update: the slowest of P exponential delays takes the harmonic number on average") {
    Training training{.devices = 32, .straggling = 0.1};
    double sum = 0, harmonic = 0;
    constexpr int draws = 4000;
    for (training.seed = 1; training.seed <= draws; ++training.seed) sum += update(training).seconds - 1;
    for (int k = 1; k <= 32; ++k) harmonic += 1.0 / k;
    // The standard deviation of the longest delay is less than pi / sqrt(6) times the mean of one delay.
    CHECK(std::abs(sum / draws - 0.1 * harmonic) < 5 * 0.1 * 1.2826 / std::sqrt(draws));
}

// ---- published numbers; the page names the sources ----

TEST_CASE("published: tokens per chip from which an all-reduce is hidden") {
    const double flops = 4.59e14, axis = 1.8e11;
    CHECK(std::abs(tokens_to_hide_reduction({flops, axis}, 256) - 2550) < 0.005 * 2550);
    CHECK(std::abs(tokens_to_hide_reduction({flops, 3 * axis}, 256) - 850) < 0.005 * 850);
    // For 8192 chips with 6.25e9 bytes/s each, the book computes 76 000 tokens, or "roughly 75 000".
    CHECK(std::abs(tokens_to_hide_reduction({8192 * flops, 8192 * 6.25e9}, 256) - 75000) < 0.03 * 75000);
}

TEST_CASE("published: a pod's batch, the chips for 16 million tokens, and the days of training") {
    const double tokens = tokens_to_hide_reduction({4.59e14, 3 * 1.8e11}, 256);
    CHECK(std::abs(tokens * 8960 - 7.6e6) < 0.01 * 7.6e6);
    const double chips = 16e6 / tokens;
    CHECK(std::abs(chips - 18823) < 0.005 * 18823);
    CHECK(std::abs(6.3e24 / (chips * 4.59e14 * 0.5) / 86400 - 17) < 0.5);  // days
    CHECK(std::abs(tokens * 4096 - 3.48e6) < 0.01 * 3.48e6);
}

TEST_CASE("published: the bubble is (p - 1)/m of the work, and a third of that for ZB-H1") {
    for (int p = 2; p <= 8; ++p)
        for (int m = p; m <= 4 * p; m += p) {
            const double work = 3 * m;
            const double one =
                tally::Timetable::of(Timetable::Schedule::one_forward_one_backward, p, m).seconds - work;
            CHECK(near(one / work, double(p - 1) / m));
            CHECK(near(tally::detail::zero_bubble(p, m).seconds - work, one / 3));
        }
    CHECK(near(tally::Timetable::of(Timetable::Schedule::one_forward_one_backward, 4, 8).bubble(), 3.0 / 11));
}

TEST_CASE("published: at the critical batch, steps and samples are twice the minimum") {
    const double critical = 1000;
    CHECK(updates_to_target(critical, critical) == 2);
    for (const double batch : {1.0, 30.0, 1000.0, 77777.0}) {
        const double updates = updates_to_target(batch, critical), samples = batch * updates / critical;
        CHECK(near((updates - 1) * (samples - 1), 1, 1e-9));
    }
}

TEST_CASE("update: a billion parameters on 1024 devices have the efficiencies of the closed form") {
    Training training{
        .devices = 1024, .micro_seconds = 0.2, .gradient_bytes = 4e9, .network = {5e-6, 1 / 25e9}};
    for (const auto& [micro_batches, share, digits] :
         {std::tuple{1, 0.38, 0.005}, {8, 0.83, 0.005}, {64, 0.975, 0.0005}}) {
        training.micro_batches = micro_batches;
        CHECK(std::abs(update(training).efficiency - share) < digits);
    }
}

TEST_CASE("fastest: the best number of devices is finite, and decreases with more micro-batches") {
    Training training{.devices = 1, .micro_seconds = 0.2, .gradient_bytes = 4e9, .network = {5e-6, 1 / 25e9}};
    const double items = 4, critical = 4000;
    int before = 10001;
    for (const int micro_batches : {1, 8, 64}) {
        training.micro_batches = micro_batches;
        const int best = fastest(training, items, critical, 10000);
        // With P devices, the duration is (1 + c/(N b P)) (t + 2 P latency), where t does not depend on P.
        // The duration is shortest for P = sqrt(c t / (2 N b latency)).
        const double t = micro_batches * 0.2 + 2 * 4e9 / 25e9 - 2 * 5e-6;
        const double expected = std::sqrt(critical * t / (2 * micro_batches * items * 5e-6));
        INFO("N = " << micro_batches << ": " << best << ", expected about " << expected);
        CHECK(std::abs(best - expected) < 0.02 * expected + 1);
        CHECK(best < before);
        before = best;
    }
}
