// Cross-entropy of logits against labels, fused with its softmax.
#include <string>

#include "autograd/error.hpp"
#include "cpu/families.hpp"
#include "cpu/runs.hpp"
#include "cpu/softmax.hpp"

namespace tally::cpu {

namespace {

[[noreturn]] void fail_label(std::int32_t label, std::size_t row, std::size_t classes) {
    throw Error("[cross_entropy] label " + std::to_string(label) + " in row " + std::to_string(row) +
                " is not one of the " + std::to_string(classes) + " classes");
}

template <class S>
void cross_entropy(const S* logits, const std::int32_t* labels, std::int32_t ignore, S* probabilities,
                   S* total, S* count, std::size_t rows, std::size_t classes) {
    S sum = S(0);
    std::size_t counted = 0;
    for (std::size_t r = 0; r < rows; ++r, logits += classes, probabilities += classes) {
        const std::int32_t label = labels[r];
        if (label != ignore && (label < 0 || static_cast<std::size_t>(label) >= classes))
            fail_label(label, r, classes);
        if (classes == 0) continue;
        const SoftmaxRow<S> row = softmax_row(logits, probabilities, classes);
        if (label == ignore) continue;
        sum += row.log_total - (logits[label] - row.largest);
        ++counted;
    }
    *total = sum;
    *count = static_cast<S>(counted);
}

template <class S>
void cross_entropy_back(const S* dtotal, const S* probabilities, const std::int32_t* labels,
                        std::int32_t ignore, Into<S[]> dlogits, std::size_t rows, std::size_t classes) {
    const auto times = [](auto p, auto d) { return p * d; };
    for (std::size_t r = 0; r < rows; ++r, probabilities += classes, dlogits.dst += classes) {
        if (labels[r] == ignore) {
            each(classes, dlogits, Same(), One<S>(S(0)));
            continue;
        }
        S& at_label = dlogits.dst[labels[r]];
        const S before = dlogits.how == Write::set ? nothing_yet<S>(1) : at_label;
        each(classes, dlogits, times, Run<S>{probabilities}, One<S>(*dtotal));
        at_label = before + *dtotal * (probabilities[labels[r]] - S(1));
    }
}

}  // namespace

template <class S>
void install_loss(Kernels<S>& t) {
    t.cross_entropy = cross_entropy<S>;
    t.cross_entropy_back = cross_entropy_back<S>;
}

template void install_loss(Kernels<float>&);
template void install_loss(Kernels<double>&);

}  // namespace tally::cpu
