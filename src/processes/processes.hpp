// Processes: who takes part, and how they meet. They come to the same calls in the same order, or say in
// words who did not.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tally/processes/wire.hpp"
#include "tally/values/array.hpp"

namespace tally {

namespace detail {
// An Error that all others hear of, too, or that none can be told of.
struct Heard : Error {
    using Error::Error;
};
// What is summed early, as processes tell each other: all numbers of a window, cut into buckets.
struct EarlyRound {
    std::int64_t window = 0, number = 0;  // which of those that were opened, and which of its updates
    std::int64_t numbers = 0, bucket = 0, bytes_each = 0;
    std::int64_t begun = 0;  // buckets, by the process that tells

    bool operator==(const EarlyRound& other) const {
        return window == other.window && number == other.number;
    }
    std::int64_t buckets() const { return (numbers + bucket - 1) / bucket; }
};
class EarlySums;
template <class S> struct EarlyMemory;
}  // namespace detail

// How numbers of several processes are added, named by what it promises.
enum class AllReduce {
    fast,        // MPI_Iallreduce: the same bits on each, and again with as many processes and the same MPI
    rank_order,  // rank 0's plus rank 1's, then rank 2's, ...: the same bits for as many, with any MPI
};

// What one process has sent.
struct Sent {
    std::uint64_t numbers = 0;   // bytes of what is summed; with AllReduce::fast what MPI was handed to sum
    std::uint64_t messages = 0;  // in which they went; with AllReduce::fast MPI's own, which are not known
    std::uint64_t words = 0;     // bytes of what they agree about
    std::uint64_t sums = 0;      // how often something was summed
    std::uint64_t early = 0;     // of `numbers` those that went while backward still ran
    std::uint64_t passed = 0;    // bytes of what a pipe has passed on
};

// Options of Processes.
struct ProcessesOptions {
    double patience = 8;                 // seconds that a call waits for the others before it is an Error;
                                         // the destructor, if nothing has failed, waits as long as it takes
    const void* communicator = nullptr;  // of a program that uses MPI itself: points at its MPI_Comm
};

// The processes that mpirun, srun or another launcher has started together; a single one without a launcher.
// Starts MPI unless the program has, and then ends it, too. All calls come from one thread.
class Processes {
public:
    explicit Processes(ProcessesOptions options = {});
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;
    ~Processes();

    int rank() const { return wire_.rank(); }
    int size() const { return wire_.size(); }
    const Sent& sent() const { return sent_; }

    // Waits until all others have come to `call`, and returns what each has said, by rank. An Error on all of
    // them if one makes another call, has failed or has left; if one is too late, on those that wait.
    std::vector<std::string> meet(const std::string& call, const std::string& mine = "");

    // ---- for the engine ----

    std::int64_t new_pipe() { return pipes_++; }  // its number among all that were made here
    std::int64_t new_work_list() { return work_lists_++; }

    // The same, and where that is, for errors: "after 3 micro-batches". Of the sums that anyone has begun early
    // all are ended here, with no use, but those that all keep.
    std::vector<std::string> meet(const std::string& call, const std::string& where, const std::string& mine,
                                  const std::optional<detail::EarlyRound>& keep = {});
    // Comes to nowhere, and says why.
    void fail(const std::string& call, const std::string& why) noexcept;
    // Of all, over `numbers`; `scratch` has as many, and one more for each process. Only of those who have
    // just met; after an error the memory of both must stay where it is.
    template <class S> void sum(AllReduce how, std::span<S> numbers, std::span<S> scratch);
    // Sums that begin before all have come to a window's end, of one window at a time (early_sums.hpp).
    std::int64_t new_window() { return windows_++; }  // its number among all that were opened here
    bool has_early() const { return early_ != nullptr; }
    detail::EarlySums* early(
        const detail::EarlyRound& round) const;  // null: this process has not begun these
    template <class S> detail::EarlySums& begin_early(const detail::EarlyRound& round,
                                                      std::shared_ptr<detail::EarlyMemory<S>> memory);
    bool kept_begun() const { return kept_begun_; }                 // by anyone, at the last meeting
    void end_early(detail::EarlySums& sums, std::int64_t buckets);  // so many in all; waits for them
    // Between two meetings, in `call`: waits until it is `done`; `lacks` says what is missing if it does not
    // come in time. An Error as of meet() also where anyone says meanwhile that it has failed or left.
    void await(const std::string& call, const std::string& where, const std::string& lacks,
               const std::function<bool()>& done);
    // The same for so many seconds; whether it is done.
    bool watch(const std::string& call, const std::string& where, double seconds,
               const std::function<bool()>& done);
    double patience() const { return options_.patience; }
    // From now on only these are the processes, by their ranks so far, in the order of their new ones. All of
    // them say so at the same place; who is not among them is told, and says leave_out().
    void go_on_with(const std::vector<int>& ranks);
    [[noreturn]] void leave_out(const std::string& why);
    void note(int to, const std::string& words);  // `to`: by the rank that it began with
    // To a rank that awaits the label and then takes the piece.
    void post(const std::string& label, const detail::Piece& piece, std::shared_ptr<const void> kept);
    // After an error its memory must stay where it is.
    void take(const std::string& call, const detail::Piece& piece);
    detail::Wire& wire() { return wire_; }

private:
    struct Letter;
    std::vector<Letter> exchange(const Letter& mine, double seconds);
    std::vector<std::string> gather(const Letter& mine, double seconds);
    std::string who_gave_up();
    void settle(const std::vector<Letter>& letters);
    void settle(std::vector<detail::EarlyRound> begun, const std::optional<detail::EarlyRound>& kept);
    [[noreturn]] void lose_amid(const std::string& call);
    double seconds_at_end(double seconds) const;
    void expect_unbroken(const std::string& call) const;

    ProcessesOptions options_;
    detail::Wire wire_;
    Sent sent_;
    std::int64_t pipes_ = 0, windows_ = 0, work_lists_ = 0;
    std::unique_ptr<detail::EarlySums> early_;  // what was begun and is not ended yet
    bool kept_begun_ = false;
    std::vector<std::string> last_;  // where each rank was heard of last
    std::string broken_;             // why nothing can be had of the others any more
    bool left_out_ = false;          // because the others go on without this one
    bool lost_ = false;              // because somebody did not come, who may never end either
};

// The sum over all processes of arrays of one shape and type; each of them gets it.
template <class S>
Array<S> sum_of_all(Processes& processes, const Array<S>& mine, AllReduce how = AllReduce::rank_order);

}  // namespace tally
