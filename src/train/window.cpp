// The window: gradients of micro-batches are added up, and go through one gate once.
#include "tally/train/window.hpp"

#include <algorithm>
#include <cmath>

#include "tally/autograd/ops/elementwise.hpp"
#include "tally/base/random.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/state_reader.hpp"

namespace tally {

namespace {

template <class S> Var<Array<S>> number(double value, Device device) {
    return Array<S>::full({}, static_cast<S>(value), device);
}

template <class S> Device device_of(const Optimizer<S>& optimizer) {
    return optimizer.parameters()[0].value().device();
}

// Another thread may discard a window that it alone uses now.
template <class S> Var<Array<S>> shared(const Var<Array<S>>& constant) {
    ++constant.node()->handles;
    return Var<Array<S>>(constant.node());
}

// Inside UnlockScope.
template <class S> void set_gradient(const Var<Array<S>>& parameter, const Array<S>& gradient) {
    parameter.zero_grad();
    accumulate_into(parameter.node()->into(), gradient);
    detail::account_as(parameter.node()->gradient, MemoryClass::gradient);
}

}  // namespace

template <class S>
Window<S>::Window(Optimizer<S>& optimizer, WindowOptions<S> options, detail::GradientReducer<S>* across,
                  typename detail::GradientReducer<S>::Named also)
    : optimizer_(optimizer),
      options_(std::move(options)),
      across_(across),
      zero_(number<S>(0, device_of(optimizer))),
      denominator_(options_.reduction, options_.weigh, options_.total, device_of(optimizer)),
      lock_(optimizer.parameters()) {
    plan_micro_batches(options_.micro_batches);
    expect_bound("max_norm", options_.max_norm);
    expect_bound("max_value", options_.max_value);
    if (options_.average) average_in_use_ = options_.average->use(optimizer.parameters());
    optimizer_.note_variables(averaged());
    if (!(options_.total >= 0) || std::isinf(options_.total))
        throw Error("[window] a total of " + detail::in_words(options_.total) + " cannot be divided by");
    if (options_.reduction == Reduction::sum && options_.total > 0)
        throw Error("[window] a sum is divided by nothing, but a total of " +
                    detail::in_words(options_.total) + " is given");
    optimizer_.expect_finished();
    expect_untouched();
    if (options_.sum == Sum::exact)
        exact_.emplace(parameters());
    else if (options_.non_finite == NonFinite::drop_micro)
        for (const V& parameter : parameters()) before_.push_back(empty_like(parameter.value()));
    before_there_.resize(before_.size());
    if (options_.noise) meter_.emplace(parameters(), options_.total, zero_);
    reset();
    window_index_ = 0;
    if (!across_) return;
    auto lines = options_as_text(true);
    lines.insert(lines.end(), also.begin(), also.end());
    across_->open(optimizer_, lines);
    lock_.note_values();
}

template <class S> void Window<S>::expect_bound(const char* option, std::optional<double> bound) {
    require(!bound || *bound >= 0, "window", std::string(option) + " must be from 0 on", bound.value_or(0));
}

template <class S> const std::vector<Var<Array<S>>>& Window<S>::averaged() const {
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
    if (!saved_ && !broken_ && std::uncaught_exceptions() <= exceptions_)
        optimizer_.unfinished(micro_batches_);
    lock_.clear_gradients();
    lock_.release();
}

template <class S> void Window<S>::expect_untouched() const {
    for (std::size_t i = 0; i < parameters().size(); ++i) {
        const std::uint8_t grad_flags = parameters()[i].node()->grad_flags;
        if (grad_flags & grad_flag::holds_average) detail::throw_holds_average("window", i);
        if (!(grad_flags & (grad_flag::locked | grad_flag::present))) continue;
        const std::string which = std::to_string(i) + " of " + to_string(parameters()[i].shape());
        if (grad_flags & grad_flag::locked)
            throw Error(
                "[window] parameter " + which +
                " belongs to another window with micro-batches in it; finish() or discard() that first");
        if (parameters()[i].has_grad())
            throw Error("[window] a gradient has reached parameter " + which +
                        " before the window was opened; zero_grad() first");
    }
}

template <class S> void Window<S>::require_not_broken(const char* what) const {
    if (detail::context.backward_passes) detail::throw_during_backward(what);
    if (broken_)
        throw Error(std::string("[window] ") + what +
                    ": an error has left its gradients unfinished; discard() it and begin anew");
}

template <class S>
void Window<S>::require_same_mode(const char* what, typename detail::ParameterLock<S>::Mode mode) const {
    if (lock_.on() && lock_.mode() != mode)
        throw Error(std::string("[window] ") + what + ": its micro-batches so far came by " +
                    (mode == detail::ParameterLock<S>::Mode::internal ? "after_backward()" : "add()") +
                    ", and another way would count some backward() twice or not at all; finish() it first");
}

// What must hold before another micro-batch.
template <class S> void Window<S>::expect_not_full(const char* what) const {
    if (full())
        throw Error(std::string("[window] ") + what + ": it is full with its " +
                    std::to_string(micro_batches_) + " micro-batches; finish() it first");
    expect_reached(what);
    lock_.require_unchanged(what);
}

// A micro-batch is booked on the pass that it went forward in.
template <class S> void Window<S>::expect_own_pass(const V& sum) const {
    const Node& node = sum.checked("add");
    if (node.thread_id == detail::this_thread_id() && node.id < min_loss_id_)
        throw Error(
            "[window] add: this loss was recorded before the last begin_micro_batch() began, or in a window "
            "that is over; "
            "add() each micro-batch's loss before the next begin_micro_batch()");
    if (passed_ && !pending_items_)
        throw Error(
            "[window] add: this micro-batch has no begin_micro_batch() of its own, as those before had; call "
            "begin_micro_batch() "
            "before each forward");
    detail::expect_made_in_pass("[window] add", node);
}

template <class S> void Window<S>::expect_pass() const {
    if (!detail::called_without_pass) return;
    throw Error(std::string("[window] after_backward: ") + detail::called_without_pass +
                " was called without a pass, so it did not train; write model(x, "
                "window.begin_micro_batch(items)) for each "
                "micro-batch, or make evaluation explicit: ForwardPass evaluation; model(x, evaluation)");
}

template <class S> void Window<S>::add(const Loss<Array<S>>& loss, const MicroBatchOptions& options) {
    const double weight = options.weight;
    expect_loss(loss, weight);
    const Loss<Array<S>> share = denominator_.contribution(loss, weight);
    remember();
    mark_broken_on_error([&] {
        if (!lock_.on()) lock_.lock(detail::ParameterLock<S>::Mode::internal);
        if (exact_) exact_->begin();
        allow_backward([&] { denominator_.divided(share.sum).backward(); });
        unreached_ = !lock_.is_dirty();
        ++micro_batches_;
        if (dropped(share.sum))
            pass_.effects = {};
        else
            count(share, denominator_.item_weight(loss, weight));
        end_micro_batch();
    });
}

// A loss of another model would count, and bring nothing.
template <class S> void Window<S>::expect_reached(const char* what) const {
    if (unreached_)
        throw Error(std::string("[window] ") + what + ": the loss of micro-batch " +
                    std::to_string(micro_batches_) + " has reached none of the " +
                    std::to_string(parameters().size()) +
                    " parameters; discard() the window, and add a loss of this model");
}

template <class S> void Window<S>::expect_loss(const Loss<Array<S>>& loss, double weight) const {
    require_not_broken("add");
    require_same_mode("add", detail::ParameterLock<S>::Mode::internal);
    expect_not_full("add");
    if (!std::isfinite(weight) || weight < 0)
        throw Error("[window] add: a micro-batch cannot weigh " + detail::in_words(weight));
    expect_own_pass(loss.sum);
    if (loss.count.value().device() == Device::cpu)
        expect_count("add", static_cast<double>(loss.count.item()));
    if (!loss.sum.requires_grad())
        throw Error(
            "[window] add: the loss depends on no parameter; was it made inside NoGrad, or detached?");
    if (lock_.on()) return;
    optimizer_.expect_finished();
    expect_untouched();
}

// The pass of the micro-batch that was counted has happened.
template <class S> void Window<S>::end_micro_batch() {
    items_ += pending_items_.value_or(0);
    detail::called_without_pass = nullptr;
    passed_ = passed_ || pending_items_;
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
                    ", so the update would count its term once for each micro-batch; call add_regularizer() "
                    "at one place, "
                    "outside the loop over the micro-batches");
    regularizers_.push_back(std::move(term));
}

