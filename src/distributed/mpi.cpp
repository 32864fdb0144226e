// `MpiTransport` polls nonblocking calls of MPI's C interface, so that each wait can have a timeout.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "tally/base/error.hpp"
#include "tally/distributed/mpi_transport.hpp"

namespace tally::detail {

namespace {

constexpr int messages_tag = 1, pieces_tag = 2, labels_tag = 3, sums_tag = 4;

void require_ok(int code, const char* call) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw Error("processes", call, ": ", std::string(text, static_cast<std::size_t>(length)));
}

int count_of(std::size_t size, const char* unit = " bytes") {
    require(size <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "processes", size, unit,
            " are more than one call of MPI can process; use smaller buckets or micro-batches");
    return static_cast<int>(size);
}

// Calls done() until done() returns true, and yields the processor between two calls. Returns false after the
// timeout and 20 more calls, which notice messages that arrived while this process was stopped.
template <class F> bool poll_until(double seconds, F done) {
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    for (int late = 0; !done();) {
        if (std::chrono::duration<double>(Clock::now() - begun).count() > seconds && ++late == 20)
            return false;
        std::this_thread::yield();
    }
    return true;
}

template <class S> MPI_Datatype type_of();
template <> MPI_Datatype type_of<float>() { return MPI_FLOAT; }
template <> MPI_Datatype type_of<double>() { return MPI_DOUBLE; }
template <> MPI_Datatype type_of<std::int64_t>() { return MPI_INT64_T; }

}  // namespace

struct MpiTransport::State {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0, size = 1;
    bool started = false, ended = false;
    struct Post {
        std::string label;
        std::shared_ptr<const void> owner;
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    };
    std::unique_ptr<std::deque<Post>> posts = std::make_unique<std::deque<Post>>();

    // Throws after MPI_Finalize, because MPI would abort the program.
    void require_running() const {
        int finalized = 0;
        require_ok(MPI_Finalized(&finalized), "MPI_Finalized");
        require(finalized == 0, "processes",
                "MPI was finalized before the ProcessGroup; destroy the ProcessGroup before MPI_Finalize");
    }
    bool all_done(std::vector<MPI_Request>& requests, double seconds) const {
        return poll_until(seconds, [&] {
            int complete = 0;
            require_ok(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &complete,
                                   MPI_STATUSES_IGNORE),
                       "MPI_Testall");
            return complete != 0;
        });
    }
    // An `Incoming` stores the next message or label from one rank. A raw pointer owns the text, because a
    // destructor could free the text while MPI still writes to the text.
    struct Incoming {
        std::string* text = nullptr;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    std::vector<Incoming> messages, labels;

    Incoming& incoming(int from, int tag) {
        return (tag == messages_tag ? messages : labels)[static_cast<std::size_t>(from)];
    }
    bool has_arrived(int from, int tag = messages_tag) {
        auto& [text, request] = incoming(from, tag);
        int arrived = 0, length = 0;
        if (!text) {
            MPI_Message message;
            MPI_Status status;
            require_ok(MPI_Improbe(from, tag, comm, &arrived, &message, &status), "MPI_Improbe");
            if (!arrived) return false;
            require_ok(MPI_Get_count(&status, MPI_BYTE, &length), "MPI_Get_count");
            text = new std::string(static_cast<std::size_t>(length), '\0');
            require_ok(MPI_Imrecv(text->data(), length, MPI_BYTE, &message, &request), "MPI_Imrecv");
        }
        require_ok(MPI_Test(&request, &arrived, MPI_STATUS_IGNORE), "MPI_Test");
        return arrived != 0;
    }
    static std::string take(Incoming& next) {
        const std::unique_ptr<std::string> text(std::exchange(next.text, nullptr));
        return std::move(*text);
    }
    // Begins to send `text` to all other ranks. `text` must exist until the requests are complete.
    std::vector<MPI_Request> send(const std::string* text) const {
        std::vector<MPI_Request> requests;
        for (int to = 0; to < size; ++to)
            if (to != rank)
                require_ok(MPI_Isend(text->data(), count_of(text->size()), MPI_BYTE, to, messages_tag, comm,
                                     &requests.emplace_back()),
                           "MPI_Isend");
        return requests;
    }
    bool exchange(std::span<const Piece> to, std::span<const Piece> from, int tag, double seconds) const {
        require_running();
        std::vector<MPI_Request> requests;
        requests.reserve(to.size() + from.size());
        for (const Piece& piece : from)
            if (piece.bytes > 0)
                require_ok(MPI_Irecv(piece.data, count_of(piece.bytes), MPI_BYTE, piece.rank, tag, comm,
                                     &requests.emplace_back()),
                           "MPI_Irecv");
        for (const Piece& piece : to)
            if (piece.bytes > 0)
                require_ok(MPI_Isend(piece.data, count_of(piece.bytes), MPI_BYTE, piece.rank, tag, comm,
                                     &requests.emplace_back()),
                           "MPI_Isend");
        return all_done(requests, seconds);
    }
};

