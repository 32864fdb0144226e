// Wrappers around a window.
#include "tally/train/accumulate.hpp"

#include <utility>

namespace tally {

AccumulationSteps::AccumulationSteps(std::map<std::int64_t, std::int64_t> from_epoch)
    : from_epoch_(std::move(from_epoch)) {
    if (from_epoch_.empty())
        throw Error(
            "[accumulate] no steps are given; write 4, or {{0, 8}, {4, 2}} for 8 and from epoch 4 on 2");
    for (const auto& [epoch, steps] : from_epoch_) {
        if (epoch < 0) throw Error("[accumulate] there is no epoch " + std::to_string(epoch));
        if (steps < 1)
            throw Error("[accumulate] an update needs at least one micro-batch; from epoch " +
                        std::to_string(epoch) + " on " + std::to_string(steps) + " are asked for");
    }
}

std::int64_t AccumulationSteps::at(std::int64_t epoch) const {
    const auto later = from_epoch_.upper_bound(epoch);
    return later == from_epoch_.begin() ? 1 : std::prev(later)->second;
}

std::string AccumulationSteps::in_words() const {
    if (from_epoch_.size() == 1 && from_epoch_.begin()->first == 0)
        return std::to_string(from_epoch_.begin()->second);
    std::string all;
    for (const auto& [epoch, steps] : from_epoch_)
        all += (all.empty() ? "{" : ", {") + std::to_string(epoch) + ", " + std::to_string(steps) + "}";
    return "{" + all + "}";
}

template <class S>
Accumulate<S>::Accumulate(Optimizer<S>& optimizer, AccumulationSteps steps, Reduction reduction, Tail tail)
    : steps_(std::move(steps)),
      window_(optimizer, {.micro_batches = steps_.at(0), .reduction = reduction, .tail = tail}) {
    for (const Var<Array<S>>& parameter : optimizer.parameters()) calls_.look_at(parameter.node()->touched);
    calls_.restart();
}

template <class S> std::string Accumulate<S>::announcement() const {
    return "Wrapping '" + window_.optimizer().name() + "' optimizer with GA of " +
           std::to_string(window_.planned()) + " steps";
}

template <class S> bool Accumulate<S>::step(std::int64_t items) {
    const auto refuse = [&](const std::string& why) {  // its gradient is there already
        window_.whole([&] { throw Error("[accumulate] " + why + ". Now discard() the window"); });
    };
    if (const std::int64_t calls = calls_.restart(); calls > 1)
        refuse(std::to_string(calls) +
               " backward() calls have reached the parameters since the last step(); call step() after each "
               "backward(), or write (a + b).backward() if a micro-batch has several losses");
    if (items < 1) refuse("a micro-batch of " + std::to_string(items) + " items has no mean");
    const std::int64_t before = window_.empty() ? items : window_.items() / window_.micro_batches();
    if (items != before && window_.options().reduction == Reduction::mean)
        refuse("this micro-batch has " + std::to_string(items) + " items, those before " +
               std::to_string(before) +
               ": the mean of their means is not the mean over all. Window::add() weighs them right; so do "
               "losses that are sums, with Reduction::sum");
    window_.after_backward(1, items);
    const bool stepped = window_.full() && window_.finish().stepped;
    calls_.restart();
    return stepped;
}

template <class S> bool Accumulate<S>::flush() {
    const bool stepped = window_.flush().stepped;
    calls_.restart();
    return stepped;
}

template <class S> void Accumulate<S>::begin_epoch(std::int64_t epoch) {
    window_.plan(steps_.at(epoch));
    if (window_.full()) window_.finish();
    calls_.restart();
}

template class Accumulate<float>;
template class Accumulate<double>;

}  // namespace tally
