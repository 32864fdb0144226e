// MpiTransport makes all MPI calls. Each wait for a process has a timeout, except while MPI starts or ends.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tally::detail {

// A `Piece` describes memory that is sent to a rank or received from a rank.
struct Piece {
    int rank;
    void* data;
    std::size_t bytes;
};

class MpiTransport {
public:
    explicit MpiTransport(const void* communicator);  // points to an MPI_Comm; null means MPI_COMM_WORLD
    MpiTransport(const MpiTransport&) = delete;
    MpiTransport& operator=(const MpiTransport&) = delete;
    ~MpiTransport();

    static std::string why_only_one_rank();  // says why MPI found one rank if a launcher started several

    int rank() const;
    int size() const;

    // Sends a message to all other ranks. Returns the next message of each rank, or nullopt for a late rank.
    using Messages = std::vector<std::optional<std::string>>;
    Messages all_gather(const std::string& mine, double seconds);
    // Returns the next message of a rank without removing it, or null if none has arrived.
    const std::string* peek_message(int rank);

    // Sends `to` and receives `from`; the other ranks pass the matching pieces. Returns false after the
    // timeout. MPI may then still use the memory of the pieces, so do not free the memory.
    bool exchange(std::span<const Piece> to, std::span<const Piece> from, double seconds);
    // Sums arrays over all ranks by MPI_Iallreduce. Returns false after the timeout, like exchange().
    template <class S> bool sum(const S* mine, S* all, std::size_t count, double seconds);

    // ---- from one rank to another; call these between two calls of all_gather() ----

    // Begins to send a label (the size or shape) and a piece. `owner` owns the memory until it is sent.
    void post(const std::string& label, const Piece& piece, std::shared_ptr<const void> owner);
    std::size_t free_sent();  // frees the posts that have been sent, and returns the number of unsent posts
    // Returns the label of the next piece from a rank if a label has arrived. Then call receive().
    std::optional<std::string> poll_label(int from);
    bool receive(const Piece& piece, double seconds);  // returns false after the timeout, like exchange()
    bool wait(double seconds, const std::function<bool()>& done);  // false after the timeout

    // Returns whether all ranks have called this function in time, so that end(true) is safe.
    bool barrier_before_end(double seconds) noexcept;
    // If all ranks are ready, frees the communicator, and ends MPI if this object started MPI. Acts once.
    void end(bool all_ready) noexcept;
    [[noreturn]] void abort(const std::string& why);  // prints the reason, and ends all ranks

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tally::detail
