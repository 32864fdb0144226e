// A BackwardPass visits the nodes of a graph from newest to oldest, and runs each backward function once.
#pragma once

#include <cstdint>

#include "tally/autograd/node.hpp"
#include "tally/base/newest_first.hpp"

namespace tally::detail {

class BackwardPass {
public:
    // A BackwardPass calls the hook before the backward function of each node that has received a gradient.
    struct Hook {
        void (*call)(const void* callable, Node& node);
        const void* callable;
    };

    // A BackwardPass visits only nodes newer than `oldest_target_id`, which is 0 in backward() and the
    // smallest id of a target in grad(). In grad(), leaves that are not targets receive no gradient.
    explicit BackwardPass(std::uint64_t oldest_target_id = 0, const Hook* hook = nullptr)
        : oldest_target_id_(oldest_target_id), hook_(hook) {
        if (context.backward_passes++ > 0) return;
        context.backward_start_id = context.next_id;
        ++backward_calls;
    }
    BackwardPass(const BackwardPass&) = delete;
    BackwardPass& operator=(const BackwardPass&) = delete;
    ~BackwardPass() {
        --context.backward_passes;
        if (!queue_.empty()) [[unlikely]]  // after an error
            consume_queued_nodes();
    }

    // Returns whether the node needs a gradient. Queues a fresh operation, and rejects a consumed operation.
    [[gnu::always_inline]] bool enqueue_if_needed(Node* node) {
        const State state = node->state;  // a switch would become a jump table, which is slower here
        if (state == State::fresh && node->id > oldest_target_id_) [[likely]] {
            node->state = State::queued;
            ++node->refs;
            queue_.push(node);
            return true;
        }
        if (state == State::leaf) {
            // Clears the flag of earlier backward functions, so that clear_first_writes() clears only
            // gradients that the next backward function has created.
            node->grad_flags &= static_cast<std::uint8_t>(~grad_flag::first_write);
            return oldest_target_id_ == 0 || node->is_grad_target;
        }
        if (state == State::queued) return true;
        if (state == State::constant) return false;
        if (node->id > oldest_target_id_) throw_consumed(oldest_target_id_ ? "grad" : "backward", node);
        return node->is_grad_target;
    }
    void run();  // returns when the queue is empty

    [[noreturn]] static void throw_consumed(const char* call, const Node* node);

private:
    void consume_queued_nodes();
    void run_observed(Node& node);

    NewestFirst<Node> queue_;
    std::uint64_t oldest_target_id_;
    const Hook* hook_;
};

}  // namespace tally::detail
