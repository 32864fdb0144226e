// Accumulates the gradients of micro-batches and updates the parameters once.
#include "tally/train/window.hpp"

#include <algorithm>
#include <cmath>

#include "tally/autograd/ops/elementwise.hpp"
#include "tally/base/random.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/state_reader.hpp"

namespace tally {

namespace {

template <class S> Var<Array<S>> scalar(double value, Device device) {
    return Array<S>::full({}, static_cast<S>(value), device);
}

template <class S> Device device_of(const Optimizer<S>& optimizer) {
    return optimizer.parameters()[0].value().device();
}

// Copies a variable without checking the thread, because a different thread may discard a window.
template <class S> Var<Array<S>> unchecked_copy(const Var<Array<S>>& constant) {
    ++constant.node()->handles;
    return Var<Array<S>>(constant.node());
}

// The caller must have an UnlockScope, because the parameters are locked.
template <class S> void set_gradient(const Var<Array<S>>& parameter, const Array<S>& gradient) {
    parameter.zero_grad();
    accumulate_into(parameter.node()->into(), gradient);
    detail::account_as(parameter.node()->gradient, MemoryClass::gradient);
}

}  // namespace

template <class S> Window<S>::Window(Optimizer<S>& optimizer, detail::WindowOptions<S> options,
                                     detail::GradientReducer<S>* reducer,
                                     typename detail::GradientReducer<S>::NamedTexts compared_texts)
    : optimizer_(optimizer),
      options_(std::move(options)),
      reducer_(reducer),
      zero_(scalar<S>(0, device_of(optimizer))),
      denominator_(options_.reduction, options_.weigh, options_.total, device_of(optimizer)),
      lock_(optimizer.parameters()) {
    plan_micro_batches(options_.micro_batches);
    require_valid_bound("max_norm", options_.max_norm);
    require_valid_bound("max_value", options_.max_value);
    if (options_.average) average_in_use_ = options_.average->use(optimizer.parameters());
    optimizer_.note_variables(parameters_of_average());
    if (!(options_.total >= 0) || std::isinf(options_.total))
        throw Error("[window] the option total cannot be " + detail::to_text(options_.total));
    if (options_.reduction == Reduction::sum && options_.total > 0)
        throw Error("[window] Reduction::sum does not divide the gradients; leave out the total " +
                    detail::to_text(options_.total));
    optimizer_.require_finished();
    require_no_gradients();
    if (options_.sum == Sum::exact)
        exact_.emplace(parameters());
    else if (options_.non_finite == NonFinite::drop_micro)
        for (const V& parameter : parameters())
            gradient_backup_.push_back(Array<S>::empty_like(parameter.value()));
    had_gradient_.resize(gradient_backup_.size());
    if (options_.noise) noise_estimator_.emplace(parameters(), options_.total, zero_);
    reset();
    window_index_ = 0;
    if (!reducer_) return;
    auto texts = options_as_text(true);
    texts.insert(texts.end(), compared_texts.begin(), compared_texts.end());
    reducer_->open(optimizer_, texts);
    lock_.note_values();
}

template <class S> void Window<S>::require_valid_bound(const char* option, std::optional<double> bound) {
    require(!bound || *bound >= 0, "window", std::string(option) + " must be at least 0", bound.value_or(0));
}

template <class S> const std::vector<Var<Array<S>>>& Window<S>::parameters_of_average() const {
    static const std::vector<V> none;
    return options_.average ? options_.average->parameters_ : none;
}

template <class S> void Window<S>::plan_micro_batches(std::int64_t micro_batches) {
    if (micro_batches < 0)
        throw Error("[window] cannot hold " + std::to_string(micro_batches) + " micro-batches");
    options_.micro_batches = micro_batches;
}

template <class S> Window<S>::~Window() {
    if (!lock_.on()) return;
    if (!saved_ && !broken_ && std::uncaught_exceptions() <= exceptions_at_open_)
        optimizer_.unfinished(micro_batches_);
    lock_.clear_gradients();
    lock_.release();
}

template <class S> void Window<S>::require_no_gradients() const {
    for (std::size_t i = 0; i < parameters().size(); ++i) {
        const std::uint8_t grad_flags = parameters()[i].node()->grad_flags;
        if (grad_flags & grad_flag::holds_average) detail::throw_holds_average("window", i);
        if (!(grad_flags & (grad_flag::locked | grad_flag::present))) continue;
        const std::string which = std::to_string(i) + " of " + to_string(parameters()[i].shape());
        if (grad_flags & grad_flag::locked)
            throw Error("[window] parameter " + which +
                        " belongs to another window with micro-batches; finish() or discard() that window");
        if (parameters()[i].has_grad())
            throw Error("[window] parameter " + which +
                        " has a gradient before the first micro-batch; call zero_grad() first");
    }
}

template <class S> void Window<S>::require_not_broken(const char* call) const {
    if (detail::context.backward_passes) detail::throw_during_backward(call);
    if (broken_)
        throw Error(std::string("[window] ") + call +
                    ": after an error the gradients are incomplete; discard() the window and start again");
}

template <class S>
void Window<S>::require_same_way_to_add(const char* call, typename detail::ParameterLock<S>::Mode way) const {
    if (lock_.on() && lock_.mode() != way)
        throw Error(std::string("[window] ") + call + ": the previous micro-batches used " +
                    (way == detail::ParameterLock<S>::Mode::internal ? "after_backward()" : "add()") +
                    "; in one window, use either add() or after_backward()");
}

template <class S> void Window<S>::require_not_full(const char* call) const {
    if (full())
        throw Error(std::string("[window] ") + call + ": the window already has all " +
                    std::to_string(micro_batches_) + " micro-batches; call finish() first");
    require_loss_reached_parameter(call);
    lock_.require_unchanged(call);
}

template <class S> void Window<S>::require_current_micro_batch(const V& sum) const {
    const Node& node = sum.node_or_throw("add");
    if (node.thread_id == detail::this_thread_id() && node.id < min_loss_id_)
        throw Error(
            "[window] add: this loss was recorded before the last begin_micro_batch() began, or in a window "
            "that is over; add() each micro-batch's loss before the next begin_micro_batch()");
    if (uses_forward_pass_ && !pending_items_)
        throw Error(
            "[window] add: begin_micro_batch() was not called for this micro-batch; call "
            "begin_micro_batch() before each forward pass");
    detail::require_made_in_pass("[window] add", node);
}

template <class S> void Window<S>::require_forward_pass() const {
    if (!detail::called_without_pass) return;
    throw Error(std::string("[window] after_backward: ") + detail::called_without_pass +
                " was called without a pass, so it did not train; write model(x, "
                "window.begin_micro_batch(items)) for each "
                "micro-batch, or make evaluation explicit: ForwardPass evaluation; model(x, evaluation)");
}

template <class S> void Window<S>::add(const Loss<Array<S>>& loss, const detail::MicroBatchOptions& options) {
    const double weight = options.weight;
    require_valid_loss(loss, weight);
    const Loss<Array<S>> contribution = denominator_.contribution(loss, weight);
    back_up_gradients();
    mark_broken_on_error([&] {
        if (!lock_.on()) lock_.lock(detail::ParameterLock<S>::Mode::internal);
        if (exact_) exact_->begin();
        allow_backward([&] { denominator_.divided(contribution.sum).backward(); });
        unreached_ = !lock_.is_dirty();
        ++micro_batches_;
        if (drop_if_not_finite(contribution.sum))
            forward_pass_.effects = {};
        else
            count(contribution, denominator_.item_weight(loss, weight));
        end_micro_batch();
    });
}

// Throws if the last loss changed no gradient, because the loss would be counted without a gradient.
template <class S> void Window<S>::require_loss_reached_parameter(const char* call) const {
    if (unreached_)
        throw Error(std::string("[window] ") + call + ": the loss of micro-batch " +
                    std::to_string(micro_batches_) + " has reached none of the " +
                    std::to_string(parameters().size()) +
                    " parameters; discard() the window, and add a loss of this model");
}

template <class S> void Window<S>::require_valid_loss(const Loss<Array<S>>& loss, double weight) const {
    require_not_broken("add");
    require_same_way_to_add("add", detail::ParameterLock<S>::Mode::internal);
    require_not_full("add");
    if (!std::isfinite(weight) || weight < 0)
        throw Error("[window] add: a micro-batch cannot have the weight " + detail::to_text(weight));
    require_current_micro_batch(loss.sum);
    if (loss.count.value().device() == Device::cpu)
        require_valid_count("add", static_cast<double>(loss.count.item()));
    if (!loss.sum.requires_grad())
        throw Error(
            "[window] add: the loss depends on no parameter; was it made inside NoGrad, or detached?");
    if (lock_.on()) return;
    optimizer_.require_finished();
    require_no_gradients();
}

template <class S> void Window<S>::end_micro_batch() {
    items_ += pending_items_.value_or(0);
    detail::called_without_pass = nullptr;
    uses_forward_pass_ = uses_forward_pass_ || pending_items_;
    pending_items_.reset();
    saved_ = false;
    lock_.snapshot();
}

template <class S> void Window<S>::add_regularizer(V term) {
    require_not_broken("add_regularizer");
    if (regularizers_.empty()) regularizer_added_at_ = micro_batches_;
    if (regularizer_added_at_ != micro_batches_)
        throw Error("[window] add_regularizer: called after " + std::to_string(regularizer_added_at_) +
                    " micro-batches and again after " + std::to_string(micro_batches_) +
                    ", so the update would count the term once for each micro-batch; call add_regularizer() "
                    "at one place, outside the loop over the micro-batches");
    regularizers_.push_back(std::move(term));
}

template <class S> void Window<S>::after_backward(double counted, std::int64_t items) {
    require_ready_for_after_backward(counted);
    mark_broken_on_error([&] {  // an error cannot remove the gradient of this micro-batch
        require_can_count_batch(counted, items);
        if (!lock_.on()) lock_.lock(detail::ParameterLock<S>::Mode::external);
        if (!pending_items_) items_ += items;
        ++micro_batches_;
        count({zero_, scalar<S>(counted, zero_.value().device())}, 1);
        end_micro_batch();
    });
}

template <class S> void Window<S>::require_ready_for_after_backward(double counted) const {
    require_not_broken("after_backward");
    require_same_way_to_add("after_backward", detail::ParameterLock<S>::Mode::external);
    require_forward_pass();
    if (!lock_.is_dirty() && counted > 0)
        throw Error(
            "[window] after_backward: no gradient has arrived since the last micro-batch; "
            "call backward() first");
    require_all_stages();
}

template <class S> void Window<S>::require_all_stages() const {
    const int processes = detail::pipe_processes;
    if (reducer_ || processes < 2) return;
    std::string option;
    if (options_.max_norm)
        option = "max_norm " + detail::to_text(*options_.max_norm);
    else if (options_.max_value)
        option = "max_value " + detail::to_text(*options_.max_value);
    else if (options_.non_finite != NonFinite::raise)
        option = "a non_finite policy other than raise";
    else
        return;
    throw Error("[window] after_backward: " + option + " needs the gradients of all " +
                std::to_string(processes) +
                " processes of the pipe; pass PipelineParallel(processes) to the window");
}

template <class S> void Window<S>::require_can_count_batch(double counted, std::int64_t items) const {
    require_not_full("after_backward");
    if (options_.non_finite == NonFinite::drop_micro)
        throw Error(
            "[window] after_backward: NonFinite::drop_micro works only with add(); use add() or another "
            "policy");
    if (options_.sum == Sum::exact)
        throw Error(
            "[window] after_backward: Sum::exact needs each micro-batch's gradient separately, so the window "
            "must run backward() itself; use add(), or Sum::running");
    if (!std::isfinite(counted) || counted < 0)
        throw Error("[window] after_backward: the count of losses cannot be " + detail::to_text(counted));
    if (items < 0) throw Error("[window] after_backward: the item count cannot be " + std::to_string(items));
}

template <class S> std::uint64_t Window<S>::window_seed() const {
    const auto words = random::detail::words(options_.seed, reducer_ ? reducer_->rng_offset() : 0,
                                             static_cast<std::uint64_t>(updates_));
    return random::detail::join(words[0], words[1]);
}

template <class S> ForwardPass& Window<S>::begin_micro_batch(std::int64_t items) {
    if (detail::context.backward_passes) detail::throw_during_backward("begin_micro_batch");
    forward_pass_.effects = {};  // of a micro-batch that was not added
    forward_pass_.draws.begin_pass();
    pending_items_ = 0;
    min_loss_id_ = detail::context.next_id;
    detail::called_without_pass = nullptr;
    return begin_part(items);
}

template <class S> ForwardPass& Window<S>::begin_part(std::int64_t items) {
    if (items < 0)
        throw Error("[window] begin_micro_batch: the item count cannot be " + std::to_string(items));
    if (!pending_items_)
        throw Error("[window] begin_part: no micro-batch has begun; call begin_micro_batch() first");
    forward_pass_.training = true;
    forward_pass_.over = false;
    forward_pass_.items = items;
    forward_pass_.seed = window_seed();
    forward_pass_.first_item =
        items_ + *pending_items_ + (reducer_ ? reducer_->first_item(optimizer_, window_index_) : 0);
    *pending_items_ += items;
    return forward_pass_;
}

// ---- drop_micro: a backup of the gradients before each micro-batch ----

template <class S> void Window<S>::back_up_gradients() {
    for (std::size_t i = 0; i < gradient_backup_.size(); ++i) {
        const V& parameter = parameters()[i];
        had_gradient_[i] = parameter.has_grad();
        if (had_gradient_[i]) {
            const Array<S>& gradient = parameter.node()->gradient;
            detail::kernels<S>(gradient.device())
                .add_scaled(S(1), gradient.data(), {gradient_backup_[i].writable(), Write::set},
                            gradient.size());
        }
    }
}

template <class S> bool Window<S>::drop_if_not_finite(const V& sum) {
    if (options_.non_finite != NonFinite::drop_micro) return false;
    if (detail::count_non_finite(parameters()) == 0 && std::isfinite(sum.item())) return false;
    const detail::UnlockScope unlock(grad_flag::locked | grad_flag::backward_locked);
    for (std::size_t i = 0; i < gradient_backup_.size(); ++i) {
        if (had_gradient_[i])
            set_gradient(parameters()[i], gradient_backup_[i]);
        else
            parameters()[i].zero_grad();
    }
    ++dropped_;
    return true;
}

template <class S> void Window<S>::count(const Loss<Array<S>>& contribution, double item_weight) {
    const NoGrad off;
    if (exact_) {
        exact_->add_gradients();
        exact_->count(contribution.sum, contribution.count);
        loss_sum_ = exact_->loss();
        denominator_.restart(exact_->counted());
    } else {
        loss_sum_ = loss_sum_ + contribution.sum.detach();
        denominator_.count(contribution.count);
    }
    if (noise_estimator_) noise_estimator_->add(contribution.count, item_weight, denominator_.counted());
    effects_.join(std::exchange(forward_pass_.effects, {}));
}

// ---- the update ----

// Returns the totals of this process, or the totals of all processes if there is a reducer.
template <class S> detail::WindowTotals Window<S>::totals(const char* call) {
    const bool planned = options_.micro_batches > 0;
    detail::WindowTotals here{.micro_batches = micro_batches_,
                              .dropped = dropped_,
                              .regularizers = std::ssize(regularizers_),
                              .count = static_cast<double>(denominator_.counted().item()),
                              .planned = planned,
                              .full = !planned || full(),
                              .learning_rate = optimizer_.learning_rate(),
                              .updates = updates_};
    if (noise_estimator_) noise_estimator_->add_to(here);
    if (!reducer_) return here;
    require_valid_count(call, here.count);
    here.loss_sum = static_cast<double>(loss_sum_.item());
    for (const V& term : regularizers_) here.regularizer_value += static_cast<double>(term.item());
    here.written = lock_.written();
    return reducer_->gather(optimizer_, call, window_index_, here, exact_sums());
}

// Returns true if the window has all planned micro-batches, or if the counts add up to Options::total.
template <class S> bool Window<S>::is_ready_for_update(const char* call, const detail::WindowTotals& all,
                                                       bool end_of_epoch) const {
    if (!denominator_.announced()) return all.full;
    if (denominator_.reached(all.count)) return true;
    const bool incomplete = all.planned ? !all.full : all.count < options_.total;
    if (!(incomplete && end_of_epoch) && all.dropped == 0)
        throw Error("window", call, ": the option total is ", detail::to_text(options_.total),
                    ", but the sum of the counts is ", detail::to_text(all.count), " after ",
                    all.micro_batches, " micro-batches",
                    incomplete ? "; add() the missing micro-batches, or call flush()" : "");
    return !incomplete;
}

template <class S> void Window<S>::require_valid_count(const char* call, double counted) const {
    if (!std::isfinite(counted) || counted < 0)
        throw Error(std::string("[window] ") + call + ": " + detail::to_text(counted) +
                    " is not a count that can divide a loss; pass a finite number of at least 0");
}

// Clips the gradients and returns true if all gradients and the loss are finite.
template <class S> bool Window<S>::clip_if_finite(detail::WindowResult<S>& result) {
    detail::MeasuredGradients all =
        detail::measure_gradients(parameters(), options_.max_norm || noise_estimator_);
    if (!std::isfinite(static_cast<double>(result.loss_sum.item())))
        ++all.non_finite;  // so that all pipeline stages reject the update
    if (reducer_) all = reducer_->combine_norms(all);
    if (options_.max_norm) result.norm = all.norm;
    if (all.non_finite > 0 || !std::isfinite(result.norm.value_or(0))) return false;
    if (noise_estimator_) noise_estimator_->set_norm(all.norm);
    if (options_.max_norm) detail::clip_measured(parameters(), all.norm, *options_.max_norm);
    if (options_.max_value) clip_grad_value(parameters(), *options_.max_value);
    return true;
}

template <class S> void Window<S>::require_after_backward_called(const char* call) const {
    if (lock_.on() && lock_.mode() == detail::ParameterLock<S>::Mode::external && lock_.is_dirty())
        throw Error(
            std::string("[window] ") + call +
            ": a backward() ran since the last micro-batch without after_backward(); call after_backward()");
}

template <class S> std::string Window<S>::describe_non_finite(const detail::WindowResult<S>& result) const {
    const auto sum = static_cast<double>(result.loss_sum.item());
    if (const std::int64_t elements = detail::count_non_finite(parameters()))
        return std::to_string(elements) + " elements of the gradients are infinite or NaN";
    if (!std::isfinite(sum))
        return "the loss is " + detail::to_text(sum) + ", though its gradients are finite";
    if (!result.norm) return "gradients of another stage are infinite or NaN";
    return "the norm of the gradients is " + detail::to_text(*result.norm) +
           ", though each element is finite";
}

template <class S> void Window<S>::drop_or_raise(const char* call, detail::WindowResult<S>& result) const {
    switch (options_.non_finite) {
        case NonFinite::raise:
            throw Error("window", call, ": ", describe_non_finite(result),
                        "; nothing was updated. discard() the window, or choose NonFinite::drop_micro or "
                        "drop_window");
        case NonFinite::drop_micro:
        case NonFinite::drop_window:
            result.dropped = result.micro_batches;
    }
}

template <class S> void Window<S>::require_a_gradient(const char* call) const {
    if (std::ranges::none_of(parameters(), [](const V& parameter) { return parameter.has_grad(); }))
        throw Error(std::string("[window] ") + call + ": no gradient has reached any of the window's " +
                    std::to_string(parameters().size()) +
                    " parameters; discard() the window, and add a loss of this model");
}

template <class S> detail::WindowResult<S> Window<S>::end_window(const char* call, bool end_of_epoch) {
    if (!reducer_) return try_end_window(call, end_of_epoch);
    try {
        return try_end_window(call, end_of_epoch);
    } catch (const std::exception& error) {  // the other processes must not wait for this process
        reducer_->report_failure(call, window_index_, error.what());
        throw;
    }
}

template <class S> detail::WindowResult<S> Window<S>::try_end_window(const char* call, bool end_of_epoch) {
    require_not_broken(call);
    if (micro_batches_ == 0 && !reducer_) throw Error("window", call, ": no micro-batch was added");
    require_after_backward_called(call);
    lock_.require_unchanged(call);
    if (micro_batches_ > 1) require_loss_reached_parameter(call);
    const detail::WindowTotals all = totals(call);
    if (all.micro_batches == 0) {
        if (end_of_epoch) return {};
        throw Error("window", call, ": no micro-batch was added on any process");
    }
    detail::WindowResult<S> result{
        .micro_batches = all.micro_batches,
        .dropped = all.dropped,
        .count = all.count,
        .loss_sum = reducer_ ? scalar<S>(all.loss_sum, zero_.value().device()).value() : loss_sum_.value()};
    require_valid_count(call, result.count);
    if (!is_ready_for_update(call, all, end_of_epoch)) {
        switch (options_.tail) {
            case Tail::scale:
                break;
            case Tail::drop:
                discard();
                return result;
            case Tail::carry:
                return result;
        }
    }
    if (!(result.count > 0)) {
        if (all.dropped < all.micro_batches)
            throw Error("window", call, ": the counts of all ", all.micro_batches,
                        " micro-batches are 0, and the window cannot divide by 0; discard() the window");
        discard();  // all micro-batches were dropped
        return result;
    }
    if (reducer_) mark_broken_on_error([&] { reduce(); });
    if (exact_) mark_broken_on_error([&] { allow_changes([&] { exact_->round(); }); });
    require_a_gradient(call);
    optimizer_.require_current(parameters_of_average());
    mark_broken_on_error([&] { update(call, result, all); });
    discard();
    return result;
}

template <class S> void Window<S>::reduce() {
    if (!lock_.on())
        lock_.lock(detail::ParameterLock<S>::Mode::internal);  // this process added no micro-batch
    allow_changes([&] { reducer_->reduce(effects_, exact_sums()); });
}

template <class S>
void Window<S>::update(const char* call, detail::WindowResult<S>& result, const detail::WindowTotals& all) {
    allow_changes([&] { denominator_.divide(parameters(), result.count); });
    if (noise_estimator_ && !regularizers_.empty())
        noise_estimator_->set_norm(detail::grad_norm(parameters()));  // without the regularizers
    allow_backward([&] {
        for (const V& term : std::exchange(regularizers_, {})) {
            lock_.snapshot();
            term.backward();
            if (!lock_.is_dirty())
                throw Error("window", call, ": a term of add_regularizer() has reached none of the ",
                            parameters().size(),
                            " parameters; discard() the window, and add a term of this model");
        }
    });
    transpose_cache_.clear();
    bool finite = true;
    allow_changes([&] { finite = clip_if_finite(result); });
    if (finite)
        step(result, all);
    else
        drop_or_raise(call, result);
}

template <class S> void Window<S>::step(detail::WindowResult<S>& result, const detail::WindowTotals& all) {
    if (options_.average) options_.average->prepare();
    effects_.prepare();
    const double rate_before = optimizer_.learning_rate();
    if (options_.schedule) optimizer_.schedule_learning_rate(options_.schedule->at(updates_));
    try {
        if (reducer_) {
            allow_changes([&] { optimizer_.prepare(); });
            reducer_->barrier_before_step();
        }
        allow_changes([&] { optimizer_.step(); });
        if (reducer_) lock_.note_values();
    } catch (...) {  // no parameter was updated, so the learning rate must not change
        optimizer_.schedule_learning_rate(rate_before);
        optimizer_.drop_unused_state();
        throw;
    }
    if (options_.average) options_.average->follow_update();
    if (!effects_.empty()) optimizer_.note_effects();
    effects_.commit();
    if (noise_estimator_)
        result.noise = noise_estimator_->estimate(all, options_.reduction == Reduction::mean);
    result.stepped = true;
    ++updates_;
}

template <class S> void Window<S>::discard() {
    if (detail::context.backward_passes) detail::throw_during_backward("discard");
    lock_.clear_gradients();
    if (broken_)  // after an error in backward(), a gradient may have a different memory class
        allow_changes([&] {
            for (const V& parameter : parameters()) {
                const memory::detail::Storage* const storage = parameter.node()->gradient.storage();
                if (storage && memory::detail::memory_class(storage) != MemoryClass::gradient)
                    parameter.free_grad();
            }
        });
    lock_.release();
    reset();
}

template <class S> void Window<S>::reset() {
    micro_batches_ = dropped_ = items_ = 0;
    loss_sum_ = unchecked_copy(zero_);
    denominator_.restart(unchecked_copy(zero_));
    if (exact_) exact_->clear();
    if (noise_estimator_) noise_estimator_->restart();
    transpose_cache_.clear();
    regularizers_.clear();
    if (pending_items_ || uses_forward_pass_) min_loss_id_ = detail::context.next_id;
    uses_forward_pass_ = false;
    pending_items_.reset();
    detail::called_without_pass = nullptr;
    detail::pipe_processes = 0;
    forward_pass_.over = true;
    forward_pass_.effects = {};
    forward_pass_.draws = {};
    effects_ = {};
    broken_ = saved_ = unreached_ = false;
    ++window_index_;
}

template class Window<float>;
template class Window<double>;

}  // namespace tally
