// Capturing a window and replaying it: what must hold before, what the device is told, what it tells.
#include "tally/train/captured_window.hpp"

#include <limits>
#include <string>
#include <utility>

#include "tally/checkpoint/block.hpp"
#include "tally/memory/memory_reserve.hpp"
#include "tally/memory/peer.hpp"
#include "tally/train/require.hpp"

namespace tally {

template <class T> void refill(const Array<T>& place, const Array<T>& numbers) {
    if (!place.storage() || !numbers.storage()) detail::fail_without_memory("refill");
    if (detail::context.sweeps) detail::refuse_in_sweep("refill");
    if (place.shape() != numbers.shape())
        throw Error("[refill] the place is " + to_string(place.shape()) + ", the numbers are " +
                    to_string(numbers.shape()));
    Array<T> same = place;
    memory::raise_version(same.storage());  // whoever saved it for a backward pass is told
    device_copy::bytes(same.raw(), same.device(), numbers.data(), numbers.device(), same.size() * sizeof(T));
}

namespace {

// Of an update that was not made the learning rate is not left either.
template <class S> class Rate {
public:
    explicit Rate(Optimizer<S>& optimizer) : optimizer_(optimizer), before_(optimizer.learning_rate()) {}
    Rate(const Rate&) = delete;
    Rate& operator=(const Rate&) = delete;
    ~Rate() {
        if (!stepped) optimizer_.schedule_learning_rate(before_);
    }
    bool stepped = false;

private:
    Optimizer<S>& optimizer_;
    const double before_;
};

}  // namespace

template <class S> CapturedWindow<S>::CapturedWindow(Window<S>& window, Work work)
    : window_(window), work_(std::move(work)) {
    const WindowOptions<S>& options = window_.options_;
    const auto refuse = [](bool is, const std::string& what) {
        if (is) throw Error("[capture] " + what);
    };
    refuse(!work_, "there is no function that adds the micro-batches");
    refuse(window_.across_ != nullptr, "a window across processes waits for them, which no graph can");
    refuse(
        options.reduction == Reduction::mean && options.total == 0,
        "a total that is found at the end is found by the host; tell it beforehand, or use Reduction::sum");
    refuse(options.weigh == Weigh::micro_batches,
           "whether a micro-batch is empty is read by the host; use Weigh::counted");
    refuse(options.sum == Sum::exact, "the sums of Sum::exact are made by the host; use Sum::running");
    refuse(options.noise, "the norm behind noise() is read by the host after the first micro-batch");
    refuse(options.tail != Tail::scale, "a captured window is always whole; give tails to another window");
    refuse(options.non_finite == NonFinite::drop_micro,
           "a micro-batch is dropped by the host; use NonFinite::drop_window or raise");
}

template <class S> CapturedWindow<S>::~CapturedWindow() { forget(); }

template <class S> void CapturedWindow<S>::forget() {
    peer::discard(std::exchange(graph_, nullptr));
    reserve_.reset();
    settled_ = false;
}

template <class S> Finished<S> CapturedWindow<S>::replay() {
    window_.expect_whole("replay");
    if (window_.micro_batches_ > 0)
        throw Error("[capture] the window is open, with " + std::to_string(window_.micro_batches_) +
                    " micro-batches in it; finish() or discard() it");
    if (!window_.once_.empty()) throw Error("[capture] a term that counts once() is added by the host");
    window_.expect_untouched();
    if (window_.parameters()[0].value().device() == Device::cpu) return ordinary();
    if (graph_ && places() != places_) forget();
    if (!graph_ && settled_) capture();
    return graph_ ? launch() : run();
}

// A window like any other, but that an error leaves nothing behind, as it does when it is captured.
template <class S> Finished<S> CapturedWindow<S>::ordinary() {
    try {
        work_(window_);
        expect_capturable();
        return window_.finish();
    } catch (...) {
        window_.discard();
        throw;
    }
}

// What its function has left there must not be the host's to do.
template <class S> void CapturedWindow<S>::expect_capturable() const {
    if (window_.micro_batches_ == 0) throw Error("[capture] no micro-batch has come");
    if (!window_.once_.empty()) throw Error("[capture] a term that counts once() is added by the host");
    if (!window_.effects_.empty())
        throw Error("[capture] effects, such as batch norm's running statistics, happen on the host");
}

// Its memory comes from the reserve.
template <class S> Finished<S> CapturedWindow<S>::run() {
    if (!reserve_) reserve_ = std::make_unique<memory::Reserve>(Device::cuda);
    const memory::Reserve::Use use(*reserve_);
    window_.discard();  // so that its sums, too, have their memory from there
    Finished<S> done = ordinary();
    settled_ = done.stepped && use.fresh() == 0;
    done.sum = done.sum.to(Device::cpu);  // it is not to keep memory of the reserve
    return done;
}

// Nothing is computed yet.
template <class S> void CapturedWindow<S>::capture() {
    if (!detail::ready(decisions_))
        decisions_ = Array<double>::empty({(sizeof(detail::Decisions<S>) + 7) / 8}, Device::cuda);
    step_.numbers = reinterpret_cast<const detail::Decisions<S>*>(decisions_.data());
    const auto over = [&] {
        window_.pass_.seed_at = nullptr;
        window_.optimizer_.capture(nullptr);
        window_.discard();
    };
    places_ = places();
    try {
        const memory::Reserve::Use use(*reserve_, true);
        // Nothing can be read while a window is captured; in the windows before it was compared.
        const Unverified off;
        peer::begin_capture();
        hand_over();
        graph_ = peer::end_capture();
    } catch (...) {
        peer::abandon_capture();
        over();
        forget();  // also the blocks that it holds, of which others have handles
        throw;
    }
    over();
    if (places() == places_) return;
    forget();
    throw Error("[capture] the window's function has moved a gradient or what the optimizer remembers");
}

// The whole window, and what finish() does.
template <class S> void CapturedWindow<S>::hand_over() {
    detail::Decisions<S>* const decisions = reinterpret_cast<detail::Decisions<S>*>(decisions_.raw());
    const WindowOptions<S>& options = window_.options_;
    window_.discard();  // its sums begin at 0 in every replay
    window_.pass_.seed_at = &decisions->seed;
    work_(window_);
    expect_capturable();
    micro_batches_ = window_.micro_batches_;

    const detail::Lift own(touch::held | touch::sealed);
    std::vector<detail::Update<S>> read, written;
    for (const Var<Array<S>>& parameter : window_.parameters())
        parameter.change_grad([&](Array<S>& gradient) {
            detail::Update<S>& to_write = written.emplace_back();
            to_write.value = gradient.writable();
            detail::Update<S>& to_read = read.emplace_back();
            to_read.gradient = gradient.data();
            to_read.size = to_write.size = gradient.size();
        });
    if (read.empty()) throw Error("[capture] no gradient has reached a parameter");
    const detail::Kernels<S>& kernel = detail::kernels<S>(Device::cuda);
    kernel.measure(read, true, decisions->found);
    peer::decide(conditions(), decisions);
    if (options.max_norm || options.max_value)
        kernel.limit(written, {&decisions->limit, &decisions->withheld});
    window_.optimizer_.capture(&step_);
    window_.optimizer_.step();
    if (options.average) options.average->launch({&decisions->average, &decisions->withheld});
}

template <class S> detail::Conditions<S> CapturedWindow<S>::conditions() const {
    const WindowOptions<S>& options = window_.options_;
    return {.sum = window_.sum_.value().data(),
            .count = window_.denominator_.counted().value().data(),
            .total = options.total,
            .tolerance = window_.denominator_.tolerance(),
            .max_norm = options.max_norm.value_or(0),
            .max_value = static_cast<S>(options.max_value.value_or(std::numeric_limits<double>::infinity())),
            .clips = options.max_norm.has_value()};
}

template <class S> Finished<S> CapturedWindow<S>::launch() {
    const WindowOptions<S>& options = window_.options_;
    Optimizer<S>& optimizer = window_.optimizer_;
    Rate<S> rate(optimizer);
    detail::Decisions<S> numbers;
    if (options.schedule) optimizer.schedule_learning_rate(options.schedule->at(window_.updates_));
    optimizer.decide(step_, numbers);
    if (options.average) numbers.average = options.average->numbers();
    numbers.seed = window_.seed();
    device_copy::bytes(decisions_.raw(), Device::cuda, &numbers, Device::cpu, sizeof numbers);
    peer::replay(*graph_);
    device_copy::bytes(&numbers, Device::cpu, decisions_.data(), Device::cuda, sizeof numbers);

    Finished<S> done{.micro_batches = micro_batches_,
                     .count = numbers.count,
                     .sum = Array<S>({}, {static_cast<S>(numbers.sum)})};
    if (options.max_norm) done.norm = numbers.norm;
    done.stepped = rate.stepped = !numbers.withheld;
    if (!done.stepped) {
        judge(numbers, done);
        return done;
    }
    optimizer.count_update(step_);
    if (options.average) ++options.average->updates_;
    ++window_.updates_;
    return done;
}

// Why nothing was updated.
template <class S> void CapturedWindow<S>::judge(const detail::Decisions<S>& found, Finished<S>& done) {
    const std::string nothing = "; nothing was updated";
    const double total = window_.options_.total;
    if (!(found.count > 0))
        throw Error("[capture] the window's " + std::to_string(micro_batches_) +
                    " micro-batches count 0 together: there is nothing to divide by" + nothing);
    if (!conditions().holds(found.count))
        throw Error("[capture] a total of " + in_words(total) + " was announced, but " +
                    in_words(found.count) + " came" + nothing);
    if (window_.options_.non_finite == NonFinite::raise)
        throw Error("[capture] " + in_words(found.found[1]) +
                    " elements of the gradients are infinite or NaN" + nothing +
                    "; go on with the next window, or choose NonFinite::drop_window");
    done.dropped = micro_batches_;
}

// Where parameters, gradients, moments and averages lie, after any of them that others hold has been
// copied for them.
template <class S> typename CapturedWindow<S>::Places CapturedWindow<S>::places() {
    Places all;
    for (const Var<Array<S>>& parameter : window_.parameters()) {
        parameter.change_value([&](Array<S>& value) { all.push_back(value.writable()); });
        Array<S>& gradient = parameter.node()->gradient;
        all.push_back(detail::ready(gradient) ? gradient.writable() : nullptr);
    }
    window_.optimizer_.tell_places(all);
    if (MovingAverage<S>* const average = window_.options_.average)
        for (Array<S>& each : average->averages_) all.push_back(each.writable());
    return all;
}

template class CapturedWindow<float>;
template class CapturedWindow<double>;
template void refill(const Array<float>&, const Array<float>&);
template void refill(const Array<double>&, const Array<double>&);
template void refill(const Array<std::int32_t>&, const Array<std::int32_t>&);

}  // namespace tally
