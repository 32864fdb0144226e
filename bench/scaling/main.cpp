// Prints the tables of docs/scaling.md, and draws curves.   usage: bench_scaling [FOLDER for the pictures]
#include <cstdio>
#include <fstream>
#include <iostream>

#include "bench/scaling/update.hpp"
#include "bench/table/sweeps.hpp"
#include "tally/distributed/timetable.hpp"

namespace {

using namespace tally::scaling;
using tally::Timetable;

// Describes a model of a billion parameters in float32. A micro-batch takes 0.2 s. The network has a latency
// of 5 microseconds and a bandwidth of 25 GB/s.
const Training billion{.micro_seconds = 0.2, .gradient_bytes = 4e9, .network = {5e-6, 1 / 25e9}};
constexpr double items = 4, critical_batch = 4000;

Training with(int devices, int micro_batches, AllReduce how = AllReduce::ring, int buckets = 1) {
    Training training = billion;
    training.devices = devices, training.micro_batches = micro_batches, training.how = how,
    training.buckets = buckets;
    return training;
}

void efficiencies() {
    std::puts(
        "| devices | N = 1 | N = 8 | N = 64 | N = 1, in 20 buckets | N = 1, halving "
        "|\n|---|---|---|---|---|---|");
    for (const int devices : {1, 2, 8, 64, 256, 1024, 4096, 10000})
        std::printf("| %d | %.3f | %.3f | %.3f | %.3f | %.3f |\n", devices,
                    update(with(devices, 1)).efficiency, update(with(devices, 8)).efficiency,
                    update(with(devices, 64)).efficiency,
                    update(with(devices, 1, AllReduce::ring, 20)).efficiency,
                    update(with(devices, 1, AllReduce::halving)).efficiency);
}

void stragglers() {
    std::puts("| devices | N = 1 | N = 8 | N = 64 |\n|---|---|---|---|");
    for (const int devices : {1, 8, 64, 512}) {
        std::printf("| %d |", devices);
        for (const int micro_batches : {1, 8, 64}) {
            Training training = with(devices, micro_batches);
            training.gradient_bytes = 0, training.network.latency = 0, training.straggling = 0.1;
            double sum = 0;
            constexpr int draws = 200;
            for (training.seed = 0; training.seed < draws; ++training.seed)
                sum += update(training).efficiency;
            std::printf(" %.3f |", sum / draws);
        }
        std::puts("");
    }
}

void bubbles() {
    std::puts(
        "| stages, micro-batches | GPipe | 1F1B | ZB-H1 | kept by GPipe | by 1F1B | by ZB-H1 "
        "|\n|---|---|---|---|---|---|---|");
    for (const auto& [stages, micros] : {std::pair{2, 4}, {4, 4}, {4, 8}, {4, 32}, {8, 32}}) {
        const Timetable all[] = {Timetable::of(Timetable::Schedule::gpipe, stages, micros),
                                 Timetable::of(Timetable::Schedule::one_forward_one_backward, stages, micros),
                                 tally::detail::zero_bubble(stages, micros)};
        std::printf("| %d, %d |", stages, micros);
        for (const Timetable& one : all) std::printf(" %.3f |", one.bubble());
        for (const Timetable& one : all) std::printf(" %d |", one.max_live.front());
        std::puts("");
    }
}

void drawings() {
    std::printf("```text\n%s\n%s```\n",
                Timetable::of(Timetable::Schedule::one_forward_one_backward, 4, 8).drawing(1).c_str(),
                tally::detail::zero_bubble(4, 8).drawing(1).c_str());
}

void targets() {
    constexpr double hours = 20000 / 3600.0;  // with unlimited batches, training takes 20 000 updates
    constexpr int all[] = {1, 8, 64};
    const auto takes = [&](int devices, int micro_batches) {
        std::printf(" %.4g |",
                    hours * seconds_to_target(with(devices, micro_batches), items, critical_batch));
    };
    std::puts("| devices | hours with N = 1 | N = 8 | N = 64 |\n|---|---|---|---|");
    for (const int devices : {1, 4, 16, 64, 256, 1024, 4096, 10000}) {
        std::printf("| %d |", devices);
        for (const int micro_batches : all) takes(devices, micro_batches);
        std::puts("");
    }
    std::printf("| the fastest number |");
    for (const int micro_batches : all) {
        const int best = fastest(with(1, micro_batches), items, critical_batch, 10000);
        std::printf(" %d:", best);
        takes(best, micro_batches);
    }
    std::puts("");
}

void curves(const std::string& folder) {
    tally::bench::Sweep sweep{.name = "scaling",
                              .title = "A billion parameters over many devices",
                              .x = "devices",
                              .y = "efficiency",
                              .lines = {}};
    for (const int micro_batches : {64, 8, 1}) {
        tally::bench::Line line{"N = " + std::to_string(micro_batches), {}};
        for (int devices = 1; devices <= 8192; devices *= 2)
            line.points.emplace_back(devices, update(with(devices, micro_batches)).efficiency);
        sweep.lines.push_back(std::move(line));
    }
    std::ofstream(folder + "/scaling.svg") << tally::bench::to_svg(sweep);
}

}  // namespace

int main(int count, char** words) {
    if (count > 2) return std::fputs("usage: bench_scaling [FOLDER]\n", stderr), 2;
    const std::pair<const char*, void (*)()> parts[] = {{"Table: Efficiency", efficiencies},
                                                        {"Table: Stragglers", stragglers},
                                                        {"Table: The pipe", bubbles},
                                                        {"Drawing: The pipe", drawings},
                                                        {"Table: Time to target", targets}};
    for (const auto& [name, print] : parts) {
        std::printf("%s\n\n", name);
        print();
        std::puts("");
    }
    if (count == 2) curves(words[1]);
}
