// The window: gradients of micro-batches are added up, and go through one gate once.
#include "train/window.hpp"

#include <cmath>
#include <limits>

#include "autograd/ops/elementwise.hpp"
#include "autograd/random.hpp"
#include "train/clip.hpp"
#include "train/require.hpp"

namespace tally {

namespace {

template <class S>
Var<Array<S>> number(double value, Device device) {
    return Array<S>::full({}, static_cast<S>(value), device);
}

template <class S, class F>
void change_all(const std::vector<Var<Array<S>>>& parameters, const F& formula) {
    for (const Var<Array<S>>& parameter : parameters)
        parameter.change_grad([&](Array<S>& gradient) {
            S* const place = gradient.writable();
            kernels<S>(gradient.device()).map[slot<F, UnaryOps>](&formula, place, place, gradient.size());
        });
}

template <class S>
void set_gradient(const Var<Array<S>>& parameter, const Array<S>& gradient) {
    parameter.zero_grad();
    take(parameter.node()->into(), gradient);
    settle(parameter.node()->gradient, MemoryClass::gradient);
}

}  // namespace

template <class S>
Window<S>::Window(Optimizer<S>& optimizer, WindowOptions<S> options)
    : optimizer_(optimizer), options_(std::move(options)) {
    plan(options_.micro_batches);
    if (!(options_.total >= 0) || std::isinf(options_.total))
        throw Error("[window] a total of " + in_words(options_.total) + " cannot be divided by");
    if (options_.reduction == Reduction::sum && options_.total > 0)
        throw Error("[window] a sum is divided by nothing, but a total of " + in_words(options_.total) +
                    " is given");
    if (optimizer.folds())
        throw Error(
            "[window] " + optimizer.name() +
            " takes in each micro-batch by itself: call its fold() after each backward(), then step()");
    if (parameters().empty()) throw Error("[window] the optimizer has no parameters");
    expect_untouched();
    if (options_.non_finite == NonFinite::drop_micro)
        for (const V& parameter : parameters()) before_.push_back(empty_like(parameter.value()));
    before_there_.resize(before_.size());
    optimizer_.guard(&micro_batches_);
    zero_ = number<S>(0, parameters()[0].value().device());
    reset();
}

template <class S>
void Window<S>::plan(std::int64_t micro_batches) {
    if (micro_batches < 0)
        throw Error("[window] cannot hold " + std::to_string(micro_batches) + " micro-batches");
    options_.micro_batches = micro_batches;
}

template <class S>
Window<S>::~Window() {
    optimizer_.guard(nullptr);
}

template <class S>
void Window<S>::expect_untouched() const {
    for (std::size_t i = 0; i < parameters().size(); ++i)
        if (parameters()[i].has_grad())
            throw Error("[window] a gradient has reached parameter " + std::to_string(i) + " of " +
                        to_string(parameters()[i].shape()) +
                        " before the window was opened; zero_grad() first");
}

template <class S>
void Window<S>::expect_whole(const char* what) const {
    if (broken_)
        throw Error(std::string("[window] ") + what +
                    ": an error has left its gradients unfinished; discard() it and begin anew");
}

template <class S>
void Window<S>::add(const Loss<Array<S>>& loss, double weight) {
    expect_whole("add");
    if (!std::isfinite(weight) || weight < 0)
        throw Error("[window] add: a micro-batch cannot weigh " + in_words(weight));
    if (micro_batches_ == 0) expect_untouched();
    V sum = loss.sum, counted = loss.count;
    if (options_.weigh == Weigh::micro_batches) {
        const bool empty = loss.count.item() == 0;  // nothing in it: it has no mean
        if (!empty) sum = loss.mean();
        counted = number<S>(empty ? 0 : 1, sum.value().device());
    }
    if (weight != 1) {
        sum = sum * weight;
        counted = counted * weight;
    }
    remember();
    whole([&] {
        (options_.total > 0 ? sum / options_.total : sum).backward();
        ++micro_batches_;
        if (dropped(sum))
            pass_.effects = {};
        else
            count(sum, counted);
    });
}

template <class S>
void Window<S>::once(V term) {
    expect_whole("once");
    once_.push_back(std::move(term));
}

template <class S>
void Window<S>::swept(double counted) {
    expect_whole("swept");
    if (options_.non_finite == NonFinite::drop_micro)
        throw Error(
            "[window] swept: a micro-batch can only be dropped if the window goes backward itself; use "
            "add()");
    if (!std::isfinite(counted) || counted < 0)
        throw Error("[window] swept: a micro-batch cannot count " + in_words(counted));
    whole([&] {
        ++micro_batches_;
        count(zero_, number<S>(counted, zero_.value().device()));
    });
}

template <class S>
std::uint64_t Window<S>::seed() const {
    const auto words = random::detail::words(options_.seed, 0, static_cast<std::uint64_t>(updates_));
    return random::detail::join(words[0], words[1]);
}

template <class S>
Pass& Window<S>::pass(std::int64_t items) {
    pass_.training = true;
    pass_.seed = seed();
    pass_.first_item = items_;
    items_ += items;
    return pass_;
}

// ---- drop_micro: what the gradients were before a micro-batch ----

template <class S>
void Window<S>::remember() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
        const V& parameter = parameters()[i];
        before_there_[i] = parameter.has_grad();
        if (before_there_[i]) {
            const Array<S>& gradient = parameter.grad();
            kernels<S>(gradient.device())
                .add_scaled(S(1), gradient.data(), {before_[i].writable(), Write::set}, gradient.size());
        }
    }
}

