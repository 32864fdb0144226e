// WorkList: the micro-batches of a window are handed out one by one, to whoever is free.
//
//     WorkList work(processes);
//     Window<float> window(optimizer, {.sum = Sum::exact}, &ranks);
//     work.open(micro_batches.size());
//     while (const auto k = work.next()) window.add(loss(micro_batches[*k]));
//     window.finish();
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tally/processes/processes.hpp"

namespace tally {

// Options of WorkList.
struct WorkListOptions {
    double patience =
        0;  // seconds in which each comes back for more; longer than a micro-batch. 0: Processes'
    std::int64_t round = 0;  // after so many all come together, and can save; 0: after all
};

// Rank 0 keeps the list, and hands out between its own micro-batches. Whoever does not come back in time is left
// out: the others do all that it had of this window again, and go on without it, with ranks from 0 to one fewer.
// It finds that out by an Error at its next call, and what it has added counts nowhere. Without rank 0 nobody
// goes on: all others end in an Error. Each micro-batch is in the window once, whoever has added it.
class WorkList {
public:
    explicit WorkList(Processes& processes, WorkListOptions options = {});

    // Those from 0 to count - 1 but for the ones that a file has already, which rank 0's window holds. All call
    // it, for each window.
    void open(std::int64_t count, const std::vector<std::int64_t>& done = {});
    // The next one to add; none when a round is over for all. The call after that begins another round.
    std::optional<std::int64_t> next();
    bool over() const { return over_; }  // each has been added
    // Those that were handed to this process, and in rank 0's list those that were done before; for Ranks::save().
    const std::vector<std::int64_t>& mine() const { return mine_; }
    // Known to rank 0: who is not among the processes any more, by the rank that it began with.
    const std::vector<int>& left_out() const { return left_out_; }

private:
    struct Worker {
        enum { works, asks, sounded, here } is = works;
        double since = 0;
    };
    std::optional<std::int64_t> ask();
    std::optional<std::int64_t> keep();
    void hear(const detail::Wire::Note& note);
    void expect_alike(int from, const std::string& said);
    bool some_left() const;
    std::int64_t take(int rank);
    void hand_out();
    bool all_here();
    void leave_out_late(double idle_since);
    void reassure();
    void come_together();
    void go_on(bool over, const std::vector<int>& ranks);
    void note(int to, const std::string& what, std::int64_t number = 0, const std::string& more = "");
    std::string state() const;  // what all must have alike
    std::string name() const;
    std::string place() const;

    Processes& processes_;
    WorkListOptions options_;
    std::int64_t list_ = 0, count_ = 0;  // list: its number among all that were opened
    bool over_ = true;
    std::vector<std::int64_t> mine_;
    std::string done_;  // a checksum

    // Rank 0's. Ranks are those that the processes began with.
    std::set<std::int64_t> left_;        // not handed out
    std::int64_t until_ = 0;             // so many are handed out in this round
    std::map<std::int64_t, int> holds_;  // who was handed which
    std::map<int, Worker> workers_;
    std::int64_t soundings_ = 0;
    double reassured_ = 0;
    std::vector<int> left_out_;
};

}  // namespace tally