template <class S> void Window<S>::after_backward(double counted, std::int64_t items) {
    expect_a_backward(counted);
    mark_broken_on_error([&] {  // its gradient is there already, and cannot be left out any more
        expect_countable(counted, items);
        if (!lock_.on()) lock_.lock(detail::ParameterLock<S>::Mode::external);
        if (!pending_items_) items_ += items;
        ++micro_batches_;
        count({zero_, number<S>(counted, zero_.value().device())}, 1);
        end_micro_batch();
    });
}

template <class S> void Window<S>::expect_a_backward(double counted) const {
    require_not_broken("after_backward");
    require_same_mode("after_backward", detail::ParameterLock<S>::Mode::external);
    expect_pass();
    if (!lock_.is_dirty() && counted > 0)
        throw Error(
            "[window] after_backward: no gradient has arrived since the last micro-batch; "
            "call backward() first");
    expect_all_stages();
}

// What looks at gradients as a whole needs those of all stages.
template <class S> void Window<S>::expect_all_stages() const {
    const int processes = detail::piped;
    if (across_ || processes < 2) return;
    std::string option;
    if (options_.max_norm)
        option = "max_norm " + detail::in_words(*options_.max_norm);
    else if (options_.max_value)
        option = "max_value " + detail::in_words(*options_.max_value);
    else if (options_.non_finite != NonFinite::raise)
        option = "a non_finite policy other than raise";
    else
        return;
    throw Error("[window] after_backward: a pipe of " + std::to_string(processes) +
                " processes went backward, and " + option +
                " would look at the gradients of this process's stages only; give the window "
                "PipelineParallel(processes), or leave that option out");
}

