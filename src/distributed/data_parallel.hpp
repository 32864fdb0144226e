// A `DataParallel` sums the gradients of all processes before each update, so that all processes make the
// same update.
//
//     ProcessGroup processes;
//     DataParallel<float> ranks(processes);
//     Window<float> window(optimizer, {.total = 64}, &ranks);
//     for (const Items& micro : ranks.share(split(batch, 8)))
//         window.add(mse(model(rows(x, micro)), rows(y, micro)));
//     window.finish();   // sums the counts, losses and gradients of all processes, then updates
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

namespace detail {
// Options of DataParallel.
template <class S> struct DataParallelOptions {
    ProcessGroup::AllReduce reduce = ProcessGroup::AllReduce::rank_order;
    Module<S>* model = nullptr;                 // required if the model has side effects, as batch norm has
    std::size_t bucket = std::size_t{1} << 20;  // the most numbers that are summed at once
};
}  // namespace detail

// A `DataParallel` is a `GradientReducer` for processes that compute parts of the same update. The processes
// communicate when a Window is constructed and at the end of each update, but not between micro-batches.
template <class S> class DataParallel : public detail::GradientReducer<S> {
public:
    using Options = detail::DataParallelOptions<S>;
    explicit DataParallel(ProcessGroup& processes, Options options = {});
    DataParallel(const DataParallel&) = delete;
    DataParallel& operator=(const DataParallel&) = delete;
    ~DataParallel() override;

    // Returns the consecutive micro-batches that this process computes. The numbers of micro-batches of two
    // processes differ by at most 1. Layers draw the same random numbers for an item as in a single process.
    // Pass all micro-batches in one call. begin_micro_batch() throws after a second call for the same update.
    std::vector<Items> share(const std::vector<Items>& micro_batches) override;
    // Call begin_at() instead of share() if you distribute items yourself. `item` is the index of the first
    // item of this process in the update. Without share() and begin_at(), processes draw different numbers.
    void begin_at(std::int64_t item) {
        first_item_ = item;
        numbered_ = true;
        latest_share_number_.reset();
        last_micro_batches_ = {};
    }

    // Throws on all processes if a parameter of the last `Window` differs between a process and rank 0. Every
    // process must call require_same_weights().
    void require_same_weights();

    // Saves the windows of all processes in one file, which rank 0 writes atomically. `state` has further
    // values of the loop, and is equal on all processes. If one process fails, all processes throw.
    void save(const std::string& path, const Window<S>& window, TrainingState state = {});
    // Loads a file that save() has written, and returns the saved `state`. After an error on one process, all
    // processes throw and change nothing. A file saved during an update must be loaded by the same number of
    // processes, and other files by any number.
    TrainingState load(const std::string& path, Window<S>& window);

    // ---- for the window ----
    bool writes_files() const override { return processes_.rank() == 0; }
    using NamedTexts = typename detail::GradientReducer<S>::NamedTexts;
    void open(const Optimizer<S>& optimizer, const NamedTexts& options) override;
    detail::WindowTotals gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window_index,
                                const detail::WindowTotals& here,
                                std::span<detail::ExactSum<S>> exact) override;
    void reduce(detail::SideEffects& effects, std::span<detail::ExactSum<S>> exact) override;
    void barrier_before_step() override;
    void report_failure(const char* call, std::int64_t window_index,
                        const std::string& why) noexcept override;
    std::int64_t first_item(const Optimizer<S>& optimizer, std::int64_t window_index) override;
    std::uint64_t rng_offset() const override {  // 0 if items are numbered over all processes
        return numbered_ ? 0 : static_cast<std::uint64_t>(processes_.rank());
    }

    // Describes the argument of the latest call of share(), which must be equal on all processes.
    struct MicroBatchesSummary {
        bool given = false;
        std::int64_t count = 0, items = 0;
        std::uint64_t checksum = 0;
        bool operator==(const MicroBatchesSummary&) const = default;
    };

private:
    std::vector<std::string> all_gather(const std::string& what, const std::string& mine = "");
    void require_equal(const std::string& what, const NamedTexts& texts,
                       const std::string& advice = "; make them equal on all processes");
    // After an error, resets must_not_report_, because this error is not passed to report_failure().
    void require_equal_and_allow_reports(const std::string& what, const NamedTexts& texts);
    NamedTexts checksums() const;
    void require_equal_totals(const std::vector<std::string>& all);
    void require_equal_written_weights(const std::vector<std::string>& all);
    void prepare_gradients();
    void sum_gradients();
    void prepare_digits(std::span<detail::ExactSum<S>> exact);
    void sum_digits(std::span<detail::ExactSum<S>> exact);
    void merge_effects(detail::SideEffects& effects);

    ProcessGroup& processes_;
    Options options_;
    std::vector<Var<Array<S>>> parameters_;  // of the Window that was constructed or ended an update last
    struct WindowRecord {
        // Index of the Window in the order of construction. In contrast, window_index counts the finished and
        // discarded windows of one Window object.
        std::int64_t construction_index = 0;
        std::int64_t share_number_window_index =
            -1;  // the window_index for which share_number was stored, or -1
        std::optional<std::int64_t> share_number = {};  // of the call of share() that numbers the items
    };
    std::map<const Optimizer<S>*, WindowRecord> windows_;
    std::int64_t file_count_ = 0;  // number of calls of save() and load(), including failed calls
    std::unique_ptr<detail::Bucket<S>> bucket_;
    std::unique_ptr<detail::Bucket<std::int64_t>> digits_;  // for exact sums
    detail::SharedSums<S> exact_sums_;
    std::int64_t first_item_ = 0, share_count_ = 0;
    bool numbered_ = false;  // share() or begin_at() has set first_item_
    MicroBatchesSummary last_micro_batches_;
    std::optional<std::int64_t> latest_share_number_;  // the call that set first_item_; none after begin_at()
    // The current call of the window, and how far this process is. all_gather(what) sends what + call_ as the name
    // of the collective call, and adds where_ to errors.
    std::string call_, where_;
    std::vector<bool> any_rank_has_gradient_;  // for each parameter, whether any process has a gradient
    bool must_not_report_ = false;             // all processes get the error, or no report is possible
};

extern template class DataParallel<float>;
extern template class DataParallel<double>;

}  // namespace tally
