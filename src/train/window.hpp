// A window: the micro-batches behind one update. It owns the one denominator, and finish() is the only gate
// between gradients and parameters.
//
//     Window<float> window(optimizer, {.micro_batches = 3, .total = 6});
//     for (const Items& micro : split(in_order(6), 2))
//         window.add(mse(model(rows(x, micro), window.begin_micro_batch(2)), rows(target, micro)));
//     window.finish();   // normalise, clip, set the rate, step, average, effects: each once
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

// What becomes of a window that an epoch leaves with fewer micro-batches, or a smaller count, than planned.
enum class Tail {
    scale,  // divided by what has come: the mean over these, and an update like any other
    drop,   // no update
    carry,  // it stays open, and the next epoch fills it
};

// What becomes of gradients that are infinite or NaN.
enum class NonFinite {
    raise,  // an Error; nothing is updated, and discard() is the way on
    // That micro-batch counts for nothing. Looked for after each, so the host waits for a GPU. Where only the
    // sum is so, the window is dropped.
    drop_micro,
    drop_window,  // no update
};

// How the gradients of micro-batches are added up.
enum class Sum {
    running,  // each is added to the sum of those before, and rounded there: the order counts
    // None is rounded before all have come, so that neither order nor who added which changes a bit: each
    // micro-batch's gradient is computed apart. It takes more memory and time, and the host's (training.md).
    exact,
};

// Options of Window.
template <class S> struct WindowOptions {
    std::int64_t micro_batches = 0;  // when it is full; 0: when you say so
    // The denominator, if it is known beforehand: each micro-loss is then divided by it as it is recorded. 0:
    // it is found at the end, by one division.
    double total = 0;
    Reduction reduction = Reduction::mean;
    Weigh weigh = Weigh::counted;
    Sum sum = Sum::running;
    Tail tail = Tail::scale;
    NonFinite non_finite = NonFinite::raise;
    std::optional<double> max_norm = {};    // clip_grad_norm of the normalised gradient
    std::optional<double> max_value = {};   // clip_grad_value of it
    std::optional<Schedule> schedule = {};  // of the learning rate, by the number of the update
    MovingAverage<S>* average = nullptr;
    std::uint64_t seed = 0;  // of what is random in the model; each window has its own randomness
    bool noise = false;      // noise() is estimated: one more look at the gradients in each window
};

// Options of Window::add.
struct MicroBatchOptions {
    double weight = 1;  // multiplies the weight of each item in this micro-batch
};

// What a finished window was.
template <class S> struct UpdateResult {
    bool stepped = false;
    std::int64_t micro_batches = 0, dropped = 0;
    double count = 0;                 // the denominator
    std::optional<double> norm = {};  // before clipping, where max_norm is set
    Array<S> sum = {};                // of the losses, where they are; reading it waits for a GPU
    Noise noise = {};                 // this window's estimate, where it is asked for
    double loss() const { return static_cast<double>(sum.item()) / count; }
};