template <class S> void Window<S>::expect_countable(double counted, std::int64_t items) const {
    expect_not_full("after_backward");
    if (options_.non_finite == NonFinite::drop_micro)
        throw Error(
            "[window] after_backward: a micro-batch can only be dropped if the window goes backward itself; "
            "use add()");
    if (options_.sum == Sum::exact)
        throw Error(
            "[window] after_backward: Sum::exact takes each micro-batch's gradient apart, so the window must "
            "go "
            "backward itself; use add(), or Sum::running");
    if (!std::isfinite(counted) || counted < 0)
        throw Error("[window] after_backward: a micro-batch cannot count " + detail::in_words(counted));
    if (items < 0) throw Error("[window] after_backward: there are no " + std::to_string(items) + " items");
}

template <class S> std::uint64_t Window<S>::seed() const {
    const auto words = random::detail::words(options_.seed, across_ ? across_->rng_offset() : 0,
                                             static_cast<std::uint64_t>(updates_));
    return random::detail::join(words[0], words[1]);
}

template <class S> ForwardPass& Window<S>::begin_micro_batch(std::int64_t items) {
    if (detail::context.backward_passes) detail::throw_during_backward("begin_micro_batch");
    pass_.effects = {};  // of one whose loss was looked at and left out
    pass_.draws.begin_pass();
    pending_items_ = 0;
    min_loss_id_ = detail::context.next_id;
    detail::called_without_pass = nullptr;
    return begin_part(items);
}

