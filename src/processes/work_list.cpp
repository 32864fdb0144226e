// Handing out work by notes: a worker asks and waits; rank 0 answers, and judges who is late when nothing is left to do.
#include "tally/processes/work_list.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <sstream>

#include "tally/base/checksum.hpp"
#include "tally/base/error.hpp"
#include "tally/train/require.hpp"

namespace tally {

namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

WorkList::WorkList(Processes& processes, WorkListOptions options) : processes_(processes), options_(options) {
    if (options_.patience == 0) options_.patience = processes.patience();
    if (!(options_.patience > 0))
        throw Error("[work] a patience of " + in_words(options_.patience) +
                    " s is none; give it some seconds");
    if (options_.round < 0)
        throw Error("[work] a round cannot have " + std::to_string(options_.round) + " micro-batches");
}

void WorkList::open(std::int64_t count, const std::vector<std::int64_t>& done) {
    if (count < 0) throw Error("[work] there are no " + std::to_string(count) + " micro-batches");
    std::map<std::int64_t, int> held;
    for (const std::int64_t number : done) {
        if (number < 0 || number >= count)
            throw Error("[work] micro-batch " + std::to_string(number) + " was done, but the window has " +
                        std::to_string(count));
        if (!held.emplace(number, 0).second)
            throw Error("[work] micro-batch " + std::to_string(number) + " was done twice");
    }
    list_ = processes_.new_work_list();
    count_ = count;
    over_ = std::ssize(done) == count;
    done_ = std::to_string(detail::checksum_of(done.data(), done.size() * sizeof(std::int64_t)));
    mine_.clear();
    if (processes_.rank() != 0) return;
    mine_ = done;
    holds_ = std::move(held);
    left_.clear();
    for (std::int64_t number = 0; number < count; ++number)
        if (!holds_.contains(number)) left_.insert(number);
    workers_.clear();
    for (int rank = 1; rank < processes_.size(); ++rank)
        workers_[processes_.wire().first_rank(rank)].since = now();
    until_ = std::ssize(holds_) + (options_.round ? options_.round : count);
}

std::string WorkList::state() const {
    return std::to_string(list_) + " " + std::to_string(count_) + " " + done_;
}

std::string WorkList::name() const { return "work list " + std::to_string(list_); }

std::string WorkList::place() const { return "after " + std::to_string(mine_.size()) + " micro-batches"; }

std::optional<std::int64_t> WorkList::next() {
    if (over_) return {};
    return processes_.rank() == 0 ? keep() : ask();
}

// ---- a worker ----

std::optional<std::int64_t> WorkList::ask() {
    processes_.note(0, "ask " + state());
    for (;;) {
        std::optional<detail::Wire::Note> said;
        processes_.await(name(), place(), "rank 0 has handed out nothing", [&] {
            said = processes_.wire().next_note();
            return said.has_value();
        });
        std::istringstream words(said->words);
        std::string what;
        std::int64_t list = 0, number = 0;
        words >> what >> list >> number;
        if (what == "out")
            processes_.leave_out("this process was left out of work list " + std::to_string(list) +
                                 ": it had not come back in " + in_words(options_.patience) +
                                 " s, and the others go on without it");
        if (list != list_) continue;  // of one that has failed
        if (what == "sound") note(0, "here", number);
        if (what == "take") {
            mine_.push_back(number);
            return number;
        }
        if (what == "together") {
            std::vector<int> ranks;
            for (int rank; words >> rank;) ranks.push_back(rank);
            go_on(number == 1, ranks);
            return {};
        }
    }
}

// ---- rank 0 ----

std::optional<std::int64_t> WorkList::keep() {
    std::optional<std::int64_t> mine;
    const double idle_since = now();
    processes_.watch(name(), place(), std::numeric_limits<double>::infinity(), [&] {
        while (const auto note = processes_.wire().next_note()) hear(*note);
        hand_out();
        if (some_left()) {
            mine = take(0);
            return true;
        }
        if (all_here()) return true;
        leave_out_late(idle_since);
        reassure();
        return false;
    });
    if (mine)
        mine_.push_back(*mine);
    else
        come_together();
    return mine;
}

void WorkList::hear(const detail::Wire::Note& note) {
    const auto worker = workers_.find(note.from);
    std::istringstream words(note.words);
    std::string what;
    std::int64_t list = 0, number = 0;
    words >> what >> list >> number;
    // Of a list that has failed; or of one that was left out, and has been told.
    if (list < list_ || worker == workers_.end()) return;
    if (what == "ask") {
        expect_alike(note.from, note.words.substr(what.size() + 1));
        worker->second.is = Worker::asks;
    } else if (worker->second.is == Worker::sounded && number == soundings_) {
        worker->second.is = Worker::here;
    }
}

void WorkList::note(int to, const std::string& what, std::int64_t number, const std::string& more) {
    processes_.note(to, what + " " + std::to_string(list_) + " " + std::to_string(number) + more);
}

void WorkList::expect_alike(int from, const std::string& said) {
    if (said == state()) return;
    const std::string why = "rank " + std::to_string(from) +
                            " has list, micro-batches and a checksum of those done " + said +
                            ", rank 0 has " + state();
    processes_.fail(name(), why);
    throw detail::Heard("[processes] " + name() + ": " + why);
}

bool WorkList::some_left() const { return !left_.empty() && std::ssize(holds_) < until_; }

std::int64_t WorkList::take(int rank) {
    const std::int64_t number = left_.extract(left_.begin()).value();
    holds_[number] = rank;
    return number;
}

void WorkList::hand_out() {
    for (auto& [rank, worker] : workers_) {
        if (worker.is == Worker::works || !some_left()) continue;
        worker = {Worker::works, now()};
        note(rank, "take", take(rank));
    }
}

// Whether all have brought what they had, and answer: who was stopped while it waited does not.
bool WorkList::all_here() {
    const auto all = [&](auto what) {
        return std::ranges::all_of(workers_, [&](const auto& each) { return what(each.second); });
    };
    if (all([](const Worker& worker) { return worker.is == Worker::asks; })) {
        ++soundings_;
        for (auto& [rank, worker] : workers_) {
            worker = {Worker::sounded, now()};
            note(rank, "sound", soundings_);
        }
    }
    return all([](const Worker& worker) { return worker.is == Worker::here; });
}

// What it had is to be done again, all of it, since its sums are with it.
void WorkList::leave_out_late(double idle_since) {
    const double time = now();
    if (time - idle_since < options_.patience / 4) return;  // MPI may not have looked yet
    const auto late = std::ranges::find_if(workers_, [&](const auto& each) {
        return (each.second.is == Worker::works || each.second.is == Worker::sounded) &&
               time - each.second.since > options_.patience;
    });
    if (late == workers_.end()) return;
    const int rank = late->first;
    workers_.erase(late);
    left_out_.push_back(rank);
    note(rank, "out");
    for (auto held = holds_.begin(); held != holds_.end();)
        if (held->second == rank) {
            left_.insert(held->first);
            held = holds_.erase(held);
        } else {
            ++held;
        }
    for (auto& [other, worker] : workers_)
        if (worker.is != Worker::works) worker.is = Worker::asks;
}

// Those who wait must not take rank 0 for lost.
void WorkList::reassure() {
    if (now() - reassured_ < processes_.patience() / 4) return;
    reassured_ = now();
    for (const auto& [rank, worker] : workers_)
        if (worker.is != Worker::works) note(rank, "wait");
}

void WorkList::come_together() {
    std::vector<int> ranks{processes_.wire().first_rank(0)};
    std::string words;
    for (const auto& [rank, worker] : workers_) ranks.push_back(rank);
    for (const int rank : ranks) words += ' ' + std::to_string(rank);
    for (auto& [rank, worker] : workers_) {
        worker = {Worker::works, now()};
        note(rank, "together", left_.empty(), words);
    }
    until_ = std::ssize(holds_) + (options_.round ? options_.round : count_);
    go_on(left_.empty(), ranks);
}

// ---- both ----

void WorkList::go_on(bool over, const std::vector<int>& first) {
    over_ = over;
    std::vector<int> ranks;
    for (int rank = 0; rank < processes_.size(); ++rank)
        if (std::ranges::count(first, processes_.wire().first_rank(rank))) ranks.push_back(rank);
    if (std::ssize(ranks) < processes_.size()) processes_.go_on_with(ranks);
}

}  // namespace tally