// The micro-batches of one update: add() each, finish() steps.
template <class S> class Window {
public:
    using V = Var<Array<S>>;

    // Opens it: an Error when a gradient has reached one of the parameters already. Shared `across` processes
    // its counts, losses and gradients are those of all, a total too; micro-batches are planned by each.
    // `also`: what else must be the same on all of them, by its name.
    Window(Optimizer<S>& optimizer, WindowOptions<S> options = {},
           detail::GradientReducer<S>* across = nullptr,
           typename detail::GradientReducer<S>::Named also = {});
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    ~Window();

    // Of a window's micro-batches those that are to be computed here: all, unless others share the window.
    std::vector<Items> share(const std::vector<Items>& parts) {
        return across_ ? across_->share(parts) : parts;
    }
    // Goes backward through a micro-batch's loss, at once, so that its graph is gone when the next one comes.
    // From the first one on the window alone changes its
    // parameters and their gradients: what others try is an Error, until finish() or discard().
    void add(const Loss<Array<S>>& loss, const MicroBatchOptions& options = {});
    void add(const Loss<Array<S>>& loss, detail::BoolOrNumberLiteral auto) = delete;  // write {.weight = 2}
    // A mean does not say of how many.
    template <class NotALoss> void add(const Var<NotALoss>&, double = 1) {
        static_assert(!sizeof(NotALoss),
                      "window.add() wants the loss itself, which knows its count: write "
                      "window.add(mse(y, target)) without .mean(), or window.add({sum, count})");
    }
    // A term that belongs to the update, not to its items, such as a penalty on the weights: counted once.
    void add_regularizer(V term);
    // Somebody else went backward through a micro-batch, whose loss counts so much. In one window all
    // micro-batches come by add(), or all so.
    void after_backward(double count, std::int64_t items = 0);

    // What f does makes sense as a whole only: after an error in it the window can but be discarded.
    template <class F> void transaction(F f) {
        lock_.require_unchanged("transaction");
        mark_broken_on_error(f);
        lock_.snapshot();
    }
    // The rest of a micro-batch that has been added: goes backward into what the window holds.
    template <class F> void backward(F f) {
        if (meter_) meter_->refuse_rest();
        if (exact_) exact_->begin();
        allow_backward(f);
        unreached_ = unreached_ && !lock_.is_dirty();
        if (exact_) mark_broken_on_error([&] { exact_->take_in(); });
    }

    // What the model is told about the next micro-batch, which has so many items; what its layers leave there
    // happens when the window finishes. Until its loss is added nothing has happened: another begin_micro_batch() begins
    // where this one did, and a loss that is older than the last begin_micro_batch() is refused.
    [[nodiscard]] ForwardPass& begin_micro_batch(std::int64_t items);
    // Of one micro-batch whose items go forward in parts: the next part, after begin_micro_batch().
    [[nodiscard]] ForwardPass& begin_part(std::int64_t items);

    bool empty() const { return micro_batches_ == 0 && regularizers_.empty(); }
    bool full() const { return options_.micro_batches > 0 && micro_batches_ >= options_.micro_batches; }
    std::int64_t micro_batches() const { return micro_batches_; }
    std::int64_t planned_micro_batches() const { return options_.micro_batches; }
    void plan_micro_batches(
        std::int64_t micro_batches);  // from now on; also of a window that is carried into this epoch
    std::int64_t items() const { return items_; }  // that passes and after_backward() told of
    std::int64_t updates() const { return updates_; }
    Optimizer<S>& optimizer() const { return optimizer_; }
    const WindowOptions<S>& options() const { return options_; }
    // How far the gradients of single items scatter, by all updates so far, saved and loaded ones too: from the
    // norm of the first micro-batch's gradient and that of the whole. An Error where it is not asked for.
    const Noise& noise() const {
        if (!meter_) detail::throw_noise_not_estimated();
        return meter_->noise();
    }

    // The gate; afterwards the next window is open. Where the window is not full, its tail policy decides.
    // All memory is had before the first parameter changes: where it runs out, nothing was updated. A total
    // that was announced and has not come is an Error.
    UpdateResult<S> finish() { return close("finish", false); }
    // At the end of an epoch: the same, if anything has come; the tail policy decides about a total, too.
    UpdateResult<S> flush() {
        return !empty() || broken_ || across_ ? close("flush", true) : UpdateResult<S>();
    }
    void discard();  // no update; the next window is open

    // With parameters, gradients, optimizer, average and all that has been counted, and of a model that is
    // given also its buffers and the effects that have not happened yet: resuming in mid-window gives the
    // same bits as going on. What does not fit is not loaded and changes nothing: other options, each by its
    // name, an absurd number, an entry that is missing or that nothing here takes; also where memory runs
    // out. A schedule is compared where it has been asked already.
    void save(TrainingState& state, const std::string& under, Module<S>* model = nullptr) const;
    void load(const TrainingState& state, const std::string& under, Module<S>* model = nullptr) {
        validate_state(state, under, model, options_.micro_batches)();
    }
    // `planned`: the number of micro-batches that it must have been saved with, if that matters.
    detail::ApplyState validate_state(const TrainingState& state, const std::string& under, Module<S>* model,
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
        const detail::UnlockScope into(grad_flag::backward_locked);
        const detail::UseTransposeCache<S> turning(transpose_cache_);
        const detail::DeferRowsScope waiting(options_.non_finite != NonFinite::drop_micro &&
                                             !watching::detail::observer && !watching::checks);
        f();
    }
    template <class F> void allow_changes(F f) {
        const detail::UnlockScope change(grad_flag::locked | grad_flag::backward_locked);
        f();
    }
    void end_micro_batch();
    void expect_untouched() const;
    void require_not_broken(const char* what) const;
    void require_same_mode(const char* what, typename detail::ParameterLock<S>::Mode mode) const;
    void expect_not_full(const char* what) const;
    void expect_own_pass(const V& sum) const;
    void expect_pass() const;
    const std::vector<V>& averaged() const;  // the parameters of the average
    static void expect_bound(const char* option, std::optional<double> bound);
    UpdateResult<S> close(const char* what, bool tail);
    UpdateResult<S> try_close(const char* what, bool tail);
    detail::WindowTotals totals(const char* what);
    std::span<ExactSum<S>> exact_sums() {
        if (!exact_) return {};
        return exact_->sums();
    }
    void reduce();
    typename detail::GradientReducer<S>::Named options_as_text(
        bool shared = false) const;  // what decides it, in words
    void remember();
    bool dropped(const V& sum);
    void count(const Loss<Array<S>>& share, double each);
    bool complete(const detail::WindowTotals& all, bool tail) const;
    void expect_loss(const Loss<Array<S>>& loss, double weight) const;
    void expect_count(const char* what, double counted) const;
    void expect_a_backward(double counted) const;
    void expect_all_stages() const;
    void expect_countable(double counted, std::int64_t items) const;
    void require_loss_added(const char* what) const;
    void expect_gradients(const char* what) const;
    void expect_reached(const char* what) const;
    std::uint64_t seed() const;  // of what is random in this window
    void update(UpdateResult<S>& done, const detail::WindowTotals& all);
    void step(UpdateResult<S>& done, const detail::WindowTotals& all);
    bool finite_after_clipping(UpdateResult<S>& done);
    std::string not_finite(const UpdateResult<S>& done) const;
    void drop_or_raise(UpdateResult<S>& done) const;
    void reset();

    Optimizer<S>& optimizer_;
    WindowOptions<S> options_;
    detail::GradientReducer<S>* across_;
    std::int64_t micro_batches_ = 0, dropped_ = 0, updates_ = 0, items_ = 0;
    std::int64_t window_index_ = 0;  // windows before this one, finished or not
    V zero_, sum_;                   // on the parameters' device, so that adding to it makes nobody wait
    detail::Denominator<S> denominator_;
    std::optional<detail::ExactGradients<S>> exact_;       // Sum::exact
    std::optional<detail::NoiseScaleEstimator<S>> meter_;  // noise
    std::shared_ptr<const void> average_in_use_;           // average, while this window updates it
    std::vector<V> regularizers_;
    detail::ParameterLock<S> lock_;
    detail::TransposeCache<S> transpose_cache_;  // until the weights step
    ForwardPass pass_;                           // of the micro-batch that is on its way
    std::optional<std::int64_t> pending_items_;  // its items, until its loss is added
    bool unreached_ = false;                     // the last loss has reached no parameter
    std::int64_t regularizer_added_at_ = 0;      // micro-batches when add_regularizer() was first called
    bool passed_ = false;                        // a micro-batch of this window has had a pass
    std::uint64_t min_loss_id_ = 0;  // a loss from before is not of this pass, or not of this window
    SideEffects effects_;            // of those that have come
    std::vector<Array<S>> before_;   // drop_micro of a running sum: that before this micro-batch
    std::vector<bool> before_there_;
    bool broken_ = false;         // something threw after gradients had changed
    mutable bool saved_ = false;  // since the last micro-batch
    int exceptions_ = std::uncaught_exceptions();
};

extern template class Window<float>;
extern template class Window<double>;

}  // namespace tally
