// The loop over waiting nodes, newest first, and what becomes of them after an error.
#include "tally/autograd/sweep.hpp"

#include <string>

#include "tally/autograd/observer.hpp"

namespace tally::detail {

void Sweep::run() {
    const Meanwhile<const Node*> around(context.pulled, context.pulled);
    const Visitor* const visitor = visitor_;  // which no rule can change: asked once, and not for each node
    while (!waiting_.empty()) {
        Node* node = waiting_.take();
        node->state = State::spent;
        try {
            if (visitor && node->touched) visitor->visit(visitor->who, *node);
            if (watching::detail::observer) [[unlikely]]
                pull_and_tell(*node);
            else
                node->pull(*this);
        } catch (...) {
            if (context.pulled == node) node->take_back();
            node->forget();
            let_go_of(node);
            throw;
        }
    }
}

[[gnu::cold, gnu::noinline]] void Sweep::pull_and_tell(Node& node) {
    const auto pulled = [&] {  // a rule may have ended the looking on
        if (watching::detail::observer) watching::detail::observer->pulled(node);
    };
    ++node.refs;  // who looks on sees it once more, after it has let go of itself
    try {
        watching::detail::observer->pulling(node);
        node.pull(*this);
    } catch (...) {
        --node.refs;  // the sweep still holds it
        pulled();
        throw;
    }
    pulled();  // when this throws, run() lets go in our place
    let_go_of(&node);
}

// After an error what was queued is spent: its values may be half used.
void Sweep::give_up() {
    while (!waiting_.empty()) {
        Node* node = waiting_.take();
        node->state = State::spent;
        node->forget();
        let_go_of(node);
    }
}

void Sweep::refuse(const Node* node) {
    throw Error("[backward] through '" + std::string(node->op()) +
                "' a second time: its saved values are gone; run forward again");
}

}  // namespace tally::detail