template <class S> ForwardPass& Window<S>::begin_part(std::int64_t items) {
    if (items < 0)
        throw Error("[window] begin_micro_batch: there are no " + std::to_string(items) + " items");
    if (!pending_items_)
        throw Error("[window] begin_part: of no micro-batch; call begin_micro_batch() for the first part");
    pass_.training = true;
    pass_.over = false;
    pass_.items = items;
    pass_.seed = seed();
    pass_.first_item =
        items_ + *pending_items_ + (across_ ? across_->first_item(optimizer_, window_index_) : 0);
    *pending_items_ += items;
    return pass_;
}

// ---- drop_micro: what the gradients were before a micro-batch ----

template <class S> void Window<S>::remember() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
        const V& parameter = parameters()[i];
        before_there_[i] = parameter.has_grad();
        if (before_there_[i]) {
            const Array<S>& gradient = parameter.node()->gradient;
            detail::kernels<S>(gradient.device())
                .add_scaled(S(1), gradient.data(), {before_[i].writable(), Write::set}, gradient.size());
        }
    }
}

template <class S> bool Window<S>::dropped(const V& sum) {
    if (options_.non_finite != NonFinite::drop_micro) return false;
    if (detail::count_non_finite(parameters()) == 0 && std::isfinite(sum.item())) return false;
    const detail::UnlockScope own(grad_flag::locked | grad_flag::backward_locked);
    for (std::size_t i = 0; i < before_.size(); ++i) {
        if (before_there_[i])
            set_gradient(parameters()[i], before_[i]);
        else
            parameters()[i].zero_grad();
    }
    ++dropped_;
    return true;
}

template <class S> void Window<S>::count(const Loss<Array<S>>& share, double each) {
    const NoGrad off;
    if (exact_) {
        exact_->take_in();
        exact_->count(share.sum, share.count);
        sum_ = exact_->loss();
        denominator_.restart(exact_->counted());
    } else {
        sum_ = sum_ + detach(share.sum);
        denominator_.count(share.count);
    }
    if (meter_) meter_->take_in(share.count, each, denominator_.counted());
    effects_.join(std::exchange(pass_.effects, {}));
}

// ---- the gate ----

// How far it has come: here, or on all who share it.
template <class S> detail::WindowTotals Window<S>::totals(const char* what) {
    const bool planned = options_.micro_batches > 0;
    detail::WindowTotals here{.micro_batches = micro_batches_,
                              .dropped = dropped_,
                              .regularizers = std::ssize(regularizers_),
                              .count = static_cast<double>(denominator_.counted().item()),
                              .planned = planned,
                              .full = !planned || full(),
                              .learning_rate = optimizer_.learning_rate(),
                              .updates = updates_};
    if (meter_) meter_->report_to(here);
    if (!across_) return here;
    expect_count(what, here.count);
    here.sum = static_cast<double>(sum_.item());
    for (const V& term : regularizers_) here.regularizer_value += static_cast<double>(term.item());
    here.written = lock_.written();
    return across_->gather(optimizer_, what, window_index_, here, exact_sums());
}

// Whether all that was planned has come.
template <class S> bool Window<S>::complete(const detail::WindowTotals& all, bool tail) const {
    if (!denominator_.announced()) return all.full;
    if (denominator_.reached(all.count)) return true;
    const bool short_of = all.planned ? !all.full : all.count < options_.total;
    if (!(short_of && tail) && all.dropped == 0)
        throw Error("[window] finish: a total of " + detail::in_words(options_.total) +
                    " was announced, but " + detail::in_words(all.count) + " came in " +
                    std::to_string(all.micro_batches) + " micro-batches" +
                    (short_of ? "; add() the rest, or flush() it as a tail" : ""));
    return !short_of;
}