template <class S>
bool Window<S>::dropped(const V& sum) {
    if (options_.non_finite != NonFinite::drop_micro) return false;
    if (!has_non_finite_gradient(parameters()) && std::isfinite(sum.item())) return false;
    for (std::size_t i = 0; i < before_.size(); ++i) {
        if (before_there_[i])
            set_gradient(parameters()[i], before_[i]);
        else
            parameters()[i].zero_grad();
    }
    ++dropped_;
    return true;
}

template <class S>
void Window<S>::count(const V& sum, const V& counted) {
    const NoGrad off;
    sum_ = sum_ + detach(sum);
    count_ = count_ + counted;
    effects_.join(std::exchange(pass_.effects, {}));
}

// ---- the gate ----

template <class S>
double Window<S>::rounding() const {
    return 64 * static_cast<double>(std::numeric_limits<S>::epsilon()) * options_.total;
}

template <class S>
bool Window<S>::complete(double counted) const {
    if (options_.total > 0) {
        if (std::abs(counted - options_.total) <= rounding()) return true;
        const bool short_of = options_.micro_batches > 0 ? !full() : counted < options_.total;
        if (!short_of && dropped_ == 0)
            throw Error("[window] finish: a total of " + in_words(options_.total) + " was announced, but " +
                        in_words(counted) + " came in " + std::to_string(micro_batches_) + " micro-batches");
        return !short_of;
    }
    return options_.micro_batches == 0 || full();
}

template <class S>
void Window<S>::normalise(double counted) {
    if (options_.reduction == Reduction::sum) return;
    if (options_.total == 0)
        change_all(parameters(), functor::DivNumber{counted});
    else if (std::abs(counted - options_.total) > rounding())
        change_all(parameters(), functor::MulNumber{options_.total / counted});
}

// Says whether all gradients are numbers.
template <class S>
bool Window<S>::finite_after_clipping(Finished<S>& done) {
    if (options_.max_norm) {
        done.norm = clip_grad_norm(parameters(), *options_.max_norm);
        if (!std::isfinite(*done.norm)) return false;
    } else if (options_.non_finite != NonFinite::drop_micro && has_non_finite_gradient(parameters())) {
        return false;
    }
    if (options_.max_value) clip_grad_value(parameters(), *options_.max_value);
    return true;
}

template <class S>
Finished<S> Window<S>::finish() {
    expect_whole("finish");
    if (micro_batches_ == 0) throw Error("[window] finish: no micro-batch has come");
    Finished<S> done{.micro_batches = micro_batches_,
                     .dropped = dropped_,
                     .count = static_cast<double>(count_.item()),
                     .sum = sum_.value()};
    if (!complete(done.count) && options_.tail != Tail::scale) {
        if (options_.tail == Tail::drop) discard();
        return done;
    }
    if (!(done.count > 0)) {
        if (dropped_ < micro_batches_)
            throw Error("[window] finish: its " + std::to_string(micro_batches_) +
                        " micro-batches count 0 together: there is nothing to divide by; discard() it");
        discard();  // nothing is left of it
        return done;
    }
    whole([&] {
        normalise(done.count);
        for (const V& term : std::exchange(once_, {})) term.backward();
        if (!finite_after_clipping(done)) {
            if (options_.non_finite == NonFinite::raise)
                throw Error("[window] finish: " + std::to_string(count_non_finite(parameters())) +
                            " elements of the gradients are infinite or NaN; nothing was updated. discard() "
                            "it, or choose "
                            "NonFinite::drop_micro or drop_window");
            done.dropped = micro_batches_;
            return;
        }
        if (options_.average) options_.average->prepare();
        effects_.prepare();
        const double rate_before = optimizer_.learning_rate();
        if (options_.schedule) optimizer_.set_learning_rate(options_.schedule->at(updates_));
        optimizer_.guard(nullptr);
        try {
            optimizer_.step();
        } catch (...) {  // nothing was updated: the rate is no other, either
            optimizer_.set_learning_rate(rate_before);
            throw;
        }
        if (options_.average) options_.average->update();
        effects_.commit();
        done.stepped = true;
        ++updates_;
    });
    discard();
    return done;
}

template <class S>
void Window<S>::discard() {
    optimizer_.zero_grad();
    if (broken_)  // a rule that failed may have left a gradient that is not counted as one
        for (const V& parameter : parameters()) {
            const Storage* const storage = parameter.node()->gradient.storage();
            if (storage && storage->held_as != MemoryClass::gradient) parameter.free_grad();
        }
    reset();
}

template <class S>
void Window<S>::reset() {
    micro_batches_ = dropped_ = items_ = 0;
    sum_ = count_ = zero_;
    once_.clear();
    pass_.effects = {};
    effects_ = {};
    broken_ = false;
    optimizer_.guard(&micro_batches_);
}

template class Window<float>;
template class Window<double>;

}  // namespace tally
