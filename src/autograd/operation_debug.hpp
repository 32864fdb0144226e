// Notifies the observer of an operation and checks its backward function. These functions are cold and
// separate, so that normal runs do not pay for them.
#pragma once

#include <vector>

#include "tally/autograd/backward_check.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/save_for_backward.hpp"
#include "tally/autograd/var.hpp"

namespace tally::detail {

// Call this before the inputs are released, so that the memory in use includes all that the operation needed.
template <class Op> [[gnu::cold, gnu::noinline]] void notify_recorded(Op& operation) {
    std::vector<ValueInfo> saved;
    const auto append = [&]<class V>(const V& value) {
        if (&value != &nothing<V> && has_memory(value)) saved.push_back(observed(value));
    };
    try {
        operation.with_saved([&](const auto&... each) { (append(each), ...); });
        watching::detail::observer->on_forward(
            {operation.op(), &operation, observed(operation.value), saved});
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
            const backward_check::BackwardCall<T> call{operation.op(), operation.gradient,
                                                       operation.gradients(), context.thread_id};
            const auto has_gradient = [](const GradientView<T>& to) { return to && to.is_present(); };
            bool any_gradient = false;  // if true, a missing write shows only in a run into temporary nodes
            for (const GradientView<T>& to : call.to) any_gradient = any_gradient || has_gradient(to);
            if constexpr (Op::custom)
                if (any_gradient) {
                    const ScopedValue<std::uint32_t> no_outside_graph(context.thread_id, thread_during_check);
                    try {
                        operation.call_custom_backward(true);
                    } catch (const DuringCheck&) {  // the function uses a graph, which only one run can do
                    }
                }
            const auto with_saved = [&](const auto& f) { return operation.with_saved(f); };
            const auto run = [&]() __attribute__((cold)) { operation.call_backward(false); };
            while (!backward_check::run_checked(call, with_saved, run)) continue;
            if (!Op::custom) return;
            for (std::size_t i = 0; i < call.to.size(); ++i)
                if (call.to[i] && !has_gradient(call.to[i]))
                    throw_no_gradient_written(call.op, i, describe(*call.to[i].value));
        });
}

}  // namespace tally::detail
