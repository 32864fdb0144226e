// Implements `ProcessGroup`: checks that all processes make the same calls, and sums their numbers.
#include "tally/distributed/processes.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>

#include "tally/base/error.hpp"
#include "tally/train/state_reader.hpp"

namespace tally {

namespace {

constexpr double grace_seconds = 1;  // time in which the other processes can still report an error

std::string rank_text(std::size_t rank) { return "rank " + std::to_string(rank); }

std::string seconds_text(double seconds) { return detail::to_text(seconds) + " s"; }

// Checks the options before MPI starts, because an error after the start would have to end MPI.
const detail::ProcessGroupOptions& valid_options(const detail::ProcessGroupOptions& options) {
    if (!(options.timeout > 0))
        throw Error("processes", "the timeout is ", seconds_text(options.timeout),
                    "; pass a positive number of seconds");
    return options;
}

// Returns a text like "3 times (PMI_SIZE)" if a launcher started several processes, or else an empty text.
std::string launcher_text() {
    for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
        const char* const value = std::getenv(variable);
        if (value && std::atoi(value) > 1) return std::string(value) + " times (" + variable + ")";
    }
    return "";
}

}  // namespace

// A `Message` stores a kind, the name of a collective call, the progress of the call, and the contents.
struct ProcessGroup::Message {
    enum Kind : char { takes_part = 'j', failed = 'f', timed_out = 't', leaves = 'l' };
    Kind kind = takes_part;
    std::string call, where, contents;

    std::string encode() const {
        std::string text(1, kind);
        for (const std::string* part : {&call, &where}) text += std::to_string(part->size()) + ':' + *part;
        return text + contents;
    }
    static Message decode(const std::string& text) {
        Message message{static_cast<Kind>(text.at(0)), "", "", ""};
        std::size_t at = 1;
        for (std::string* part : {&message.call, &message.where}) {
            const std::size_t colon = text.find(':', at);
            const std::size_t length = std::stoul(text.substr(at, colon - at));
            *part = text.substr(colon + 1, length);
            at = colon + 1 + length;
        }
        message.contents = text.substr(at);
        return message;
    }
    std::string full_call() const { return where.empty() ? call : call + ", " + where; }
};

ProcessGroup::ProcessGroup(detail::ProcessGroupOptions options)
    : options_(valid_options(options)), transport_(options.communicator) {
    last_calls_.assign(static_cast<std::size_t>(size()), "its start");
    const std::string launched = size() == 1 && !options_.communicator ? launcher_text() : "";
    if (launched.empty()) return;
    transport_.end(true);
    throw Error("processes", "this program was started ", launched, ", but ",
                detail::MpiTransport::why_only_one_rank());
}

// Tells the other processes not to wait for this process. If a process does not answer, MPI_Finalize is not
// called, because MPI_Finalize might wait for ever. The launcher then ends the other processes.
ProcessGroup::~ProcessGroup() {
    bool all_ready = true;
    const bool no_error = std::uncaught_exceptions() == 0 && why_broken_.empty();
    const double seconds = no_error ? std::numeric_limits<double>::infinity() : options_.timeout;
    try {
        if (size() > 1 && why_broken_.empty())
            exchange_messages({Message::leaves, "its end", "", ""}, seconds);
        all_ready =
            size() == 1 || transport_.barrier_before_end(missing_text_.empty() ? seconds : grace_seconds);
    } catch (...) {
        all_ready = false;
    }
    transport_.end(all_ready);
}

void ProcessGroup::require_connected(const std::string& call) const {
    if (!why_broken_.empty())
        throw detail::SharedError("processes", call,
                                  ": an earlier call has ended the communication: ", why_broken_,
                                  "; end this process, and start the run again");
}

// Returns the messages of all processes. missing_text_ names processes that did not answer in time.
std::vector<ProcessGroup::Message> ProcessGroup::exchange_messages(const Message& mine, double seconds) {
    const std::string text = mine.encode();
    sent_.gathered_bytes += text.size() * static_cast<std::size_t>(size() - 1);
    const detail::MpiTransport::Messages received = transport_.all_gather(text, seconds);
    std::vector<Message> messages(received.size());
    missing_text_.clear();
    for (std::size_t rank = 0; rank < received.size(); ++rank) {
        if (!received[rank]) {
            missing_text_ += (missing_text_.empty() ? "" : ", ") + rank_text(rank) +
                             " did not answer within " + seconds_text(seconds) + " (last heard from at " +
                             last_calls_[rank] + ")";
            continue;
        }
        messages[rank] = Message::decode(*received[rank]);
        last_calls_[rank] = messages[rank].full_call();
        if (messages[rank].kind == Message::leaves && why_broken_.empty())
            why_broken_ = rank_text(rank) + " has left";
    }
    if (!missing_text_.empty()) why_broken_ = missing_text_;
    return messages;
}

