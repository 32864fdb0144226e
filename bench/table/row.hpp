// A row of the table: one piece of work, done by tally, by floors (programs without autograd that do the same
// arithmetic) and by peers; what came out of it, and what was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tally::bench {

using Numbers = std::vector<std::vector<double>>;  // one vector for each gradient, or whatever is compared

enum class Role { tally, floor, peer };

struct Side {
    std::string name;
    Role role;
    std::function<void()> run;             // one unit of work
    std::function<Numbers()> numbers;      // gradients of the same work; must agree with the first side's
    std::optional<double> mebibytes = {};  // at most in use beyond parameters, gradients and data
    std::function<void(std::size_t)> many =
        {};  // so many units at once, where a single one has to be asked for
    clockid_t processor_time = CLOCK_PROCESS_CPUTIME_ID;  // of the process that does the work
};

// What tally is held to: so many times faster than a side, or at most so many times what the side takes.
struct Goal {
    enum Kind { faster, at_most, at_most_mebibytes } kind;
    double number;
    std::string beside;  // the name of a side; of memory, the name of tally's side that is meant
};

struct Row {
    std::string name, title;
    std::vector<Side> sides;  // tally is the first
    std::vector<Goal> must = {}, aims = {};
    double units = 1;         // operations in one unit of work: times are given for one
    double tolerance = 1e-5;  // of the largest number in a vector
    int threads = 1;
    std::string note = {};
    int rounds = 1000;  // at most
};

// A row that is made when its turn comes, so that its arrays live no longer than it does.
struct Planned {
    std::string name;
    std::function<Row()> make;
    bool slow = false;  // left out of a quick run
};

struct Timed {
    std::string name;
    Role role;
    double median, minimum;  // ns for one unit
    double ratio;            // how many times longer tally takes, the median of the ratios round by round
    std::optional<double> mebibytes;
};

struct Verdict {
    std::string asked;               // ">= 100 x LibTorch"
    std::optional<double> measured;  // empty where that side is absent
    bool holds = false;
};

struct Result {
    std::string name, title, note;
    int threads, rounds;
    std::vector<Timed> sides;
    std::vector<Verdict> must, aims;
};

struct Effort {
    int rounds = 21;           // interleaved, after one that does not count
    double milliseconds = 10;  // a side's turn lasts at least so long
    bool quick = false;        // sweeps stop at smaller sizes
    bool processor = false;    // time of the processor where a row has one thread: neighbours disturb it less
};

// Compares the gradients of all sides (an Error when they differ), then times them in turn.
Result race(const Row& row, const Effort& effort);

// Every number of `got` must be as near to that of `expected` as the tolerance says.
void must_agree(const std::string& what, const Numbers& expected, const Numbers& got, double tolerance);

// Units of work that fill a turn.
std::size_t units_a_turn(const std::function<void()>& run, double milliseconds);

}  // namespace tally::bench