template <class S> void Window<S>::expect_count(const char* what, double counted) const {
    if (!std::isfinite(counted) || counted < 0)
        throw Error(std::string("[window] ") + what + ": " + detail::in_words(counted) +
                    " is no number of things that a loss could be divided by");
}

// Says whether all gradients are numbers, and the loss is.
template <class S> bool Window<S>::finite_after_clipping(UpdateResult<S>& done) {
    detail::MeasuredGradients all = detail::measure_gradients(parameters(), options_.max_norm || meter_);
    if (!std::isfinite(static_cast<double>(done.sum.item()))) ++all.non_finite;  // all stages hear of it
    if (across_) all = across_->measured(all);
    if (options_.max_norm) done.norm = all.norm;
    if (all.non_finite > 0 || !std::isfinite(done.norm.value_or(0)))
        return false;  // here, or of all together
    if (meter_) meter_->set_norm(all.norm);
    if (options_.max_norm) detail::clip_measured(parameters(), all.norm, *options_.max_norm);
    if (options_.max_value) clip_grad_value(parameters(), *options_.max_value);
    return true;
}

template <class S> void Window<S>::require_loss_added(const char* what) const {
    if (lock_.on() && lock_.mode() == detail::ParameterLock<S>::Mode::external && lock_.is_dirty())
        throw Error(
            std::string("[window] ") + what +
            ": a backward() has come since the last micro-batch that after_backward() was not told of");
}

template <class S> std::string Window<S>::not_finite(const UpdateResult<S>& done) const {
    const auto sum = static_cast<double>(done.sum.item());
    if (const std::int64_t elements = detail::count_non_finite(parameters()))
        return std::to_string(elements) + " elements of the gradients are infinite or NaN";
    if (!std::isfinite(sum))
        return "the loss is " + detail::in_words(sum) + ", though its gradients are finite";
    if (!done.norm) return "gradients of another stage are infinite or NaN";
    return "the norm of the gradients is " + detail::in_words(*done.norm) + ", though each element is finite";
}

template <class S> void Window<S>::drop_or_raise(UpdateResult<S>& done) const {
    switch (options_.non_finite) {
        case NonFinite::raise:
            throw Error("[window] finish: " + not_finite(done) +
                        "; nothing was updated. discard() it, or choose NonFinite::drop_micro or "
                        "drop_window");
        case NonFinite::drop_micro:
        case NonFinite::drop_window:
            done.dropped = done.micro_batches;
    }
}

template <class S> void Window<S>::expect_gradients(const char* what) const {
    if (std::ranges::none_of(parameters(), [](const V& parameter) { return parameter.has_grad(); }))
        throw Error(std::string("[window] ") + what + ": no gradient has reached any of its " +
                    std::to_string(parameters().size()) +
                    " parameters; is the loss of another model, or the optimizer? discard() it");
}

template <class S> UpdateResult<S> Window<S>::close(const char* what, bool tail) {
    if (!across_) return try_close(what, tail);
    try {
        return try_close(what, tail);
    } catch (const std::exception& error) {  // so that nobody waits for it
        across_->fail(what, window_index_, error.what());
        throw;
    }
}

