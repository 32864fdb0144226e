// Meeting the others, and summing with them.
#include "tally/processes/processes.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>

#include "tally/base/error.hpp"
#include "tally/processes/early_sums.hpp"
#include "tally/train/require.hpp"

namespace tally {

namespace {

constexpr double last_word = 1;  // seconds for those who are left to say what has happened
constexpr int looks = 20;        // until MPI has noticed what lies there

std::string rank_in_words(std::size_t rank) { return "rank " + std::to_string(rank); }

std::string seconds_in_words(double seconds) { return in_words(seconds) + " s"; }

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

std::string in_bytes(const detail::EarlyRound& round) {
    return {reinterpret_cast<const char*>(&round), sizeof round};
}
detail::EarlyRound early_round(const std::string& bytes) {
    detail::EarlyRound round;
    std::memcpy(&round, bytes.data(), sizeof round);
    return round;
}

}  // namespace

// What a process says when it comes: how it is, to which call, where that is, and what it has to say there.
struct Processes::Letter {
    enum Kind : char { comes = 'c', failed = 'f', waited = 'w', leaves = 'l', gives_up = 'g' };
    Kind kind = comes;
    std::string call, where, words;
    std::string begun = {}, kept = {};  // early, in bytes: what it has begun; what this call keeps

    std::string sealed() const {
        std::string text(1, kind);
        for (const std::string* part : {&call, &where, &begun, &kept})
            text += std::to_string(part->size()) + ':' + *part;
        return text + words;
    }
    static Letter opened(const std::string& text) {
        Letter letter{static_cast<Kind>(text.at(0)), "", "", ""};
        std::size_t at = 1;
        for (std::string* part : {&letter.call, &letter.where, &letter.begun, &letter.kept}) {
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
        together = (size() == 1 && wire_.complete()) || wire_.gather_to_end(seconds_at_end(seconds));
    } catch (...) {
        together = false;
    }
    if (early_) early_->leak();
    wire_.end(together);
}

// One that was left out waits for all others, who would be ended if it ended before them.
double Processes::seconds_at_end(double seconds) const {
    if (left_out_) return std::numeric_limits<double>::infinity();
    if (lost_) return last_word;
    return wire_.complete() ? seconds : options_.patience;
}

void Processes::go_on_with(const std::vector<int>& ranks) {
    if (early_)
        throw Error(
            "[processes] sums are under way with a process that is left out: a work list goes with no "
            "overlap");
    std::vector<std::string> last;
    for (const int rank : ranks) last.push_back(last_[static_cast<std::size_t>(rank)]);
    last_ = std::move(last);
    wire_.go_on_with(ranks);
}

void Processes::leave_out(const std::string& why) {
    broken_ = why;
    left_out_ = true;
    throw detail::Heard("[processes] " + why);
}

void Processes::note(int to, const std::string& words) {
    wire_.note(to, words);
    sent_.words += words.size();
}

void Processes::expect_unbroken(const std::string& call) const {
    if (!broken_.empty())
        throw detail::Heard("[processes] " + call +
                            ": the others are lost since an earlier call: " + broken_);
}

std::vector<Processes::Letter> Processes::exchange(const Letter& mine, double seconds) {
    Letter letter = mine;
    if (early_) letter.begun = in_bytes(early_->round());
    const std::string text = letter.sealed();
    sent_.words += text.size() * static_cast<std::size_t>(size() - 1);
    const detail::Wire::Words heard = wire_.tell(text, seconds);
    std::vector<Letter> letters;
    std::string missing;
    for (std::size_t rank = 0; rank < heard.size(); ++rank) {
        if (!heard[rank]) {
            missing += (missing.empty() ? "" : "; ") + rank_in_words(rank) + " has not come in " +
                       seconds_in_words(seconds) + ", and was last heard of at " + last_[rank];
            continue;
        }
        letters.push_back(Letter::opened(*heard[rank]));
        last_[rank] = letters.back().place();
        if (letters.back().kind == Letter::gives_up)
            missing +=
                (missing.empty() ? "" : "; ") + rank_in_words(rank) + " has given up at " + last_[rank];
        if (letters.back().kind == Letter::leaves && broken_.empty())
            broken_ = rank_in_words(rank) + " has left";
    }
    if (missing.empty())
        missing = who_gave_up();
    else
        wire_.say(Letter{Letter::gives_up, mine.call, mine.where, missing}.sealed());
    if (missing.empty()) {
        settle(letters);
        return letters;
    }
    broken_ = missing;
    lost_ = true;
    throw detail::Heard("[processes] " + mine.place() + ": " +
                        (mine.kind == Letter::waited ? mine.words + ", and " : "") + missing);
}

// Early sums go on only if all have come to the end of their window, which who comes otherwise does not keep; of
// others nothing stays under way.
void Processes::settle(const std::vector<Letter>& letters) {
    std::vector<detail::EarlyRound> begun;
    bool together = !letters[0].kept.empty();
    for (const Letter& letter : letters) {
        if (!letter.begun.empty()) begun.push_back(early_round(letter.begun));
        together = together && letter.kept == letters[0].kept;
    }
    settle(std::move(begun), together ? std::optional(early_round(letters[0].kept)) : std::nullopt);
}

// Whoever comes last finds everybody's letters, also of those who do not wait any more: what they said then
// comes behind. It must not go on as if all were there.
std::string Processes::who_gave_up() {
    for (int look = 0; look < looks; ++look)
        for (int rank = 0; rank < size(); ++rank)
            if (const std::string* const next = wire_.next(rank)) {
                const Letter letter = Letter::opened(*next);
                if (letter.kind == Letter::gives_up)
                    return rank_in_words(static_cast<std::size_t>(rank)) + " has given up at " +
                           letter.place() + ": " + letter.words;
            }
    return "";
}

std::vector<std::string> Processes::meet(const std::string& call, const std::string& mine) {
    return meet(call, "", mine);
}

std::vector<std::string> Processes::meet(const std::string& call, const std::string& where,
                                         const std::string& mine,
                                         const std::optional<detail::EarlyRound>& keep) {
    if (size() == 1) return {mine};
    expect_unbroken(call);
    return gather({Letter::comes, call, where, mine, "", keep ? in_bytes(*keep) : ""}, options_.patience);
}

// What all have said, where all have come.
std::vector<std::string> Processes::gather(const Letter& mine, double seconds) {
    std::vector<Letter> letters = exchange(mine, seconds);
    const Letter& here = letters[static_cast<std::size_t>(rank())];
    std::vector<std::string> words;
    for (std::size_t rank = 0; rank < letters.size(); ++rank) {
        const Letter& there = letters[rank];
        const std::string who = "[processes] " + here.place() + ": " + rank_in_words(rank);
        if (there.kind == Letter::failed)
            throw detail::Heard(who + " has failed at " + there.place() + ": " + there.words);
        if (there.kind == Letter::waited)
            throw detail::Heard(who + " has waited in vain at " + there.place() + ": " + there.words);
        if (there.kind == Letter::leaves) throw detail::Heard(who + " has left");
    }
    for (std::size_t rank = 0; rank < letters.size(); ++rank) {
        if (letters[rank].call != letters[0].call)
            throw detail::Heard("[processes] " + here.place() + ": rank 0 calls " + letters[0].place() +
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
    } catch (...) {  // nobody listens: what has failed is said by who called this
    }
}

// Who has waited in vain says so, and all come at once: then the one who does not is the one that is lost.
void Processes::await(const std::string& call, const std::string& where, const std::string& lacks,
                      const std::function<bool()>& done) {
    if (!watch(call, where, options_.patience, done))
        gather({Letter::waited, call, where, lacks + " in " + seconds_in_words(options_.patience)},
               last_word);
}

bool Processes::watch(const std::string& call, const std::string& where, double seconds,
                      const std::function<bool()>& done) {
    expect_unbroken(call);
    return wire_.wait(seconds, [&] {
        if (done()) return true;
        for (int rank = 0; rank < size(); ++rank) {
            const std::string* const next = wire_.next(rank);
            const auto kind = next ? Letter::opened(*next).kind : Letter::comes;
            if (kind != Letter::comes && done()) return true;  // it came before that letter
            if (kind != Letter::comes)
                gather({Letter::comes, call, where, ""},
                       kind == Letter::waited || kind == Letter::gives_up ? last_word : options_.patience);
        }
        return false;
    });
}

void Processes::post(const std::string& label, const detail::Piece& piece, std::shared_ptr<const void> kept) {
    wire_.post(label, piece, std::move(kept));
    sent_.passed += piece.bytes;
}

void Processes::take(const std::string& call, const detail::Piece& piece) {
    if (wire_.move({}, {&piece, 1}, options_.patience)) return;
    broken_ = "what " + rank_in_words(static_cast<std::size_t>(piece.rank)) +
              " had begun to send did not come in " + seconds_in_words(options_.patience);
    lost_ = true;
    throw detail::Heard("[processes] " + call + ": " + broken_);
}

void Processes::lose_amid(const std::string& call) {
    broken_ =
        "all had come to this sum, but its numbers did not come in " + seconds_in_words(options_.patience);
    lost_ = true;
    throw detail::Heard("[processes] " + call + ": " + broken_);
}

template <class S> void Processes::sum(AllReduce how, std::span<S> numbers, std::span<S> scratch) {
    if (size() == 1) return;
    expect_unbroken("sum");
    ++sent_.sums;
    bool done = false;
    switch (wire_.complete() ? how : AllReduce::rank_order) {  // MPI_Iallreduce is one of all who began
        case AllReduce::rank_order: {
            detail::OrderedSum<S> ordered(wire_, sent_, numbers, numbers, scratch, 0);
            done = wire_.wait(options_.patience, [&] { return ordered.done(); });
            break;
        }
        case AllReduce::fast:
            std::copy(numbers.begin(), numbers.end(), scratch.begin());
            sent_.numbers += numbers.size_bytes();
            done = wire_.sum(scratch.data(), numbers.data(), numbers.size(), options_.patience);
    }
    if (done) return;
    lose_amid("sum");
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
