// recompute() runs a checkpointed function again during the backward pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/intercept.hpp"
#include "tally/checkpoint/trace.hpp"

namespace tally::detail {

template <class X> inline constexpr bool is_var = false;
template <class T> inline constexpr bool is_var<Var<T>> = true;

// Calls visit(Var&) for each variable in x. x is a variable, a tuple, a range or a type with a member each().
template <class X, class Visit> void each_var(X& x, Visit visit) {
    if constexpr (is_var<std::remove_const_t<X>>) {
        visit(x);
    } else if constexpr (requires { std::tuple_size<std::remove_const_t<X>>::value; }) {
        std::apply([&](auto&... part) { (each_var(part, visit), ...); }, x);
    } else if constexpr (std::ranges::range<X>) {
        if constexpr (is_var<std::ranges::range_value_t<X>>)
            for (auto& part : x) visit(part);
    } else if constexpr (requires { x.each(visit); }) {
        x.each(visit);
    }
}

// SavedResults contain pairs of an operation's index and the operation's saved result.
template <class T> using SavedResults = std::vector<std::pair<std::size_t, Saved<T>>>;

template <class Result> std::vector<const Node*> nodes_of(Result& y) {
    std::vector<const Node*> nodes;
    each_var(y, [&](auto& result) { nodes.push_back(&result.node_or_throw("checkpoint")); });
    return nodes;
}

// Ends the first run, which returned y, and saves results that the recomputation will not compute.
template <class T, class Result> SavedResults<T> save_results(CheckpointTrace& run, Result& y) {
    const auto indices = run.end_first_run(nodes_of(y));
    SavedResults<T> saved_results;
    std::size_t i = 0;
    each_var(y, [&](auto& result) {
        if constexpr (std::is_same_v<decltype(result), Var<T>&>)
            if (indices[i]) saved_results.emplace_back(*indices[i], Saved<T>(&result.value()));
        ++i;
    });
    return saved_results;
}

// The class RecomputeTrace restores saved results during the recomputation of a checkpointed function.
template <class T> class RecomputeTrace final : public CheckpointTrace {
public:
    RecomputeTrace(TraceLog& log, const SavedResults<T>& saved_results)
        : CheckpointTrace(log, Mode::recompute), saved_(saved_results) {}

private:
    bool restore(std::size_t index, OpInfo& operation) const override {
        auto* const mine = dynamic_cast<OpInfoOf<T>*>(&operation);
        const auto found = std::find_if(saved_.begin(), saved_.end(),
                                        [&](const auto& result) { return result.first == index; });
        if (!mine || found == saved_.end()) return false;
        mine->value = found->second.get("checkpoint");
        return true;
    }
    const SavedResults<T>& saved_;
};

// EnableGrad turns recording on, because backward() may have been called inside NoGrad.
struct EnableGrad : private ScopedValue<bool> {
    EnableGrad() : ScopedValue(context.recording, true) {}
};

// Runs a checkpointed function again. If this run throws and has skipped values, which may be the reason,
// runs the function a third time and computes all values.
template <class Run> auto recompute(TraceLog& log, Run run) {
    const EnableGrad on;
    try {
        return run();
    } catch (const OutOfMemory&) {
        throw;
    } catch (...) {
        if (!log.stopped_early) throw;
    }
    log.needed = log.operations.size();
    return run();
}

}  // namespace tally::detail