template <class S> UpdateResult<S> Window<S>::try_close(const char* what, bool tail) {
    require_not_broken(what);
    if (micro_batches_ == 0 && !across_) throw Error("[window] finish: no micro-batch has come");
    require_loss_added(what);
    lock_.require_unchanged(what);
    if (micro_batches_ > 1) expect_reached(what);
    const detail::WindowTotals all = totals(what);
    if (all.micro_batches == 0) {
        if (tail) return {};
        throw Error("[window] finish: no micro-batch has come, to any process");
    }
    UpdateResult<S> done{.micro_batches = all.micro_batches,
                         .dropped = all.dropped,
                         .count = all.count,
                         .sum = across_ ? number<S>(all.sum, zero_.value().device()).value() : sum_.value()};
    expect_count(what, done.count);
    if (!complete(all, tail)) {
        switch (options_.tail) {
            case Tail::scale:
                break;
            case Tail::drop:
                discard();
                return done;
            case Tail::carry:
                return done;
        }
    }
    if (!(done.count > 0)) {
        if (all.dropped < all.micro_batches)
            throw Error("[window] finish: its " + std::to_string(all.micro_batches) +
                        " micro-batches count 0 together: there is nothing to divide by; discard() it");
        discard();  // nothing is left of it
        return done;
    }
    if (across_) mark_broken_on_error([&] { reduce(); });
    if (exact_) mark_broken_on_error([&] { allow_changes([&] { exact_->round(); }); });
    expect_gradients(what);
    optimizer_.expect_current(averaged());
    mark_broken_on_error([&] { update(done, all); });
    discard();
    return done;
}

// From here on its gradients and effects are those of all who share it.
template <class S> void Window<S>::reduce() {
    if (!lock_.on()) lock_.lock(detail::ParameterLock<S>::Mode::internal);  // nothing has come to this one
    allow_changes([&] { across_->reduce(effects_, exact_sums()); });
}

template <class S> void Window<S>::update(UpdateResult<S>& done, const detail::WindowTotals& all) {
    allow_changes([&] { denominator_.divide(parameters(), done.count); });
    if (meter_ && !regularizers_.empty())
        meter_->set_norm(grad_norm(parameters()));  // of the items, not of those
    allow_backward([&] {
        for (const V& term : std::exchange(regularizers_, {})) {
            lock_.snapshot();
            term.backward();
            if (!lock_.is_dirty())
                throw Error("[window] finish: a term of add_regularizer() has reached none of the " +
                            std::to_string(parameters().size()) +
                            " parameters; discard() the window, and add a term of this model");
        }
    });
    transpose_cache_.clear();
    bool finite = true;
    allow_changes([&] { finite = finite_after_clipping(done); });
    if (finite)
        step(done, all);
    else
        drop_or_raise(done);
}

template <class S> void Window<S>::step(UpdateResult<S>& done, const detail::WindowTotals& all) {
    if (options_.average) options_.average->prepare();
    effects_.prepare();
    const double rate_before = optimizer_.learning_rate();
    if (options_.schedule) optimizer_.schedule_learning_rate(options_.schedule->at(updates_));
    try {
        if (across_) {
            allow_changes([&] { optimizer_.prepare(); });
            across_->barrier_before_step();
        }
        allow_changes([&] { optimizer_.step(); });
        if (across_) lock_.note_values();
    } catch (...) {  // nothing was updated: the rate is no other, either
        optimizer_.schedule_learning_rate(rate_before);
        optimizer_.drop_unused_state();
        throw;
    }
    if (options_.average) options_.average->follow_update();
    if (!effects_.empty()) optimizer_.note_effects();
    effects_.commit();
    if (meter_) done.noise = meter_->estimate(all, options_.reduction == Reduction::mean);
    done.stepped = true;
    ++updates_;
}

template <class S> void Window<S>::discard() {
    if (detail::context.backward_passes) detail::throw_during_backward("discard");
    lock_.clear_gradients();
    if (broken_)  // a rule that failed may have left a gradient that is not counted as one
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
    sum_ = shared(zero_);
    denominator_.restart(shared(zero_));
    if (exact_) exact_->clear();
    if (meter_) meter_->restart();
    transpose_cache_.clear();
    regularizers_.clear();
    if (pending_items_ || passed_) min_loss_id_ = detail::context.next_id;
    passed_ = false;
    pending_items_.reset();
    detail::called_without_pass = nullptr;
    detail::piped = 0;
    pass_.over = true;
    pass_.effects = {};
    pass_.draws = {};
    effects_ = {};
    broken_ = saved_ = unreached_ = false;
    ++window_index_;
}

template class Window<float>;
template class Window<double>;

}  // namespace tally
