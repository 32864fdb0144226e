// Meeting the others, and summing with them.
#include "tally/distributed/processes.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>

#include "tally/base/error.hpp"
#include "tally/train/require.hpp"

namespace tally {

namespace {

constexpr double last_word = 1;  // seconds for those who are left to say what has happened

std::string rank_in_words(std::size_t rank) { return "rank " + std::to_string(rank); }

std::string seconds_in_words(double seconds) { return detail::in_words(seconds) + " s"; }

// Looked at before MPI is started, which must be ended by who has started it.
const ProcessesOptions& checked(const ProcessesOptions& options) {
    if (!(options.patience > 0))
        throw Error("[processes] a patience of " + seconds_in_words(options.patience) +
                    " is none; give it some seconds");
    return options;
}

// "3 times (PMI_SIZE)", as a launcher says it; of one process: nothing.
std::string times_started() {
    for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
        const char* const said = std::getenv(variable);
        if (said && std::atoi(said) > 1) return std::string(said) + " times (" + variable + ")";
    }
    return "";
}

}  // namespace

// What a process says when it comes: how it is, to which call, where that is, and what it has to say there.
struct Processes::Letter {
    enum Kind : char { comes = 'c', failed = 'f', waited = 'w', leaves = 'l' };
    Kind kind = comes;
    std::string call, where, words;

    std::string sealed() const {
        std::string text(1, kind);
        for (const std::string* part : {&call, &where}) text += std::to_string(part->size()) + ':' + *part;
        return text + words;
    }
    static Letter opened(const std::string& text) {
        Letter letter{static_cast<Kind>(text.at(0)), "", "", ""};
        std::size_t at = 1;
        for (std::string* part : {&letter.call, &letter.where}) {
            const std::size_t colon = text.find(':', at);
            const std::size_t length = std::stoul(text.substr(at, colon - at));
            *part = text.substr(colon + 1, length);
            at = colon + 1 + length;
        }
        letter.words = text.substr(at);
        return letter;
    }
    std::string place() const { return where.empty() ? call : call + ", " + where; }
};

Processes::Processes(ProcessesOptions options) : options_(checked(options)), wire_(options.communicator) {
    last_.assign(static_cast<std::size_t>(size()), "its beginning");
    const std::string times = size() == 1 && !options_.communicator ? times_started() : "";
    if (times.empty()) return;
    wire_.end(true);
    throw Error("[processes] this program was started " + times + ", but " + detail::Wire::why_alone());
}

// Who leaves says so, so that nobody waits for it. Where somebody is lost MPI would wait for ever at its end:
// then it is not told of the end, and the launcher ends the others.
Processes::~Processes() {
    bool together = true;
    const bool well = std::uncaught_exceptions() == 0 && broken_.empty();
    const double seconds = well ? std::numeric_limits<double>::infinity() : options_.patience;
    try {
        if (size() > 1 && broken_.empty()) exchange({Letter::leaves, "its end", "", ""}, seconds);
        together = size() == 1 || wire_.gather_to_end(missing_.empty() ? seconds : last_word);
    } catch (...) {
        together = false;
    }
    wire_.end(together);
}

void Processes::expect_unbroken(const std::string& call) const {
    if (!broken_.empty())
        throw detail::Heard("[processes] " + call +
                            ": the others are lost since an earlier call: " + broken_);
}

// What all have said; missing_ names those who have said nothing in time.
std::vector<Processes::Letter> Processes::exchange(const Letter& mine, double seconds) {
    const std::string text = mine.sealed();
    sent_.words += text.size() * static_cast<std::size_t>(size() - 1);
    const detail::Wire::Words heard = wire_.tell(text, seconds);
    std::vector<Letter> letters(heard.size());
    missing_.clear();
    for (std::size_t rank = 0; rank < heard.size(); ++rank) {
        if (!heard[rank]) {
            missing_ += (missing_.empty() ? "" : "; ") + rank_in_words(rank) + " has not come in " +
                        seconds_in_words(seconds) + ", and was last heard of at " + last_[rank];
            continue;
        }
        letters[rank] = Letter::opened(*heard[rank]);
        last_[rank] = letters[rank].place();
        if (letters[rank].kind == Letter::leaves && broken_.empty())
            broken_ = rank_in_words(rank) + " has left";
    }
    if (!missing_.empty()) broken_ = missing_;
    return letters;
}

