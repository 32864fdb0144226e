// The sweep, which is all of backward: newest first, each node once, no recursion.
#pragma once

#include <cstdint>

#include "tally/autograd/node.hpp"
#include "tally/base/newest_first.hpp"

namespace tally::detail {

class BackwardPass {
public:
    struct Hook {  // sees each node before it is pulled
        void (*visit)(const void* who, Node& node);
        const void* who;
    };

    // With an oldest target, only targets receive gradients, and what lies below that one is left alone.
    explicit BackwardPass(std::uint64_t oldest_target = 0, const Hook* hook = nullptr)
        : oldest_target_(oldest_target), hook_(hook) {
        if (context.backward_passes++ > 0) return;
        context.backward_start_id = context.next_id;
        ++backward_calls;
    }
    BackwardPass(const BackwardPass&) = delete;
    BackwardPass& operator=(const BackwardPass&) = delete;
    ~BackwardPass() {
        --context.backward_passes;
        if (!queue_.empty()) [[unlikely]]
            abort();
    }

    // Says whether an input will receive a gradient; one that was computed then waits for its turn.
    [[gnu::always_inline]] bool enqueue_if_needed(Node* node) {
        const State state = node->state;  // no switch: a jump through a table costs more than all of this
        if (state == State::fresh && node->id > oldest_target_) [[likely]] {
            node->state = State::queued;
            ++node->refs;
            queue_.push(node);
            return true;
        }
        if (state == State::leaf) {
            node->grad_flags &=
                static_cast<std::uint8_t>(~grad_flag::first_write);  // by the rules before this one
            return oldest_target_ == 0 || node->is_grad_target;
        }
        if (state == State::queued) return true;
        if (state == State::constant) return false;
        if (node->id > oldest_target_) throw_consumed(node);
        return node->is_grad_target;
    }
    void run();  // until nothing waits

    [[noreturn]] static void throw_consumed(const Node* node);

private:
    void abort();
    void run_observed(Node& node);

    NewestFirst<Node> queue_;
    std::uint64_t oldest_target_;
    const Hook* hook_;
};

}  // namespace tally::detail
