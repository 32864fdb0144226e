// Going on with what was begun, joining what others have begun.
#include "tally/processes/early_sums.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

namespace tally {

namespace detail {

void EarlySums::begin(std::int64_t buckets) {
    for (; round_.begun < buckets; ++round_.begun) begin_next();
}

void EarlySums::advance(std::int64_t buckets) {
    const std::uint64_t before = sent_.numbers;
    begin(buckets);
    done();
    sent_.early += sent_.numbers - before;
}

template <class S> EarlyMemory<S>::EarlyMemory(const EarlyRound& round, int ranks)
    : numbers(static_cast<std::size_t>(round.numbers)),
      sums(numbers.size()),
      scratch(numbers.size() + static_cast<std::size_t>(round.buckets() * ranks)) {}

template <class S> void EarlySumsOf<S>::begin_next() {
    const auto bucket = [&](std::vector<S>& of, std::int64_t more) {
        const auto size = static_cast<std::size_t>(round_.bucket + more);
        const std::size_t from = static_cast<std::size_t>(round_.begun) * size;
        return std::span(of).subspan(from, std::min(size, of.size() - from));
    };
    under_way_.emplace_back(wire_, sent_, bucket(memory_->numbers, 0), bucket(memory_->sums, 0),
                            bucket(memory_->scratch, wire_.size()),
                            static_cast<int>(2 + 2 * (round_.window % 1000)));  // MPI has 32767 tags
    ++sent_.sums;
}

template <class S> std::size_t EarlySumsOf<S>::left() const { return under_way_.size(); }

// Shares are spread in the order of buckets, so that on each channel everybody's messages have one order.
template <class S> bool EarlySumsOf<S>::done() {
    for (OrderedSum<S>& sum : under_way_) {
        sum.done();
        if (!sum.spreading()) break;
    }
    while (!under_way_.empty() && under_way_.front().done()) under_way_.pop_front();
    return under_way_.empty();
}

template struct EarlyMemory<float>;
template struct EarlyMemory<double>;
template class EarlySumsOf<float>;
template class EarlySumsOf<double>;

}  // namespace detail

// ---- those of a process, and joining the others' ----

detail::EarlySums* Processes::early(const detail::EarlyRound& round) const {
    return early_ && early_->round() == round ? early_.get() : nullptr;
}

template <class S> detail::EarlySums& Processes::begin_early(const detail::EarlyRound& round,
                                                             std::shared_ptr<detail::EarlyMemory<S>> memory) {
    early_ = std::make_unique<detail::EarlySumsOf<S>>(wire_, sent_, round, std::move(memory));
    return *early_;
}

void Processes::end_early(detail::EarlySums& sums, std::int64_t buckets) {
    sums.begin(buckets);
    while (!sums.done()) {  // for each bucket anew, as where they are summed one by one
        const std::size_t left = sums.left();
        if (wire_.wait(options_.patience, [&] { return sums.done() || sums.left() < left; })) continue;
        sums.leak();
        lose_amid("sum");
    }
    if (&sums == early_.get()) early_.reset();
}

// Who has not begun what others have joins with zeros. All have the same letters, so all join the same sums.
void Processes::settle(std::vector<detail::EarlyRound> begun, const std::optional<detail::EarlyRound>& kept) {
    std::ranges::sort(begun, [](const detail::EarlyRound& a, const detail::EarlyRound& b) {
        return std::tuple(a.window, a.number, b.begun) < std::tuple(b.window, b.number, a.begun);
    });
    begun.erase(std::unique(begun.begin(), begun.end()),
                begun.end());  // of each round the most that anyone has
    kept_begun_ = kept && std::erase(begun, *kept) > 0;
    for (const detail::EarlyRound& round : begun) {
        detail::EarlyRound anew = round;
        anew.begun = 0;
        const auto join = [&]<class S>(S) {
            detail::EarlySumsOf<S> zeros(wire_, sent_, anew,
                                         std::make_shared<detail::EarlyMemory<S>>(anew, size()));
            end_early(zeros, round.begun);
        };
        if (detail::EarlySums* const mine = early(round))
            end_early(*mine, round.begun);
        else
            round.bytes_each == sizeof(float) ? join(0.0F) : join(0.0);
    }
}

template detail::EarlySums& Processes::begin_early(const detail::EarlyRound&,
                                                   std::shared_ptr<detail::EarlyMemory<float>>);
template detail::EarlySums& Processes::begin_early(const detail::EarlyRound&,
                                                   std::shared_ptr<detail::EarlyMemory<double>>);

}  // namespace tally
