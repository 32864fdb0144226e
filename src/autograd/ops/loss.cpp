// What a loss says to a prediction and a target that do not go together.
#include <string>

#include "tally/autograd/ops/loss.hpp"
#include "tally/base/error.hpp"

namespace tally {

namespace {

std::string extents(const Shape& shape) {  // as they are written in code
    const std::string text = to_string(shape);
    return "{" + text.substr(1, text.size() - 2) + "}";
}

}  // namespace

// Broadcasting would count every pair: (n, 1) against (n) is n * n differences.
void fail_loss_shapes(const char* op, const Shape& prediction, const Shape& target) {
    const std::string way_out =
        prediction.size() == target.size()
            ? "write reshape(prediction, " + extents(target) + ")"
            : "where a target is meant to repeat write broadcast_to(target, " + extents(prediction) + ")";
    throw Error(std::string("[") + op + "] prediction and target must have one shape; they are " +
                to_string(prediction) + " and " + to_string(target) + ": " + way_out);
}

void fail_labels(const Shape& logits, const Shape& labels) {
    const bool column =
        logits.rank() == 2 && labels.rank() > 1 && labels.size() == static_cast<std::size_t>(logits[0]);
    throw Error("[cross_entropy] wants logits (rows, classes) and labels (rows); they are " +
                to_string(logits) + " and " + to_string(labels) +
                (column ? ": write labels.reshaped({" + std::to_string(labels.size()) + "})" : ""));
}

}  // namespace tally