// Ends all processes, because a process that did not answer in time may never answer.
void ProcessGroup::end_all(const std::string& why) { transport_.abort("[processes] " + why); }

std::vector<std::string> ProcessGroup::all_gather(const std::string& call, const std::string& mine) {
    return all_gather(call, "", mine);
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& call, const std::string& where,
                                                  const std::string& mine) {
    if (size() == 1) return {mine};
    require_connected(call);
    return exchange_and_check({Message::takes_part, call, where, mine}, options_.timeout);
}

// Returns the contents of all messages if all processes made the same call. Otherwise throws or ends the run.
std::vector<std::string> ProcessGroup::exchange_and_check(const Message& mine, double seconds) {
    std::vector<Message> messages = exchange_messages(mine, seconds);
    const auto prefix = [&](std::size_t rank) { return mine.full_call() + ": " + rank_text(rank); };
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
        const Message& theirs = messages[rank];
        if (theirs.kind == Message::failed)
            throw detail::SharedError("processes", prefix(rank), " has failed at ", theirs.full_call(), ": ",
                                      theirs.contents);
        if (theirs.kind == Message::leaves) throw detail::SharedError("processes", prefix(rank), " has left");
    }
    if (!missing_text_.empty())
        end_all(mine.full_call() + ": " + (mine.kind == Message::timed_out ? mine.contents + ", and " : "") +
                missing_text_ + "; look for an error of that process, or pass a longer timeout");
    std::vector<std::string> contents;
    for (std::size_t rank = 0; rank < messages.size(); ++rank)
        if (messages[rank].kind == Message::timed_out)
            throw detail::SharedError("processes", prefix(rank), " timed out at ", messages[rank].full_call(),
                                      ": ", messages[rank].contents);
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
        if (messages[rank].call != messages[0].call)
            throw detail::SharedError("processes", mine.full_call(), ": rank 0 calls ",
                                      messages[0].full_call(), ", and ", rank_text(rank), " calls ",
                                      messages[rank].full_call(),
                                      "; make the same calls in the same order on all processes");
        contents.push_back(std::move(messages[rank].contents));
    }
    return contents;
}

void ProcessGroup::report_failure(const std::string& call, const std::string& why) noexcept {
    if (size() == 1 || !why_broken_.empty()) return;
    try {
        exchange_messages({Message::failed, call, "", why}, options_.timeout);
    } catch (...) {  // the caller throws the error that is reported here
    }
}

// After the timeout, all processes exchange messages again. The error names the processes that do not answer
// in this exchange, and not the processes that are only waiting.
void ProcessGroup::wait_or_fail(const std::string& call, const std::string& where, const std::string& missing,
                                const std::function<bool()>& done) {
    require_connected(call);
    const bool in_time = transport_.wait(options_.timeout, [&] {
        if (done()) return true;
        for (int rank = 0; rank < size(); ++rank) {
            const std::string* const next = transport_.peek_message(rank);
            const auto kind = next ? Message::decode(*next).kind : Message::takes_part;
            if (kind != Message::takes_part && done()) return true;  // the data may have arrived before
            if (kind != Message::takes_part)  // throws, because this message ends the call on all processes
                exchange_and_check({Message::takes_part, call, where, ""},
                                   kind == Message::timed_out ? grace_seconds : options_.timeout);
        }
        return false;
    });
    if (!in_time)
        exchange_and_check(
            {Message::timed_out, call, where, missing + " within " + seconds_text(options_.timeout)},
            grace_seconds);
}

void ProcessGroup::post(const std::string& label, const detail::Piece& piece,
                        std::shared_ptr<const void> owner) {
    transport_.post(label, piece, std::move(owner));
    sent_.posted_bytes += piece.bytes;
}

void ProcessGroup::take(const std::string& call, const detail::Piece& piece) {
    if (!transport_.receive(piece, options_.timeout))
        end_all(call + ": the data that " + rank_text(static_cast<std::size_t>(piece.rank)) +
                " began to send did not arrive within " + seconds_text(options_.timeout));
}