// A process that does not answer may never answer, so the run ends.
void Processes::end_all(const std::string& why) { wire_.abort("[processes] " + why); }

std::vector<std::string> Processes::meet(const std::string& call, const std::string& mine) {
    return meet(call, "", mine);
}

std::vector<std::string> Processes::meet(const std::string& call, const std::string& where,
                                         const std::string& mine) {
    if (size() == 1) return {mine};
    expect_unbroken(call);
    return gather({Letter::comes, call, where, mine}, options_.patience);
}

// What all have said, where all have come.
std::vector<std::string> Processes::gather(const Letter& mine, double seconds) {
    std::vector<Letter> letters = exchange(mine, seconds);
    const auto who = [&](std::size_t rank) {
        return "[processes] " + mine.place() + ": " + rank_in_words(rank);
    };
    for (std::size_t rank = 0; rank < letters.size(); ++rank) {
        const Letter& there = letters[rank];
        if (there.kind == Letter::failed)
            throw detail::Heard(who(rank) + " has failed at " + there.place() + ": " + there.words);
        if (there.kind == Letter::leaves) throw detail::Heard(who(rank) + " has left");
    }
    if (!missing_.empty())
        end_all(mine.place() + ": " + (mine.kind == Letter::waited ? mine.words + ", and " : "") + missing_);
    std::vector<std::string> words;
    for (std::size_t rank = 0; rank < letters.size(); ++rank)
        if (letters[rank].kind == Letter::waited)
            throw detail::Heard(who(rank) + " has waited in vain at " + letters[rank].place() + ": " +
                                letters[rank].words);
    for (std::size_t rank = 0; rank < letters.size(); ++rank) {
        if (letters[rank].call != letters[0].call)
            throw detail::Heard("[processes] " + mine.place() + ": rank 0 calls " + letters[0].place() +
                                ", and " + rank_in_words(rank) + " calls " + letters[rank].place() +
                                "; everybody makes the same calls in the same order");
        words.push_back(std::move(letters[rank].words));
    }
    return words;
}

void Processes::fail(const std::string& call, const std::string& why) noexcept {
    if (size() == 1 || !broken_.empty()) return;
    try {
        exchange({Letter::failed, call, "", why}, options_.patience);
    } catch (...) {  // what has failed is said by who called this
    }
}

// Who has waited in vain says so, and all come at once: then the one who does not is the one that is lost.
void Processes::await(const std::string& call, const std::string& where, const std::string& lacks,
                      const std::function<bool()>& done) {
    expect_unbroken(call);
    const bool in_time = wire_.wait(options_.patience, [&] {
        if (done()) return true;
        for (int rank = 0; rank < size(); ++rank) {
            const std::string* const next = wire_.next(rank);
            const auto kind = next ? Letter::opened(*next).kind : Letter::comes;
            if (kind != Letter::comes && done()) return true;  // it came before that letter
            if (kind != Letter::comes)
                gather({Letter::comes, call, where, ""},
                       kind == Letter::waited ? last_word : options_.patience);
        }
        return false;
    });
    if (!in_time)
        gather({Letter::waited, call, where, lacks + " in " + seconds_in_words(options_.patience)},
               last_word);
}

void Processes::post(const std::string& label, const detail::Piece& piece, std::shared_ptr<const void> kept) {
    wire_.post(label, piece, std::move(kept));
    sent_.passed += piece.bytes;
}

void Processes::take(const std::string& call, const detail::Piece& piece) {
    if (!wire_.take(piece, options_.patience))
        end_all(call + ": what " + rank_in_words(static_cast<std::size_t>(piece.rank)) +
                " had begun to send did not come in " + seconds_in_words(options_.patience));
}

