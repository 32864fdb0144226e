// A `Row` of the table measures one computation by several programs. The sides of a row are tally, programs
// without autograd ("floors") and other frameworks ("peers").
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tally::bench {

using Numbers = std::vector<std::vector<double>>;  // one vector per gradient or other compared result

enum class Role { tally, floor, peer };

struct Side {
    std::string name;
    Role role;
    std::function<void()> run;                            // one unit of work
    std::function<Numbers()> numbers;                     // gradients of the work; must agree with tally's
    std::optional<double> mebibytes = {};                 // peak beyond parameters, gradients and data
    std::function<void(std::size_t)> many = {};           // runs several units by one request
    clockid_t processor_time = CLOCK_PROCESS_CPUTIME_ID;  // clock of the process that does the work
};

// A `Goal` limits tally's memory, or tally's time relative to the time of another program.
struct Goal {
    enum Kind { faster, at_most, at_most_mebibytes } kind;
    double number;
    std::string compared_with;  // the name of a side; for memory, the name of tally's side
};

struct Row {
    std::string name, title;
    std::vector<Side> sides;  // tally is the first
    std::vector<Goal> must = {}, aims = {};
    double units = 1;         // operations in one unit of work; times are per operation
    double tolerance = 1e-5;  // relative to the largest number in a vector
    int threads = 1;
    std::string note = {};
    int rounds = 1000;  // the largest number of rounds
};

// A `Planned` creates a row just before the row runs, so that the arrays of only one row exist at a time.
struct Planned {
    std::string name;
    std::function<Row()> make;
    bool slow = false;  // left out of a quick run
};

struct Timed {
    std::string name;
    Role role;
    double median, minimum;  // ns for one unit of work
    double ratio;            // tally's time / this side's time, median over the rounds
    std::optional<double> mebibytes;
};

struct Verdict {
    std::string asked;               // ">= 100 x LibTorch"
    std::optional<double> measured;  // empty if the side is absent
    bool holds = false;
};

struct Result {
    std::string name, title, note;
    int threads, rounds;
    std::vector<Timed> sides;
    std::vector<Verdict> must, aims;
};

struct Effort {
    int rounds = 21;           // number of rounds after an untimed round
    double milliseconds = 10;  // least time of a side in a round
    bool quick = false;        // sweeps stop at smaller sizes
    bool processor =
        false;  // for rows of one thread, measure processor time, which other programs disturb less
};

// Throws if a program's gradients differ from tally's. Otherwise measures the programs alternately.
Result race(const Row& row, const Effort& effort);

// Throws Error if a number in `got` differs from its counterpart in `expected` by more than the tolerance.
void must_agree(const std::string& what, const Numbers& expected, const Numbers& got, double tolerance);

// Returns how often `run` can run in the given number of milliseconds.
std::size_t units_a_turn(const std::function<void()>& run, double milliseconds);

}  // namespace tally::bench
