// The class AdamA is an example of an optimizer that a user writes. AdamA has the options of Adam.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "tally/train/optimizer.hpp"

namespace tally::lesson {

// AdamA adds each gradient to Adam's moments after a micro-batch, and then clears the gradient, so that
// free_grad() can free it. AdamA adds the sum of the squared gradients to v, and Adam adds the square of the
// summed gradients. With one micro-batch per update, AdamA is equal to AdamW. Zhang and others describe AdamA
// in "Adam Accumulation to Reduce Memory Footprints of both Activations and Gradients", 2023.
template <class S> class AdamA : public Adam<S> {
public:
    AdamA(std::vector<Var<Array<S>>> parameters, Adam<double>::Options options = {})
        : Adam<S>("AdamA", std::move(parameters), options, {"updates", "folds"}) {}

    // Call fold() after the backward() of each micro-batch. Adds the gradients to the moments, and clears the
    // gradients. The loss must be multiplied by the micro-batch's weight in the update.
    void fold() {
        this->require_unlocked("fold");
        const auto& parameters = this->parameters();
        auto& folds = this->count(1);
        std::vector<detail::Update<S>> first,
            later;  // only `first`, the first micro-batch of an update, decays the moments
        std::vector<std::size_t> reached;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (!parameters[i].has_grad()) continue;
            if (parameters[i].node()->grad_flags & grad_flag::holds_average)
                detail::throw_holds_average("AdamA", i);
            parameters[i].require_own_thread("fold", *parameters[i].node());
            detail::require_unlocked("fold", *parameters[i].node());
            detail::Update<S> change = this->state_of(i, this->moments);
            change.gradient = parameters[i].node()->gradient.data();  // used at once, so no grad() is needed
            (folds[i] == 0 ? first : later).push_back(change);
            reached.push_back(i);
        }
        detail::AdamStep<S> numbers = this->numbers(1);
        if (!first.empty()) this->kernel().adam(first, numbers);
        numbers.beta1 = numbers.beta2 = 1;
        if (!later.empty()) this->kernel().adam(later, numbers);
        for (std::size_t i : reached) {
            ++folds[i];
            parameters[i].node()->clear_gradient();  // nothing can fail after this point
        }
    }

protected:
    void update() override {  // also folds gradients that are not folded yet
        const auto& parameters = this->parameters();
        auto &updates = this->count(0), &folds = this->count(1);
        std::map<std::int64_t, std::vector<detail::Update<S>>> lists;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (folds[i] == 0 && !parameters[i].has_grad()) continue;
            detail::Update<S> change = this->state_of(i, this->moments);
            change.state = Write::add;  // adds to the moments that fold() has written
            parameters[i].modify_value([&](Array<S>& value) { change.value = value.writable(); }, "step");
            lists[updates[i] + 1].push_back(change);
        }
        fold();  // the last allocation, before any change
        for (const auto& [number, list] : lists) this->kernel().adam(list, this->numbers(number));
        for (std::size_t i = 0; i < parameters.size(); ++i)
            updates[i] += std::exchange(folds[i], 0) > 0 ? 1 : 0;
    }
    bool shrinks() const override { return true; }
};

template <class S> AdamA(std::initializer_list<Var<Array<S>>>, Adam<double>::Options = {}) -> AdamA<S>;

}  // namespace tally::lesson
