// A Window accumulates the gradients of all micro-batches of one update. Window::finish() divides the summed
// gradients by the count (if no total is set), updates the parameters once, and begins the next window.
//
//     Window<float> window(optimizer, {.micro_batches = 3});
//     for (const Items& micro : split(Items::in_order(6), 2))
//         window.add(mse(model(rows(x, micro), window.begin_micro_batch(2)), rows(target, micro)));
//     window.finish();   // divides, clips, sets the rate, steps, averages and applies side effects
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/array/deferred_weight_grad.hpp"
#include "tally/array/transpose_cache.hpp"
#include "tally/autograd/backward_check.hpp"
#include "tally/autograd/instances/core_ops.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/average.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/denominator.hpp"
#include "tally/train/exact_gradients.hpp"
#include "tally/train/gradient_reducer.hpp"
#include "tally/train/module.hpp"
#include "tally/train/noise.hpp"
#include "tally/train/optimizer.hpp"
#include "tally/train/parameter_lock.hpp"
#include "tally/train/schedule.hpp"

namespace tally {

// The option Tail decides what Window::finish() and Window::flush() do if micro-batches are missing.
enum class Tail {
    scale,  // update with the mean over the micro-batches that were added
    drop,   // make no update
    carry,  // keep the window open, so that the next epoch completes the window
};

// The option NonFinite decides what a Window does if a gradient or the loss is infinite or NaN.
enum class NonFinite {
    raise,  // throw an Error and update nothing; call discard() to continue
    // Ignore a micro-batch whose loss or gradients are infinite or NaN. On a GPU, each check waits for them.
    // If only the sum of all gradients is infinite or NaN, make no update.
    drop_micro,
    drop_window,  // make no update
};

// The option Sum decides how the gradients of micro-batches are added.
enum class Sum {
    running,  // round after each micro-batch, so that the result depends on the order
    // Round once after the last micro-batch. The sum then does not depend on the order of the micro-batches
    // or the number of processes. Exact sums cost memory and time on the host (training.md).
    exact,
};

namespace detail {
// Options of Window.
template <class S> struct WindowOptions {
    std::int64_t micro_batches = 0;  // the window is full after this number; if 0, the caller decides
    // `total` is the sum of all counts, if known before the first add(). Each backward() then starts from
    // loss / total. If `total` is 0, finish() divides the gradients once by the sum of the counts.
    double total = 0;
    Reduction reduction = Reduction::mean;  // with Reduction::sum, gradients are not divided
    Weigh weigh = Weigh::counted;  // whether counted terms (items, tokens) or micro-batches have equal weight
    Sum sum = Sum::running;
    Tail tail = Tail::scale;
    NonFinite non_finite = NonFinite::raise;
    std::optional<double> max_norm = {};    // for clip_grad_norm, after the division
    std::optional<double> max_value = {};   // for clip_grad_value, after the division
    std::optional<Schedule> schedule = {};  // maps the number of the update to the learning rate
    MovingAverage<S>* average = nullptr;    // of the parameters, updated after each step
    std::uint64_t seed = 0;  // the random numbers of a window depend on this seed and on updates()
    bool noise = false;      // estimate noise(), which reads the gradients once more in each window
};

// Options of Window::add.
struct MicroBatchOptions {
    double weight = 1;  // multiplies the weight of each item in this micro-batch
};

// WindowResult describes a finished window.
template <class S> struct WindowResult {
    bool stepped = false;
    std::int64_t micro_batches = 0, dropped = 0;
    double count = 0;                 // the denominator
    std::optional<double> norm = {};  // before clipping; only with max_norm
    Array<S> loss_sum = {};           // on the losses' device; reading the sum waits for a GPU
    Noise noise = {};                 // this window's estimate; only with Window::Options::noise
    double loss() const { return static_cast<double>(loss_sum.item()) / count; }
};
}  // namespace detail

// Call add() for each micro-batch, then finish() for the update.
template <class S> class Window {
public:
    using Result = detail::WindowResult<S>;
    using Options = detail::WindowOptions<S>;
    using AddOptions = detail::MicroBatchOptions;
    using Noise = detail::Noise;
    using V = Var<Array<S>>;

    // Throws if a parameter already has a gradient. If there is a reducer, the result of finish() covers all
    // processes. `compared_texts`, and all options except `micro_batches`, must be equal on all processes.
    Window(Optimizer<S>& optimizer, Options options = {}, detail::GradientReducer<S>* reducer = nullptr,
           typename detail::GradientReducer<S>::NamedTexts compared_texts = {});
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    ~Window();

    // Returns the micro-batches for this process. Without a reducer, returns `micro_batches`.
    std::vector<Items> share(const std::vector<Items>& micro_batches) {
        return reducer_ ? reducer_->share(micro_batches) : micro_batches;
    }
    // Calls backward() immediately, so that the graph is freed before the next forward pass. Until finish()
    // or discard(), other changes of the parameters or gradients throw an Error.
    void add(const Loss<Array<S>>& loss, const AddOptions& options = {});
    void add(const Loss<Array<S>>& loss, detail::Arithmetic auto) = delete;  // write {.weight = 2}
    // Rejects a mean at compile time, because a window needs the sum and the count of a loss.
    template <class NotALoss> void add(const Var<NotALoss>&, double = 1) {
        static_assert(!sizeof(NotALoss),
                      "window.add() requires a Loss, which contains its count: write "
                      "window.add(mse(y, target)) without .mean(), or window.add({sum, count})");
    }
    // Adds a term that does not depend on items, such as a penalty on the weights. After the division,
    // finish() adds the gradient of this term once.
    void add_regularizer(V term);
    // Counts a micro-batch for which the caller ran backward(). `counted` is the count of its loss, like
    // Loss::count. `items` is added to items(), unless begin_micro_batch() has given the number of items. Use
    // either add() or after_backward().
    void after_backward(double counted, std::int64_t items = 0);

    // Calls f, which adds one contribution in several passes: f calls add(), and then Window::backward() several
    // times. If other code has changed the parameters since the last micro-batch, throws before it calls f. If f
    // throws, the gradients stay incomplete, and only discard() is allowed.
    template <class F> void add_in_passes(F f) {
        lock_.require_unchanged("add_in_passes");
        mark_broken_on_error(f);
        lock_.snapshot();
    }
    // Calls f, which adds more gradients of the micro-batch that add() counted. Throws with Options::noise.
    template <class F> void backward(F f) {
        if (noise_estimator_) noise_estimator_->throw_noise_needs_single_backward();
        if (exact_) exact_->begin();
        allow_backward(f);
        unreached_ = unreached_ && !lock_.is_dirty();
        if (exact_) mark_broken_on_error([&] { exact_->add_gradients(); });
    }

    // Returns the context for the forward pass of the next micro-batch. Layers store changes such as new
    // running statistics in this context, and finish() applies these changes. A second call before add()
    // restarts the micro-batch. Afterwards add() rejects a loss that was recorded before the second call.
    [[nodiscard]] ForwardPass& begin_micro_batch(std::int64_t items);
    // Returns the context for a further part of the current micro-batch.
    [[nodiscard]] ForwardPass& begin_part(std::int64_t items);

    bool empty() const { return micro_batches_ == 0 && regularizers_.empty(); }
    bool full() const { return options_.micro_batches > 0 && micro_batches_ >= options_.micro_batches; }
    std::int64_t micro_batches() const { return micro_batches_; }
    std::int64_t planned_micro_batches() const { return options_.micro_batches; }
    void plan_micro_batches(std::int64_t micro_batches);  // also changes a window that is already open
    std::int64_t items() const { return items_; }         // given to begin_micro_batch() and after_backward()
    std::int64_t updates() const { return updates_; }
    Optimizer<S>& optimizer() const { return optimizer_; }
    const Options& options() const { return options_; }
    // Returns an estimate of how much the gradients of single items vary. The estimate uses all updates of
    // the training run, including updates before load(). Each update compares the norm of the first
    // micro-batch's gradient with the norm of the complete gradient. Throws without Window::Options::noise.
    const Noise& noise() const {
        if (!noise_estimator_) detail::throw_noise_not_estimated();
        return noise_estimator_->noise();
    }

    // Updates the parameters and begins the next window. If memory runs out, no parameter changes. Without
    // Options::total, options().tail decides what happens if planned micro-batches are missing. With a total,
    // throws if the counts do not add up to the total, unless a micro-batch was dropped.
    Result finish() { return end_window("finish", false); }
    // Call flush() at the end of an epoch. Does nothing if the window is empty() on every process. Otherwise
    // works like finish(), except that options().tail decides what happens if the counts are below a total.
    Result flush() { return !empty() || broken_ || reducer_ ? end_window("flush", true) : Result(); }
    void discard();  // begins the next window without an update

    // Saves parameters, gradients, optimizer, average and counts, even in the middle of a window. A resumed
    // run computes the same bits. If `model` is given, also saves its buffers and side effects.
    void save(TrainingState& state, const std::string& prefix, Module<S>* model = nullptr) const;
    // Throws and changes nothing if an option differs, a number is out of range, an entry is missing or
    // unknown, or memory runs out. Compares schedules at the past updates 0, 1, 2, 4, 8, … and at the last.
    void load(const TrainingState& state, const std::string& prefix, Module<S>* model = nullptr) {
        validate_state(state, prefix, model, options_.micro_batches)();
    }
    // ---- for the engine ----
    // Checks the state like load(), and returns a function that applies the state. If `planned` has a value,
    // the saved window must have this planned number of micro-batches.
    detail::ApplyState validate_state(const TrainingState& state, const std::string& prefix, Module<S>* model,
                                      std::optional<std::int64_t> planned);

private:
    const std::vector<V>& parameters() const { return optimizer_.parameters(); }
    template <class F> void mark_broken_on_error(F f) {
        try {
            f();
        } catch (...) {
            broken_ = true;
            throw;
        }
    }
    template <class F> void allow_backward(F f) {
        const detail::UnlockScope unlock(grad_flag::backward_locked);
        const detail::UseTransposeCache<S> use_cache(transpose_cache_);
        // drop_micro, observers and backward checks read the gradients after each micro-batch.
        const detail::DeferProductScope defer(options_.non_finite != NonFinite::drop_micro &&
                                              !instrumentation::detail::observer && !instrumentation::checks);
        f();
    }
    template <class F> void allow_changes(F f) {
        const detail::UnlockScope unlock(grad_flag::locked | grad_flag::backward_locked);
        f();
    }
    void end_micro_batch();
    void require_no_gradients() const;
    void require_not_broken(const char* call) const;
    // Throws if add() and after_backward() are mixed in one window.
    void require_same_way_to_add(const char* call, typename detail::ParameterLock<S>::Mode way) const;
    void require_not_full(const char* call) const;
    void require_current_micro_batch(const V& sum) const;  // throws for a loss of an earlier forward pass
    void require_forward_pass() const;
    const std::vector<V>& parameters_of_average() const;  // of options_.average, or none
    static void require_valid_bound(const char* option, std::optional<double> bound);
    Result end_window(const char* call, bool end_of_epoch);
    Result try_end_window(const char* call, bool end_of_epoch);
    detail::WindowTotals totals(const char* call);
    std::span<detail::ExactSum<S>> exact_sums() {
        return exact_ ? exact_->sums() : std::span<detail::ExactSum<S>>();
    }
    void reduce();
    typename detail::GradientReducer<S>::NamedTexts options_as_text(bool with_noise = false) const;
    void back_up_gradients();
    bool drop_if_not_finite(const V& sum);
    void count(const Loss<Array<S>>& contribution, double item_weight);
    bool is_ready_for_update(const char* call, const detail::WindowTotals& all, bool end_of_epoch) const;
    void require_valid_loss(const Loss<Array<S>>& loss, double weight) const;
    void require_valid_count(const char* call, double counted) const;  // throws if negative or not finite
    void require_ready_for_after_backward(double counted) const;       // throws if no backward() ran
    // Throws if an option needs the gradients of the stages of several processes, and no reducer combines them.
    void require_all_stages() const;
    void require_can_count_batch(double counted, std::int64_t items) const;  // checks options and numbers
    void require_after_backward_called(const char* call) const;   // throws if a backward() was not counted
    void require_a_gradient(const char* call) const;              // throws if no parameter has a gradient
    void require_loss_reached_parameter(const char* call) const;  // throws if the last loss reached none
    std::uint64_t window_seed() const;
    void update(const char* call, Result& result, const detail::WindowTotals& all);
    void step(Result& result, const detail::WindowTotals& all);
    bool clip_if_finite(Result& result);
    std::string describe_non_finite(const Result& result) const;
    void drop_or_raise(const char* call, Result& result) const;
    void reset();

    Optimizer<S>& optimizer_;
    Options options_;
    detail::GradientReducer<S>* reducer_;
    std::int64_t micro_batches_ = 0, dropped_ = 0, updates_ = 0, items_ = 0;
    std::int64_t window_index_ = 0;  // the number of previous windows, including discarded windows
    V zero_, loss_sum_;  // on the parameters' device, so that adding a loss does not wait for a GPU
    detail::Denominator<S> denominator_;
    std::optional<detail::ExactGradients<S>> exact_;                 // only with Sum::exact
    std::optional<detail::NoiseScaleEstimator<S>> noise_estimator_;  // only with Options::noise
    std::shared_ptr<const void> average_in_use_;  // tells options.average that a window updates the average
    std::vector<V> regularizers_;
    detail::ParameterLock<S> lock_;
    detail::TransposeCache<S> transpose_cache_;  // valid until the weights change
    ForwardPass forward_pass_;
    std::optional<std::int64_t> pending_items_;  // of the micro-batch that began and is not added yet
    bool unreached_ = false;                     // the last loss changed no gradient of a parameter
    std::int64_t regularizer_added_at_ = 0;      // micro_batches_ at the first add_regularizer()
    bool uses_forward_pass_ = false;             // a micro-batch of this window used begin_micro_batch()
    std::uint64_t min_loss_id_ = 0;  // a loss with a smaller node id belongs to an earlier forward pass
    detail::SideEffects effects_;    // of the micro-batches that were added
    std::vector<Array<S>> gradient_backup_;  // the gradients before this micro-batch, for drop_micro
    std::vector<bool> had_gradient_;
    bool broken_ = false;         // an error left the gradients unfinished
    mutable bool saved_ = false;  // save() ran after the last micro-batch
    // An exception is unwinding the stack if std::uncaught_exceptions() exceeds this number.
    int exceptions_at_open_ = std::uncaught_exceptions();
};

extern template class Window<float>;
extern template class Window<double>;

}  // namespace tally
