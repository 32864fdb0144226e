// Ranks: one window over all processes.
//
//     Processes processes;
//     Ranks<float> ranks(processes);
//     Window<float> window(optimizer, {.total = 64}, &ranks);
//     for (const Items& micro : ranks.share(split(batch, 8)))
//         window.add(mse(model(rows(x, micro)), rows(y, micro)));
//     window.finish();   // sums counts, losses and gradients of all, and steps on each of them alike
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tally/processes/bucket.hpp"
#include "tally/processes/processes.hpp"
#include "tally/processes/shared_sums.hpp"
#include "tally/train/across.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/module.hpp"

namespace tally {

// Options of Ranks.
template <class S> struct RanksOptions {
    AllReduce reduce = AllReduce::rank_order;
    Module<S>* model = nullptr;                 // one that leaves effects, such as batch norm, must be told
    std::size_t bucket = std::size_t{1} << 20;  // so many numbers are summed at once
};

// What a window asks of all others. Micro-batches communicate nothing: the window's end does.
template <class S> class Ranks : public Across<S> {
public:
    explicit Ranks(Processes& processes, RanksOptions<S> options = {});
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;
    ~Ranks() override;

    // This process's share of `parts`, neighbours of one another: another process may have one more, and some
    // may have none. What layers draw for their items is what one process alone would draw, if all micro-batches
    // of a window are shared by one call: a second one in the same window begins at its first item again.
    std::vector<Items> share(const std::vector<Items>& parts) override;
    // If you cut in another way: the number of this process's first item in its windows. Without either,
    // each process draws for itself.
    void begin_at(std::int64_t item) { first_item_ = item; }

    // An Error that names the first parameter whose bits are not rank 0's, of those of the window that was
    // opened or ended last. Everybody calls it.
    void expect_same_weights();

    // ---- for the window ----
    bool writes() const override { return processes_.rank() == 0; }
    using Named = typename Across<S>::Named;
    void open(const Optimizer<S>& optimizer, const Named& options) override;
    Standing gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window,
                    const Standing& here, std::span<ExactSum<S>> exact) override;
    void reduce(Effects& effects, std::span<ExactSum<S>> exact) override;
    void ready() override;
    void fail(const char* call, std::int64_t window, const std::string& why) noexcept override;
    std::int64_t first_item() const override { return first_item_; }

private:
    std::vector<std::string> meet(const std::string& what, const std::string& mine = "");
    void expect_equal(const std::string& call, const Named& lines);
    Named weights() const;
    void expect_alike(const std::vector<std::string>& all);
    void expect_effects(const Effects& effects);
    void bring_gradients();
    void sum_gradients();
    void bring_digits(std::span<ExactSum<S>> exact);
    void sum_digits(std::span<ExactSum<S>> exact);
    void join(Effects& effects);

    Processes& processes_;
    RanksOptions<S> options_;
    std::vector<Var<Array<S>>> parameters_;                // of the window that was opened or ended last
    std::map<const Optimizer<S>*, std::int64_t> windows_;  // whose is which, by the order of opening
    std::int64_t opened_ = 0;
    std::unique_ptr<detail::Bucket<S>> bucket_;
    std::unique_ptr<detail::Bucket<std::int64_t>> digits_;  // the same for exact sums
    detail::SharedSums<S> shared_;
    std::int64_t first_item_;
    std::string call_, where_;   // of the window's end
    std::vector<bool> arrived_;  // whether a gradient has reached the parameter, on any process
    bool known_ = false;         // to all others, what went wrong here
};

extern template class Ranks<float>;
extern template class Ranks<double>;

}  // namespace tally
