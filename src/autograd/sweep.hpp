// The sweep, which is all of backward: newest first, each node once, no recursion.
#pragma once

#include <cstdint>

#include "tally/autograd/node.hpp"
#include "tally/base/newest_first.hpp"

namespace tally::detail {

class Sweep {
public:
    struct Visitor {  // sees each node before it is pulled
        void (*visit)(const void* who, Node& node);
        const void* who;
    };

    // With an oldest target, only targets receive gradients, and what lies below that one is left alone.
    explicit Sweep(std::uint64_t oldest_target = 0, const Visitor* visitor = nullptr)
        : oldest_target_(oldest_target), visitor_(visitor) {
        if (context.sweeps++ > 0) return;
        context.swept_from = context.next_id;
        ++backward_calls;
    }
    Sweep(const Sweep&) = delete;
    Sweep& operator=(const Sweep&) = delete;
    ~Sweep() {
        --context.sweeps;
        if (!waiting_.empty()) [[unlikely]]
            give_up();
    }

    // Says whether an input will receive a gradient; one that was computed then waits for its turn.
    [[gnu::always_inline]] bool reaches(Node* node) {
        const State state = node->state;  // no switch: a jump through a table costs more than all of this
        if (state == State::fresh && node->id > oldest_target_) [[likely]] {
            node->state = State::queued;
            ++node->refs;
            waiting_.add(node);
            return true;
        }
        if (state == State::leaf) {
            node->touched &= static_cast<std::uint8_t>(~touch::asked);  // by the rules before this one
            return oldest_target_ == 0 || node->target;
        }
        if (state == State::queued) return true;
        if (state == State::constant) return false;
        if (node->id > oldest_target_) refuse(node);  // spent
        return node->target;
    }
    void run();  // until nothing waits

    [[noreturn]] static void refuse(const Node* node);  // spent

private:
    void give_up();
    void pull_and_tell(Node& node);

    NewestFirst<Node> waiting_;
    std::uint64_t oldest_target_;
    const Visitor* visitor_;
};

}  // namespace tally::detail
