// The loop over waiting nodes, newest first, and what becomes of them after an error.
#include "tally/autograd/backward_pass.hpp"

#include <string>

#include "tally/autograd/observer.hpp"

namespace tally::detail {

void BackwardPass::run() {
    const ScopedValue<const Node*> around(context.current_node, context.current_node);
    const Hook* const hook = hook_;  // which no rule can change: asked once, and not for each node
    while (!queue_.empty()) {
        Node* node = queue_.pop();
        node->state = State::consumed;
        try {
            if (hook && node->grad_flags) hook->visit(hook->who, *node);
            if (watching::detail::observer) [[unlikely]]
                run_observed(*node);
            else
                node->backward(*this);
        } catch (...) {
            if (context.current_node == node) node->rollback_gradients();
            node->clear();
            unref(node);
            throw;
        }
    }
}

[[gnu::cold, gnu::noinline]] void BackwardPass::run_observed(Node& node) {
    const auto after = [&] {  // a rule may have ended the looking on
        if (watching::detail::observer) watching::detail::observer->after_backward(node);
    };
    ++node.refs;  // who looks on sees it once more, after it has let go of itself
    try {
        watching::detail::observer->before_backward(node);
        node.backward(*this);
    } catch (...) {
        --node.refs;  // the sweep still holds it
        after();
        throw;
    }
    after();  // when this throws, run() lets go in our place
    unref(&node);
}

// After an error what was queued is spent: its values may be half used.
void BackwardPass::abort() {
    while (!queue_.empty()) {
        Node* node = queue_.pop();
        node->state = State::consumed;
        node->clear();
        unref(node);
    }
}

void BackwardPass::throw_consumed(const Node* node) {
    throw Error("[backward] through '" + std::string(node->op()) +
                "' a second time: its saved values are gone; run forward again");
}

}  // namespace tally::detail
