// Notifies the observer of an operation, and checks the backward function of the operation. All functions are
// marked cold, so that programs without observers or checks stay fast.
#pragma once

#include <vector>

#include "tally/autograd/backward_check.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/save_for_backward.hpp"
#include "tally/autograd/var.hpp"

namespace tally::detail {

// Runs before the inputs are released, so that the memory in use still includes the inputs.
template <class Op> [[gnu::cold, gnu::noinline]] void notify_recorded(Op& operation) {
    std::vector<ValueInfo> saved;
    const auto append = [&]<class V>(const V& value) {
        if (&value != &unsaved_value<V> && has_memory(value)) saved.push_back(value_info(value));
    };
    try {
        operation.with_saved([&](const auto&... each) { (append(each), ...); });
        instrumentation::detail::observer->on_forward(
            {operation.op(), &operation, value_info(operation.value), saved});
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
            const auto has_gradient = [](const GradientRef<T>& grad) { return grad && grad.is_present(); };
            // An existing gradient would hide a missing write, so custom functions first run on temporaries.
            bool any_gradient = false;
            for (const GradientRef<T>& grad : call.grads) any_gradient = any_gradient || has_gradient(grad);
            if constexpr (Op::custom)
                if (any_gradient) {
                    const ScopedValue<std::uint32_t> no_outside_graph(context.thread_id, graphless_thread_id);
                    try {
                        operation.call_custom_backward(true);
                    } catch (const GraphUsedDuringCheck&) {
                        // A function that uses another graph can run only once, so this check is skipped.
                    }
                }
            const auto with_saved = [&](const auto& f) { return operation.with_saved(f); };
            const auto run = [&]() __attribute__((cold)) { operation.call_backward(false); };
            while (!backward_check::run_checked(call, with_saved, run)) continue;
            if (!Op::custom) return;
            for (std::size_t i = 0; i < call.grads.size(); ++i)
                if (call.grads[i] && !has_gradient(call.grads[i]))
                    throw_no_gradient_written(call.op, i, describe(*call.grads[i].value));
        });
}

}  // namespace tally::detail