MpiTransport::MpiTransport(const void* communicator) : state_(std::make_unique<State>()) {
    int running = 0, finalized = 0;
    require_ok(MPI_Initialized(&running), "MPI_Initialized");
    require_ok(MPI_Finalized(&finalized), "MPI_Finalized");
    require(finalized == 0, "processes",
            "MPI was finalized, and a program cannot start it again; construct the ProcessGroup before "
            "MPI_Finalize");
    require(!communicator || running, "processes",
            "a communicator was passed, but MPI is not initialized; call MPI_Init first");
    if (!running) {
        int level = 0;
        require_ok(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
        state_->started = true;
        require_ok(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    const MPI_Comm theirs = communicator ? *static_cast<const MPI_Comm*>(communicator) : MPI_COMM_WORLD;
    require_ok(MPI_Comm_dup(theirs, &state_->comm), "MPI_Comm_dup");  // separates the program's messages
    require_ok(MPI_Comm_set_errhandler(state_->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    require_ok(MPI_Comm_rank(state_->comm, &state_->rank), "MPI_Comm_rank");
    require_ok(MPI_Comm_size(state_->comm, &state_->size), "MPI_Comm_size");
    state_->messages.resize(static_cast<std::size_t>(state_->size));
    state_->labels.resize(static_cast<std::size_t>(state_->size));
}

MpiTransport::~MpiTransport() {
    end(false);
    if (!state_->posts->empty()) (void)state_->posts.release();  // MPI may still read the posts
}

std::string MpiTransport::why_only_one_rank() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    require_ok(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
    const std::string version(text, static_cast<std::size_t>(length));
    return "its MPI library found only one process; use the launcher of " +
           version.substr(0, version.find_first_of(",\n"));
}

int MpiTransport::rank() const { return state_->rank; }
int MpiTransport::size() const { return state_->size; }

MpiTransport::Messages MpiTransport::all_gather(const std::string& mine, double seconds) {
    state_->require_running();
    const auto size = static_cast<std::size_t>(state_->size);
    Messages messages(size);
    messages[static_cast<std::size_t>(state_->rank)] = mine;
    // This copy is never freed after a timeout or an error, because MPI may still read the copy.
    const auto* const sent = new std::string(mine);
    std::vector<MPI_Request> requests = state_->send(sent);
    const bool in_time = poll_until(seconds, [&] {
        bool complete = true;
        for (int from = 0; from < state_->size; ++from) {
            auto& theirs = messages[static_cast<std::size_t>(from)];
            if (!theirs && state_->has_arrived(from))
                theirs = State::take(state_->incoming(from, messages_tag));
            complete = complete && theirs;
        }
        return complete;
    });
    if (state_->all_done(requests, in_time ? seconds : 0)) delete sent;
    return messages;
}

const std::string* MpiTransport::peek_message(int rank) {
    if (rank == state_->rank || !state_->has_arrived(rank)) return nullptr;
    return state_->incoming(rank, messages_tag).text;
}

bool MpiTransport::exchange(std::span<const Piece> to, std::span<const Piece> from, double seconds) {
    return state_->exchange(to, from, sums_tag, seconds);
}

template <class S> bool MpiTransport::sum(const S* mine, S* all, std::size_t count, double seconds) {
    state_->require_running();
    std::vector<MPI_Request> request(1);
    require_ok(MPI_Iallreduce(mine, all, count_of(count, " numbers"), type_of<S>(), MPI_SUM, state_->comm,
                              request.data()),
               "MPI_Iallreduce");
    return state_->all_done(request, seconds);
}

void MpiTransport::post(const std::string& label, const Piece& piece, std::shared_ptr<const void> owner) {
    state_->require_running();
    const int bytes = count_of(piece.bytes);
    State::Post& post = state_->posts->emplace_back();
    post.label = label;
    post.owner = std::move(owner);
    require_ok(MPI_Isend(post.label.data(), count_of(post.label.size()), MPI_BYTE, piece.rank, labels_tag,
                         state_->comm, &post.requests[0]),
               "MPI_Isend");
    if (bytes > 0)
        require_ok(
            MPI_Isend(piece.data, bytes, MPI_BYTE, piece.rank, pieces_tag, state_->comm, &post.requests[1]),
            "MPI_Isend");
}

std::size_t MpiTransport::free_sent() {
    for (int sent = 1; sent && !state_->posts->empty();) {
        require_ok(MPI_Testall(2, state_->posts->front().requests, &sent, MPI_STATUSES_IGNORE),
                   "MPI_Testall");
        if (sent) state_->posts->pop_front();
    }
    return state_->posts->size();
}

std::optional<std::string> MpiTransport::poll_label(int from) {
    if (!state_->has_arrived(from, labels_tag)) return {};
    return State::take(state_->incoming(from, labels_tag));
}

bool MpiTransport::receive(const Piece& piece, double seconds) {
    return state_->exchange({}, {&piece, 1}, pieces_tag, seconds);
}

bool MpiTransport::wait(double seconds, const std::function<bool()>& done) {
    state_->require_running();
    return poll_until(seconds, done);
}

bool MpiTransport::barrier_before_end(double seconds) noexcept {
    try {
        state_->require_running();
        std::vector<MPI_Request> request(1);
        require_ok(MPI_Ibarrier(state_->comm, request.data()), "MPI_Ibarrier");
        return state_->all_done(request, seconds);
    } catch (const Error&) {
        return false;
    }
}

void MpiTransport::end(bool all_ready) noexcept {
    if (std::exchange(state_->ended, true) || !all_ready) return;
    int finalized = 0;
    MPI_Finalized(&finalized);  // true if the program has called MPI_Finalize too early
    if (finalized) return;
    MPI_Comm_free(&state_->comm);
    if (state_->started) MPI_Finalize();
}

void MpiTransport::abort(const std::string& why) {
    std::cout << std::flush;
    std::cerr << why + "\n" << std::flush;
#ifdef MPICH_VERSION  // after MPI_Abort, MPICH's launcher would wait for ever for a stopped process
    std::_Exit(1);
#endif
    MPI_Abort(state_->comm, 1);
    std::abort();
}

template bool MpiTransport::sum(const float*, float*, std::size_t, double);
template bool MpiTransport::sum(const double*, double*, std::size_t, double);
template bool MpiTransport::sum(const std::int64_t*, std::int64_t*, std::size_t, double);

}  // namespace tally::detail