// Each process sums one part of the numbers in the order of ranks (reduce-scatter), and then sends the part
// to all other processes (all-gather). All P processes together send each number 2 (P - 1) times.
template <class S> bool ProcessGroup::sum_in_order(std::span<S> numbers, std::span<S> scratch) {
    const auto ranks = static_cast<std::size_t>(size()), me = static_cast<std::size_t>(rank());
    const std::size_t n = numbers.size();
    const auto begin = [&](std::size_t share) { return share * (n / ranks) + std::min(share, n % ranks); };
    const auto share = [&](std::size_t of) { return numbers.subspan(begin(of), begin(of + 1) - begin(of)); };
    const std::span<S> mine = share(me);
    std::vector<S*> from(ranks, mine.data());
    std::vector<detail::Piece> sends, receives;
    std::size_t next = 0;
    for (std::size_t other = 0; other < ranks; ++other) {
        if (other == me) continue;
        from[other] = scratch.data() + next;
        next += mine.size();
        sends.push_back({static_cast<int>(other), share(other).data(), share(other).size_bytes()});
        receives.push_back({static_cast<int>(other), from[other], mine.size_bytes()});
    }
    const auto exchange_pieces = [&](std::span<const detail::Piece> to, std::span<const detail::Piece> back) {
        for (const detail::Piece& piece : to)
            if (piece.bytes > 0) ++sent_.messages, sent_.sum_bytes += piece.bytes;
        return transport_.exchange(to, back, options_.timeout);
    };
    if (!exchange_pieces(sends, receives)) return false;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        S sum = from[0][i];
        for (std::size_t rank = 1; rank < ranks; ++rank) sum += from[rank][i];
        mine[i] = sum;
    }
    for (detail::Piece& piece : sends) piece.data = mine.data(), piece.bytes = mine.size_bytes();
    for (detail::Piece& piece : receives) {
        const std::span<S> theirs = share(static_cast<std::size_t>(piece.rank));
        piece.data = theirs.data();
        piece.bytes = theirs.size_bytes();
    }
    return exchange_pieces(sends, receives);
}

template <class S> void ProcessGroup::sum(AllReduce how, std::span<S> numbers, std::span<S> scratch) {
    if (size() == 1) return;
    require_connected("sum");
    ++sent_.sums;
    bool done = false;
    switch (how) {
        case AllReduce::rank_order:
            done = sum_in_order(numbers, scratch);
            break;
        case AllReduce::fast:
            std::copy(numbers.begin(), numbers.end(), scratch.begin());
            sent_.sum_bytes += numbers.size_bytes();
            done = transport_.sum(scratch.data(), numbers.data(), numbers.size(), options_.timeout);
    }
    if (done) return;
    const std::string missing =
        "the numbers of other processes did not arrive within " + seconds_text(options_.timeout);
    exchange_messages({Message::timed_out, "sum", "", missing}, grace_seconds);
    end_all("sum: " + missing +
            (missing_text_.empty() ? " on " + rank_text(static_cast<std::size_t>(rank())) +
                                         ", although all processes have answered"
                                   : ", and " + missing_text_));
}

template <class S> Array<S> ProcessGroup::all_reduce(const Array<S>& mine, AllReduce how) {
    if (!mine.storage()) detail::fail_without_memory("all_reduce");
    // The buffers are on the heap and are not freed after an error, because MPI may still use the buffers.
    struct Numbers {
        std::vector<S> numbers, scratch;
    };
    auto held = std::make_unique<Numbers>();
    held->numbers = mine.to_vector();
    held->scratch.resize(mine.size() + static_cast<std::size_t>(size()));
    all_gather("all_reduce of " + std::string(sizeof(S) == 4 ? "float " : "double ") +
               to_string(mine.shape()) + (how == AllReduce::fast ? ", fast" : ", rank_order"));
    try {
        sum<S>(how, held->numbers, held->scratch);
    } catch (...) {
        (void)held.release();
        throw;
    }
    return Array<S>(mine.shape(), held->numbers, mine.device());
}

template void ProcessGroup::sum<float>(AllReduce, std::span<float>, std::span<float>);
template void ProcessGroup::sum<double>(AllReduce, std::span<double>, std::span<double>);
template void ProcessGroup::sum<std::int64_t>(AllReduce, std::span<std::int64_t>, std::span<std::int64_t>);
template Array<float> ProcessGroup::all_reduce<float>(const Array<float>&, AllReduce);
template Array<double> ProcessGroup::all_reduce<double>(const Array<double>&, AllReduce);

}  // namespace tally
