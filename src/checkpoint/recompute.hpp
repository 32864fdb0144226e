// A block runs again without computing everything: some results were kept, and others nobody reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/recording_hook.hpp"
#include "tally/checkpoint/trace.hpp"

namespace tally::detail {

template <class X> inline constexpr bool is_var = false;
template <class T> inline constexpr bool is_var<Var<T>> = true;

// visit(Var&) for every variable that x is or holds: of a tuple, a range, or a type with an each()
// of its own.
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

template <class T> using KeptResults =
    std::vector<std::pair<std::size_t, Saved<T>>>;  // by the operation's place

template <class Result> std::vector<const Node*> nodes_of(Result& y) {
    std::vector<const Node*> nodes;
    each_var(y, [&](auto& result) { nodes.push_back(&result.checked("checkpoint")); });
    return nodes;
}

// Ends the first run, whose results are y: those worth keeping.
template <class T, class Result> KeptResults<T> finish_recording(CheckpointTrace& run, Result& y) {
    const auto places = run.finish_recording(nodes_of(y));
    KeptResults<T> kept;
    std::size_t i = 0;
    each_var(y, [&](auto& result) {
        if constexpr (std::is_same_v<decltype(result), Var<T>&>)
            if (places[i]) kept.emplace_back(*places[i], Saved<T>(&result.value()));
        ++i;
    });
    return kept;
}

// A block that runs again, some of whose results were kept.
template <class T> class Recompute final : public CheckpointTrace {
public:
    Recompute(TraceLog& block, const KeptResults<T>& kept)
        : CheckpointTrace(block, Mode::replay), kept_(kept) {}

private:
    bool restore(std::size_t place, OpInfo& operation) const override {
        auto* const mine = dynamic_cast<OpInfoOf<T>*>(&operation);
        const auto found = std::find_if(kept_.begin(), kept_.end(),
                                        [&](const auto& result) { return result.first == place; });
        if (!mine || found == kept_.end()) return false;
        mine->value = found->second.get("checkpoint");
        return true;
    }
    const KeptResults<T>& kept_;
};

struct EnableGrad : private ScopedValue<bool> {  // also where backward() was called inside NoGrad
    EnableGrad() : ScopedValue(context.recording, true) {}
};

// What a block did, once more: where it looks at a value that is not needed, and was not computed, whole.
template <class Run> auto run_again(TraceLog& block, Run run) {
    const EnableGrad on;
    try {
        return run();
    } catch (const OutOfMemory&) {
        throw;
    } catch (...) {
        if (!block.stopped_early) throw;
    }
    block.needed = block.steps.size();
    return run();
}

}  // namespace tally::detail
