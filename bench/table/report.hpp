// Reports the measurements as a table at the terminal, as Markdown and as JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/table/row.hpp"
#include "bench/table/sweeps.hpp"

namespace tally::bench {

struct Machine {
    std::string date, processor, vectors, compiler, flags, commit, openblas;
    unsigned cores;
    double load;                                      // load average of the minute before the start
    std::vector<std::pair<std::string, bool>> peers;  // names, and whether they are installed
    bool processor_time;                              // Effort::processor
};
Machine this_machine(const Effort& effort);
std::string in_words(const Machine& machine);  // the processor and its vector instructions

struct Report {
    Machine machine;
    std::vector<Result> rows;
    std::vector<Sweep> sweeps;
};

std::string text(const Result& row);  // a few lines
std::string won_and_lost(
    const std::vector<Result>& rows);  // one line for each peer: rows in which tally is faster or slower
std::string markdown(const Report& report);
// {"v": 1, "machine": {date, processor, vectors, cores, load, compiler, flags, commit, openblas, processor_time,
//  peers: {name: here}},
//  "rows": [{name, title, note, threads, rounds,
//            sides: [{name, role: tally | floor | peer, median_ns, minimum_ns, tally_over_it, mebibytes |
//            null}], must, aims: [{asked, measured | null, holds}]}],
//  "sweeps": [{name, title, x, y, lines: [{name, points: [[x, y], ...]}], catches_up | null}]}
std::string json(const Report& report);

}  // namespace tally::bench
