// The backward loop runs queued nodes from newest to oldest and cleans up after an error.
#include "tally/autograd/backward_pass.hpp"

#include "tally/autograd/observer.hpp"

namespace tally::detail {

void BackwardPass::run() {
    const ScopedValue<const Node*> restore_current_node(context.current_node, context.current_node);
    const Hook* const hook = hook_;  // a local copy; the compiler would reload a member after each call
    while (!queue_.empty()) {
        Node* node = queue_.pop();
        node->state = State::consumed;
        try {
            if (hook && node->received_gradient()) hook->call(hook->callable, *node);
            if (instrumentation::detail::observer) [[unlikely]]
                run_observed(*node);
            else
                node->backward(*this);
        } catch (...) {
            if (context.current_node == node) node->clear_first_writes();
            node->release();
            unref(node);
            throw;
        }
    }
}

[[gnu::cold, gnu::noinline]] void BackwardPass::run_observed(Node& node) {
    const auto notify_after_backward = [&] {
        // The backward function may have ended the Observer::Scope.
        if (instrumentation::detail::observer) instrumentation::detail::observer->after_backward(node);
    };
    ++node.refs;  // backward() drops the reference of the BackwardPass, but after_backward() reads the node
    try {
        instrumentation::detail::observer->before_backward(node);
        node.backward(*this);
    } catch (...) {
        --node.refs;  // cannot reach 0, because run() still owns the pass's reference
        notify_after_backward();
        throw;
    }
    notify_after_backward();  // if this throws, run() drops the extra reference
    unref(&node);
}

// Marks the queued nodes as consumed after an error, because their gradients may lack contributions.
void BackwardPass::consume_queued_nodes() {
    while (!queue_.empty()) {
        Node* node = queue_.pop();
        node->state = State::consumed;
        node->release();
        unref(node);
    }
}

void BackwardPass::throw_consumed(const char* call, const Node* node) {
    throw Error(call, "a backward pass has already used '", node->op(),
                "' and freed its saved values; run the forward pass again");
}

}  // namespace tally::detail
