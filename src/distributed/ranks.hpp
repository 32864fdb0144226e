// DataParallel: one window over all processes.
//
//     ProcessGroup processes;
//     DataParallel<float> ranks(processes);
//     Window<float> window(optimizer, {.total = 64}, &ranks);
//     for (const Items& micro : ranks.share(split(batch, 8)))
//         window.add(mse(model(rows(x, micro)), rows(y, micro)));
//     window.finish();   // sums counts, losses and gradients of all, and steps on each of them alike
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tally/distributed/bucket.hpp"
#include "tally/distributed/processes.hpp"
#include "tally/distributed/shared_sums.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/gradient_reducer.hpp"
#include "tally/train/module.hpp"
#include "tally/train/window.hpp"

namespace tally {

// Options of DataParallel.
template <class S> struct DataParallelOptions {
    AllReduce reduce = AllReduce::rank_order;
    Module<S>* model = nullptr;                 // one that leaves effects, such as batch norm, must be told
    std::size_t bucket = std::size_t{1} << 20;  // so many numbers are summed at once
};

// What a window asks of all others. Micro-batches communicate nothing: the window's end does.
template <class S> class DataParallel : public detail::GradientReducer<S> {
public:
    explicit DataParallel(ProcessGroup& processes, DataParallelOptions<S> options = {});
    DataParallel(const DataParallel&) = delete;
    DataParallel& operator=(const DataParallel&) = delete;
    ~DataParallel() override;

    // This process's share of `parts`, neighbours of one another: another process may have one more, and some
    // may have none. What layers draw for their items is what one process alone would draw, so all micro-batches
    // of a window are shared by one call: it is an Error of begin_micro_batch() in micro-batches of a second one.
    std::vector<Items> share(const std::vector<Items>& parts) override;
    // If you cut in another way: the number of this process's first item in its windows. Without either,
    // each process draws for itself.
    void begin_at(std::int64_t item) {
        first_item_ = item;
        numbered_ = true;
        share_.reset();
        shared_parts_ = {};
    }

    // An Error that names the first parameter whose bits are not rank 0's, of those of the window that was
    // opened or ended last. Everybody calls it.
    void expect_same_weights();

    // The window of all processes as one file, which rank 0 writes, whole or not at all; everybody calls it.
    // `state`: what else the loop must know, the same everywhere. An Error is one on all processes.
    void save(const std::string& path, const Window<S>& window, TrainingState state = {});
    // Rank 0 reads it; all resume, or none, and get what else was saved. Between two windows any number of
    // processes resumes; in the middle of one as many as had saved it, each with what it had added.
    TrainingState load(const std::string& path, Window<S>& window);

    // ---- for the window ----
    bool is_main_process() const override { return processes_.rank() == 0; }
    using Named = typename detail::GradientReducer<S>::Named;
    void open(const Optimizer<S>& optimizer, const Named& options) override;
    detail::WindowTotals gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window,
                                const detail::WindowTotals& here, std::span<ExactSum<S>> exact) override;
    void reduce(SideEffects& effects, std::span<ExactSum<S>> exact) override;
    void barrier_before_step() override;
    void fail(const char* call, std::int64_t window, const std::string& why) noexcept override;
    std::int64_t first_item(const Optimizer<S>& optimizer, std::int64_t window) override;
    std::uint64_t rng_offset() const override {
        return numbered_ ? 0 : static_cast<std::uint64_t>(processes_.rank());
    }

    // Describes the last argument of share(), which must be the same on all processes.
    struct Parts {
        bool given = false;
        std::int64_t count = 0, items = 0;
        std::uint64_t checksum = 0;
        bool operator==(const Parts&) const = default;
    };

private:
    std::vector<std::string> all_gather(const std::string& what, const std::string& mine = "");
    void expect_equal(const std::string& call, const Named& lines, const std::string& mend = "");
    void expect_equal_apart(const std::string& call, const Named& lines);
    Named weights() const;
    void expect_alike(const std::vector<std::string>& all);
    void expect_same_written(const std::vector<std::string>& all);
    void expect_effects(const SideEffects& effects);
    void bring_gradients();
    void sum_gradients();
    void bring_digits(std::span<ExactSum<S>> exact);
    void sum_digits(std::span<ExactSum<S>> exact);
    void join(SideEffects& effects);

    ProcessGroup& processes_;
    DataParallelOptions<S> options_;
    std::vector<Var<Array<S>>> parameters_;  // of the window that was opened or ended last
    struct Opened {
        std::int64_t number = 0;                 // by the order of opening
        std::int64_t passed = -1;                // in this one of its windows there was a pass
        std::optional<std::int64_t> share = {};  // of this call of share()
    };
    std::map<const Optimizer<S>*, Opened> windows_;
    std::int64_t files_ = 0;  // saved or loaded, or tried
    std::unique_ptr<detail::Bucket<S>> bucket_;
    std::unique_ptr<detail::Bucket<std::int64_t>> digits_;  // the same for exact sums
    detail::SharedSums<S> shared_;
    std::int64_t first_item_ = 0, shares_ = 0;
    bool numbered_ = false;  // by share() or begin_at()
    Parts shared_parts_;
    std::optional<std::int64_t> share_;  // which call of share() has said where the items begin
    std::string call_, where_;           // of the window's end
    std::vector<bool> arrived_;          // whether a gradient has reached the parameter, on any process
    bool error_is_shared_ = false;       // to all others, what went wrong here
};

extern template class DataParallel<float>;
extern template class DataParallel<double>;

}  // namespace tally
