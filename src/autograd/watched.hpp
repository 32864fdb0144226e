// What an operation does for those who look on: it says what it keeps, and has its rule tried. Apart from the
// operation, and cold, so that nobody else pays for them.
#pragma once

#include <vector>

#include "tally/autograd/keep.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/trial.hpp"
#include "tally/autograd/var.hpp"

namespace tally::detail {

// Before it reads from its inputs, and they are let go: what is in use now is what the operation needed.
template <class Op> [[gnu::cold, gnu::noinline]] void tell_recorded(Op& operation) {
    std::vector<ObservedValue> kept;
    const auto note = [&]<class V>(const V& value) {
        if (&value != &nothing<V> && ready(value)) kept.push_back(observed(value));
    };
    try {
        operation.with_kept([&](const auto&... each) { (note(each), ...); });
        watching::detail::observer->computed({operation.op(), &operation, observed(operation.value), kept});
    } catch (...) {
        let_go_of(&operation);
        throw;
    }
}

template <class Op> [[gnu::cold, gnu::noinline]] void pull_on_trial(Op& operation, Sweep& sweep) {
    operation.pull_with(
        sweep, [&operation]() __attribute__((cold)) {
            using T = decltype(operation.value);
            const rule_check::RuleCall<T> rule{operation.op(), operation.gradient, operation.gradients(),
                                               context.thread};
            const auto arrived = [](const GradientView<T>& to) { return to && to.has_arrived(); };
            bool some_arrived = false;
            for (const GradientView<T>& to : rule.to) some_arrived = some_arrived || arrived(to);
            if constexpr (Op::custom)
                if (some_arrived) {
                    const Meanwhile<std::uint32_t> nothing_from_outside(context.thread, thread_on_trial);
                    try {
                        operation.call_custom_rule(true);
                    } catch (
                        const OnTrial&) {  // it touches a graph made outside of it, and is called once only
                    }
                }
            const auto with_kept = [&](const auto& f) { return operation.with_kept(f); };
            const auto call = [&]() __attribute__((cold)) { operation.call_rule(false); };
            while (!rule_check::called(rule, with_kept, call)) continue;
            if (!Op::custom) return;
            for (std::size_t i = 0; i < rule.to.size(); ++i)
                if (rule.to[i] && !arrived(rule.to[i])) refuse_forgotten(rule.op, i, form(*rule.to[i].value));
        });
}

}  // namespace tally::detail
