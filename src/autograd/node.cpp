// The sweep over recorded nodes, newest first, and their dismantling, oldest last.
#include "autograd/node.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include "autograd/onlooker.hpp"

namespace tally {

std::uint32_t number_this_thread() {
    static std::atomic<std::uint32_t> last{0};
#ifndef NDEBUG
    set_checks(Checks::outside);
#endif
    return context.thread = ++last;
}

// What a rule holds may be variables: their nodes join the list that is on its way, so that these need
// no stack either.
void dismantle_all(Node* doomed) {
    if (context.doomed) {
        doomed->next_doomed = *context.doomed;
        *context.doomed = doomed;
        return;
    }
    context.doomed = &doomed;
    while (doomed) {
        Node* node = doomed;
        doomed = node->next_doomed;
        node->dismantle(doomed);
    }
    context.doomed = nullptr;
}

namespace {
constexpr auto older = [](const Node* a, const Node* b) { return a->id < b->id; };
}  // namespace

// Where it is not simply the last of the near ones: older than that one, no room, or something in the heap.
void Sweep::insert_below(Node* node) {
    if (near_count_ == near_size || (!heap_.empty() && (near_count_ == 0 || node->id < near_[0]->id)))
        return spill(node);
    std::size_t place = near_count_++;
    for (; place > 0 && node->id < near_[place - 1]->id; --place) near_[place] = near_[place - 1];
    near_[place] = node;
}

void Sweep::spill(Node* node) {
    const auto push = [this](Node* older_than_near) {
        heap_.push_back(older_than_near);
        std::push_heap(heap_.begin(), heap_.end(), older);
    };
    if (near_count_ == near_size && older(near_[0], node)) {  // makes room: the oldest will be needed last
        push(near_[0]);
        std::copy(near_.begin() + 1, near_.end(), near_.begin());
        --near_count_;
        insert(node);
    } else {
        push(node);
    }
}

Node* Sweep::newest_of_heap() {
    std::pop_heap(heap_.begin(), heap_.end(), older);
    Node* node = heap_.back();
    heap_.pop_back();
    return node;
}

void Sweep::run() {
    const struct Around {
        const Node* const before = context.pulled;
        ~Around() { context.pulled = before; }
    } around;
    const Visitor* const visitor = visitor_;  // which no rule can change: asked once, and not for each node
    while (waits()) {
        Node* node = newest();
        node->state = State::spent;
        try {
            if (visitor && node->touched) (*visitor)(*node);
            if (context.onlooker) [[unlikely]]
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
        if (context.onlooker) context.onlooker->pulled(node);
    };
    ++node.refs;  // who looks on sees it once more, after it has let go of itself
    try {
        context.onlooker->pulling(node);
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
    while (waits()) {
        Node* node = newest();
        node->state = State::spent;
        node->forget();
        let_go_of(node);
    }
}

void refuse_thread(const char* what, const Node& node) {
    if (context.thread == thread_on_trial)
        throw OnTrial(std::string("[") + what + "] by a rule on trial; it will be called again");
    throw Error(std::string("[") + what + "] '" + node.op() + "' was recorded in thread " +
                std::to_string(node.thread) + " and is used in thread " + std::to_string(this_thread()) +
                "; a graph belongs to one thread");
}

void refuse_empty(const char* what) {
    throw Error(std::string("[") + what + "] this variable is empty: nothing was assigned to it");
}

void refuse_draft() {
    throw Error(
        "[backward] through the inside of a checkpointed function: nothing of it is there before it runs "
        "again; only what it returns can be used outside");
}

void refuse_unwanted(std::size_t input) {
    throw Error("[gradient] input " + std::to_string(input) + " wants no gradient; ask wants(" +
                std::to_string(input) + ") first");
}

void refuse_number(std::size_t input, std::size_t count) {
    throw Error("[gradient] the rule of '" + std::string(context.pulled->op()) + "' names input " +
                std::to_string(input) + "; it has " + std::to_string(count) +
                (count == 1 ? " input" : " inputs") + ", numbered from 0");
}

void refuse_in_sweep(const char* what) {
    throw Error(
        std::string("[") + what +
        "] inside a backward(), which would go on with some of its gradients changed; wait until it is "
        "over");
}

void refuse_held(const char* what, const std::string& parameter) {
    throw Error(
        std::string("[") + what + "] this parameter of " + parameter +
        " belongs to an open window with micro-batches in it, which alone changes it and its gradient; "
        "finish() or discard() the window first");
}

void Sweep::refuse(const Node* node) {
    throw Error("[backward] through '" + std::string(node->op()) +
                "' a second time: its saved values are gone; run forward again");
}

}  // namespace tally
