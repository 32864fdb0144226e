// EarlySums: sums of a window's gradients that begin before all have come to its end, while backward still runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tally/processes/ordered_sum.hpp"

namespace tally::detail {

// What one process has begun. If not all come to the window's end, the others join at whatever call they come
// to, so that nothing stays under way.
class EarlySums {
public:
    EarlySums(const EarlyRound& round, Sent& sent) : round_(round), sent_(sent) {}
    EarlySums(const EarlySums&) = delete;
    EarlySums& operator=(const EarlySums&) = delete;
    virtual ~EarlySums() = default;

    const EarlyRound& round() const { return round_; }
    void begin(std::int64_t buckets);    // so many in all
    void advance(std::int64_t buckets);  // the same while backward runs
    virtual std::size_t left() const = 0;
    virtual bool done() = 0;  // whether all are that were begun; goes on with them
    virtual void leak() = 0;  // the memory, since MPI may write there for ever

protected:
    virtual void begin_next() = 0;

    EarlyRound round_;
    Sent& sent_;
};

// This process's numbers, the sums of all, and what OrderedSum needs beside them.
template <class S> struct EarlyMemory {
    EarlyMemory(const EarlyRound& round, int ranks);

    std::vector<S> numbers, sums, scratch;
};

template <class S> class EarlySumsOf final : public EarlySums {
public:
    EarlySumsOf(Wire& wire, Sent& sent, const EarlyRound& round, std::shared_ptr<EarlyMemory<S>> memory)
        : EarlySums(round, sent), wire_(wire), memory_(std::move(memory)) {}

    std::size_t left() const override;
    bool done() override;
    void leak() override { new std::shared_ptr<EarlyMemory<S>>(memory_); }

private:
    void begin_next() override;

    Wire& wire_;
    std::shared_ptr<EarlyMemory<S>> memory_;
    std::deque<OrderedSum<S>> under_way_;
};

}  // namespace tally::detail
