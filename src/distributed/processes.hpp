// ProcessGroup: who takes part, and how they meet. They come to the same calls in the same order, or say in
// words who did not; one that does not answer in time ends the run of all.
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
// An Error that all others hear of, too, or that none can be told of.
struct PeerError : Error {
    using Error::Error;
};
}  // namespace detail

// How numbers of several processes are added, named by what it promises.
enum class AllReduce {
    fast,        // MPI_Iallreduce: the same bits on each, and again with as many processes and the same MPI
    rank_order,  // rank 0's plus rank 1's, then rank 2's, ...: the same bits for as many, with any MPI
};

namespace detail {
// What one process has sent.
struct CommStats {
    std::uint64_t numbers = 0;   // bytes of what is summed; with AllReduce::fast what MPI was handed to sum
    std::uint64_t messages = 0;  // in which they went; with AllReduce::fast MPI's own, which are not known
    std::uint64_t words = 0;     // bytes of what they agree about
    std::uint64_t sums = 0;      // how often something was summed
    std::uint64_t passed = 0;    // bytes of what a pipe has passed on
};
}  // namespace detail

// Options of ProcessGroup.
struct ProcessGroupOptions {
    double timeout = 8;  // seconds that a call waits for the others before it ends the run of all;
                         // the destructor, if nothing has failed, waits as long as it takes
    const void* communicator = nullptr;  // of a program that uses MPI itself: points at its MPI_Comm
};

// The processes that mpirun, srun or another launcher has started together; a single one without a launcher.
// Starts MPI unless the program has, and then ends it, too. All calls come from one thread.
class ProcessGroup {
public:
    explicit ProcessGroup(ProcessGroupOptions options = {});
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;
    ~ProcessGroup();

    int rank() const { return wire_.rank(); }
    int size() const { return wire_.size(); }
    const detail::CommStats& sent() const { return sent_; }

    // Waits until all others have come to `call`, and returns what each has said, by rank. An Error on all of
    // them if one makes another call, has failed or has left. If one does not come within the patience, the
    // message names it, and the run ends for all of them (MPI_Abort).
    std::vector<std::string> all_gather(const std::string& call, const std::string& mine = "");

    // ---- for the engine ----

    std::int64_t new_pipe() { return pipes_++; }      // its number among all that were made here
    std::int64_t new_window() { return windows_++; }  // likewise, among all that were opened

    // The same, and where that is, for errors: "after 3 micro-batches".
    std::vector<std::string> all_gather(const std::string& call, const std::string& where,
                                        const std::string& mine);
    // Comes to nowhere, and says why.
    void fail(const std::string& call, const std::string& why) noexcept;
    // Of all, over `numbers`; `scratch` has as many, and one more for each process. Only of those who have
    // just met; after an error the memory of both must stay where it is.
    template <class S> void sum(AllReduce how, std::span<S> numbers, std::span<S> scratch);
    // Between two meetings, in `call`: waits until it is `done`; `lacks` says what is missing if it does not
    // come in time. As in all_gather(), also where anyone says meanwhile that it has failed or left.
    void wait_or_fail(const std::string& call, const std::string& where, const std::string& lacks,
                      const std::function<bool()>& done);
    // To a rank that awaits the label and then takes the piece.
    void post(const std::string& label, const detail::Piece& piece, std::shared_ptr<const void> kept);
    // After an error its memory must stay where it is.
    void take(const std::string& call, const detail::Piece& piece);
    detail::MpiTransport& wire() { return wire_; }

private:
    struct Message;
    std::vector<Message> exchange(const Message& mine, double seconds);
    std::vector<std::string> gather(const Message& mine, double seconds);
    template <class S> bool sum_in_order(std::span<S> numbers, std::span<S> scratch);
    [[noreturn]] void end_all(const std::string& why);
    void expect_unbroken(const std::string& call) const;

    ProcessGroupOptions options_;
    detail::MpiTransport wire_;
    detail::CommStats sent_;
    std::int64_t pipes_ = 0, windows_ = 0;
    std::vector<std::string> last_;  // where each rank was heard of last
    std::string missing_;            // the processes that did not come to the last exchange in time
    std::string broken_;             // why nothing can be had of the others any more
};

// The sum over all processes of arrays of one shape and type; each of them gets it.
template <class S>
Array<S> sum_of_all(ProcessGroup& processes, const Array<S>& mine, AllReduce how = AllReduce::rank_order);

}  // namespace tally
