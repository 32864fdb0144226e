// Assigns thread ids, destroys nodes, and throws the errors of the graph.
#include "tally/autograd/node.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include "tally/autograd/backward_check.hpp"
#include "tally/base/text.hpp"

namespace tally::detail {

std::uint32_t assign_thread_id() {
    static std::atomic<std::uint32_t> last{0};
    return context.thread_id = ++last;
}

// Destroying a backward function that owns a Var calls this function again. The inner call extends the list.
void destroy_iteratively(Node* pending) {
    if (context.pending_destruction) {
        pending->next_to_destroy = *context.pending_destruction;
        *context.pending_destruction = pending;
        return;
    }
    context.pending_destruction = &pending;
    while (pending) {
        Node* node = pending;
        pending = node->next_to_destroy;
        node->destroy(pending);
    }
    context.pending_destruction = nullptr;
}

void throw_wrong_thread(const char* call, const Node& node) {
    if (context.thread_id == graphless_thread_id)
        throw GraphUsedDuringCheck(std::string("[") + call + "] the backward function uses '" + node.op() +
                                   "' of an earlier graph, which the check cannot repeat; run the backward "
                                   "function without the check");
    throw Error(call, "'", node.op(), "' was recorded in thread ", node.thread_id, " and is used in thread ",
                this_thread_id(), "; a graph belongs to one thread");
}

void throw_empty(const char* call) {
    throw Error(std::string("[") + call + "] this variable is empty: nothing was assigned to it");
}

void throw_bad_learning_rate(double rate) {
    throw Error("[sgd_step] the learning rate must be finite and at least 0; it is " + to_text(rate));
}

void require_distinct(std::vector<std::pair<const Node*, std::size_t>> parameters) {
    std::sort(parameters.begin(), parameters.end());
    for (std::size_t i = 1; i < parameters.size(); ++i)
        if (parameters[i].first == parameters[i - 1].first)
            throw Error("sgd_step", "parameters ", parameters[i - 1].second, " and ", parameters[i].second,
                        " are the same variable, which would be stepped twice; pass it once");
}

void throw_inside_checkpoint() {
    throw Error(
        "[backward] this value was computed inside a checkpointed function, whose graph is not kept; "
        "use what the function returns");
}

void throw_no_gradient(const Node& node, const std::string& description) {
    throw Error(std::string("[grad] no gradient has arrived at this '") + node.op() + "' of " + description +
                (node.state == State::leaf ? "; call backward() on a result that uses it"
                                           : "; only parameters keep one"));
}

void throw_gradient_not_needed(std::size_t input) {
    throw Error("gradient", "input ", input, " requires no gradient; check needs_grad(", input, ") first");
}

void throw_no_such_input(std::size_t input, std::size_t count) {
    throw Error("gradient", "the backward function of '", context.current_node->op(), "' uses input ", input,
                ", but the operation has ", count, count == 1 ? " input" : " inputs",
                "; the first input has number 0");
}

void throw_no_gradient_written(const char* op, std::size_t input, const std::string& description) {
    throw Error("[backward] the backward function of '" + std::string(op) + "' gave no gradient to input " +
                std::to_string(input) + " of " + description +
                ", which requires a gradient; add() zeros if the output ignores this input");
}

void throw_during_backward(const char* call) {
    throw Error(std::string("[") + call +
                "] a backward() is running and uses values or gradients that this call would change; make "
                "the call after backward() returns");
}

}  // namespace tally::detail
