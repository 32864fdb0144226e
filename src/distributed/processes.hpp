// The processes of a `ProcessGroup` exchange data by calls that all processes make in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/distributed/mpi_transport.hpp"

namespace tally {

namespace detail {
// A `SharedError` is not sent to the other processes, which throw the same error or cannot be reached.
struct SharedError : Error {
    using Error::Error;
};

// Counts the bytes and the messages that one process has sent.
struct CommStats {
    std::uint64_t sum_bytes = 0;       // sent by sum(); with ProcessGroup::AllReduce::fast, passed to MPI
    std::uint64_t messages = 0;        // messages that sum() sent; 0 with ProcessGroup::AllReduce::fast
    std::uint64_t gathered_bytes = 0;  // of all_gather(), and of reports of failures
    std::uint64_t sums = 0;            // calls of sum()
    std::uint64_t posted_bytes = 0;    // passed to post()
};

// Options of ProcessGroup.
struct ProcessGroupOptions {
    double timeout = 8;  // seconds that a call waits for other processes before it ends all processes;
                         // the destructor waits without a limit unless an error has occurred
    const void* communicator = nullptr;  // points to the MPI_Comm of a program that uses MPI itself
};
}  // namespace detail

// A `ProcessGroup` represents one process, or all processes that a launcher such as mpirun or srun started.
// The group starts and ends MPI, unless the program has started MPI. Call all functions from one thread.
class ProcessGroup {
public:
    using Options = detail::ProcessGroupOptions;
    // Selects how all_reduce() adds the numbers of all processes. All processes receive bit-identical sums.
    enum class AllReduce {
        fast,        // by MPI_Iallreduce: the bits depend on the MPI library and the number of processes
        rank_order,  // in the order of ranks: the bits depend only on the number of processes
    };

    explicit ProcessGroup(Options options = {});
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;
    ~ProcessGroup();

    int rank() const { return transport_.rank(); }
    int size() const { return transport_.size(); }
    const detail::CommStats& sent() const { return sent_; }

    // Waits until all processes make the same call, and returns each process's argument `mine` by rank.
    // Throws on all processes if one process makes a different call, has failed or has ended. If a process
    // does not answer within the timeout, an error message names this process, and all processes end.
    std::vector<std::string> all_gather(const std::string& call, const std::string& mine = "");

    // Returns the sum of the arrays `mine` of all processes, which must have the same shape and type.
    template <class S> Array<S> all_reduce(const Array<S>& mine, AllReduce how = AllReduce::rank_order);

    // ---- for the engine ----

    // These functions number the Pipes and the Windows in the order of construction.
    std::int64_t next_pipe_index() { return pipes_++; }
    std::int64_t next_window_index() { return windows_++; }

    // Works like the all_gather() above. Errors name `where` after the call, such as "after 3 micro-batches".
    std::vector<std::string> all_gather(const std::string& call, const std::string& where,
                                        const std::string& mine);
    // Reports a failure to the other processes, instead of taking part in the next collective call.
    void report_failure(const std::string& call, const std::string& why) noexcept;
    // Sums `numbers` over all processes. `scratch` needs numbers.size() elements plus one element for each
    // process. Call sum(), once or several times, directly after all_gather(). After an error do not free the
    // buffers, because MPI may still use the buffers.
    template <class S> void sum(AllReduce how, std::span<S> numbers, std::span<S> scratch);
    // Waits between two calls of all_gather() until done() is true. Throws if a process reports a failure or
    // leaves. After the timeout, all processes throw `missing`, or end if a process does not answer.
    void wait_or_fail(const std::string& call, const std::string& where, const std::string& missing,
                      const std::function<bool()>& done);
    // Begins to send a label with a piece's size or shape, and the piece. The receiver then calls take().
    void post(const std::string& label, const detail::Piece& piece, std::shared_ptr<const void> owner);
    // Receives a piece. After an error do not free the memory of the piece, because MPI may still use it.
    void take(const std::string& call, const detail::Piece& piece);
    detail::MpiTransport& transport() { return transport_; }

private:
    struct Message;
    std::vector<Message> exchange_messages(const Message& mine, double seconds);
    std::vector<std::string> exchange_and_check(const Message& mine, double seconds);
    template <class S> bool sum_in_order(std::span<S> numbers, std::span<S> scratch);
    [[noreturn]] void end_all(const std::string& why);
    void require_connected(const std::string& call) const;

    Options options_;
    detail::MpiTransport transport_;
    detail::CommStats sent_;
    std::int64_t pipes_ = 0, windows_ = 0;
    std::vector<std::string> last_calls_;  // the last call that each rank has reported
    std::string missing_text_;             // the processes that did not answer in the last exchange
    std::string why_broken_;               // empty while calls are possible, else the reason why not
};

}  // namespace tally