// Each process sums a share of the numbers, in the order of ranks, and then gives it to all others. So all together
// send each number 2 (P - 1) times.
template <class S> bool Processes::sum_in_order(std::span<S> numbers, std::span<S> scratch) {
    const auto ranks = static_cast<std::size_t>(size()), me = static_cast<std::size_t>(rank());
    const std::size_t n = numbers.size();
    const auto begin = [&](std::size_t share) { return share * (n / ranks) + std::min(share, n % ranks); };
    const auto share = [&](std::size_t of) { return numbers.subspan(begin(of), begin(of + 1) - begin(of)); };
    const std::span<S> mine = share(me);
    std::vector<S*> from(ranks, mine.data());
    std::vector<detail::Piece> given, taken;
    std::size_t next = 0;
    for (std::size_t other = 0; other < ranks; ++other) {
        if (other == me) continue;
        from[other] = scratch.data() + next;
        next += mine.size();
        given.push_back({static_cast<int>(other), share(other).data(), share(other).size_bytes()});
        taken.push_back({static_cast<int>(other), from[other], mine.size_bytes()});
    }
    const auto move = [&](std::span<const detail::Piece> to, std::span<const detail::Piece> back) {
        for (const detail::Piece& piece : to)
            if (piece.bytes > 0) ++sent_.messages, sent_.numbers += piece.bytes;
        return wire_.move(to, back, options_.patience);
    };
    if (!move(given, taken)) return false;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        S sum = from[0][i];
        for (std::size_t rank = 1; rank < ranks; ++rank) sum += from[rank][i];
        mine[i] = sum;
    }
    for (detail::Piece& piece : given) piece.at = mine.data(), piece.bytes = mine.size_bytes();
    for (detail::Piece& piece : taken) {
        const std::span<S> theirs = share(static_cast<std::size_t>(piece.rank));
        piece.at = theirs.data();
        piece.bytes = theirs.size_bytes();
    }
    return move(given, taken);
}

template <class S> void Processes::sum(AllReduce how, std::span<S> numbers, std::span<S> scratch) {
    if (size() == 1) return;
    expect_unbroken("sum");
    ++sent_.sums;
    bool done = false;
    switch (how) {
        case AllReduce::rank_order:
            done = sum_in_order(numbers, scratch);
            break;
        case AllReduce::fast:
            std::copy(numbers.begin(), numbers.end(), scratch.begin());
            sent_.numbers += numbers.size_bytes();
            done = wire_.sum(scratch.data(), numbers.data(), numbers.size(), options_.patience);
    }
    if (done) return;
    const std::string lacks = "the numbers of others did not come in " + seconds_in_words(options_.patience);
    exchange({Letter::waited, "sum", "", lacks}, last_word);
    end_all("sum: " + lacks +
            (missing_.empty()
                 ? ", although all have come, says " + rank_in_words(static_cast<std::size_t>(rank()))
                 : ", and " + missing_));
}

template <class S> Array<S> sum_of_all(Processes& processes, const Array<S>& mine, AllReduce how) {
    if (!mine.storage()) detail::fail_without_memory("sum_of_all");
    // What MPI reads and writes is the heap's, and if somebody is lost it must stay there.
    struct Numbers {
        std::vector<S> numbers, scratch;
    };
    auto held = std::make_unique<Numbers>();
    held->numbers = mine.to_vector();
    held->scratch.resize(mine.size() + static_cast<std::size_t>(processes.size()));
    processes.meet("sum_of_all of " + std::string(sizeof(S) == 4 ? "float " : "double ") +
                   to_string(mine.shape()) + (how == AllReduce::fast ? ", fast" : ", rank_order"));
    try {
        processes.sum<S>(how, held->numbers, held->scratch);
    } catch (...) {
        (void)held.release();
        throw;
    }
    return Array<S>(mine.shape(), held->numbers, mine.device());
}

template void Processes::sum<float>(AllReduce, std::span<float>, std::span<float>);
template void Processes::sum<double>(AllReduce, std::span<double>, std::span<double>);
template void Processes::sum<std::int64_t>(AllReduce, std::span<std::int64_t>, std::span<std::int64_t>);
template Array<float> sum_of_all<float>(Processes&, const Array<float>&, AllReduce);
template Array<double> sum_of_all<double>(Processes&, const Array<double>&, AllReduce);

}  // namespace tally
