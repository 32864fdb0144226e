// What an operation does for those who look on: it says what it keeps, and has its rule tried. Apart from the
// operation, and cold, so that nobody else pays for them.
#pragma once

#include <vector>

#include "tally/autograd/backward_check.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/save_for_backward.hpp"
#include "tally/autograd/var.hpp"

namespace tally::detail {

// Before it reads from its inputs, and they are let go: what is in use now is what the operation needed.
template <class Op> [[gnu::cold, gnu::noinline]] void notify_recorded(Op& operation) {
    std::vector<ValueInfo> kept;
    const auto note = [&]<class V>(const V& value) {
        if (&value != &nothing<V> && has_memory(value)) kept.push_back(observed(value));
    };
    try {
        operation.with_kept([&](const auto&... each) { (note(each), ...); });
        watching::detail::observer->on_forward({operation.op(), &operation, observed(operation.value), kept});
    } catch (...) {
        unref(&operation);
        throw;
    }
}

template <class Op>
[[gnu::cold, gnu::noinline]] void run_checked_backward(Op& operation, BackwardPass& backward_pass) {
    operation.run_backward(
        backward_pass, [&operation]() __attribute__((cold)) {
            using T = decltype(operation.value);
            const rule_check::BackwardCall<T> rule{operation.op(), operation.gradient, operation.gradients(),
                                                   context.thread_id};
            const auto arrived = [](const GradientView<T>& to) { return to && to.is_present(); };
            bool some_arrived = false;
            for (const GradientView<T>& to : rule.to) some_arrived = some_arrived || arrived(to);
            if constexpr (Op::custom)
                if (some_arrived) {
                    const ScopedValue<std::uint32_t> nothing_from_outside(context.thread_id,
                                                                          thread_during_check);
                    try {
                        operation.call_custom_backward(true);
                    } catch (
                        const DuringCheck&) {  // it touches a graph made outside of it, and is called once only
                    }
                }
            const auto with_kept = [&](const auto& f) { return operation.with_kept(f); };
            const auto call = [&]() __attribute__((cold)) { operation.call_backward(false); };
            while (!rule_check::run_checked(rule, with_kept, call)) continue;
            if (!Op::custom) return;
            for (std::size_t i = 0; i < rule.to.size(); ++i)
                if (rule.to[i] && !arrived(rule.to[i]))
                    throw_no_gradient_written(rule.op, i, describe(*rule.to[i].value));
        });
}

}  // namespace tally::detail
