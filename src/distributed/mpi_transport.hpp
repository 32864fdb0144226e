// MpiTransport: all that the module asks of MPI, and only mpi.cpp calls it. Nothing waits longer than it was told to.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tally::detail {

// Bytes on their way to a rank, or from it.
struct Piece {
    int rank;
    void* at;
    std::size_t bytes;
};

class MpiTransport {
public:
    explicit MpiTransport(
        const void* communicator);  // points at an MPI_Comm; null: what the environment says
    MpiTransport(const MpiTransport&) = delete;
    MpiTransport& operator=(const MpiTransport&) = delete;
    ~MpiTransport();

    // Why there may be only one rank, although a launcher has started several.
    static std::string why_alone();

    int rank() const;
    int size() const;

    // Words to every other rank, and the next that each of them sent; empty of those who sent none in time.
    using Words = std::vector<std::optional<std::string>>;
    Words all_gather(const std::string& mine, double seconds);
    // The next that a rank has sent, if it has come already: all_gather() will give it, too. Else null.
    const std::string* next(int rank);

    // All pieces, each of which the other side names too; false: not in time, and from then on the memory of
    // the pieces must stay where it is.
    bool move(std::span<const Piece> to, std::span<const Piece> from, double seconds);
    // The sum over all ranks by MPI's own Allreduce; false likewise.
    template <class S> bool sum(const S* mine, S* all, std::size_t count, double seconds);

    // ---- from one rank to another, between words to all ----

    // Begins to send a label, and a piece whose memory is kept while it is under way.
    void post(const std::string& label, const Piece& piece, std::shared_ptr<const void> kept);
    std::size_t under_way();  // so much of what was posted has not been taken yet
    // That of what a rank has posted next, if it has come; then take() takes the piece.
    std::optional<std::string> label_of(int from);
    bool take(const Piece& piece, double seconds);                 // false: not in time, as for move()
    bool wait(double seconds, const std::function<bool()>& done);  // false: not in time

    // Whether all came here in time: then it is safe to end together.
    bool gather_to_end(double seconds) noexcept;
    void end(bool together) noexcept;                 // finalises MPI if the wire had started it
    [[noreturn]] void abort(const std::string& why);  // ends all ranks, and prints why

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tally::detail
