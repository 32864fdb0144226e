// Implements the cross-entropy of logits and labels, fused with softmax.
#include <string>

#include "tally/base/error.hpp"
#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/simd_loops.hpp"
#include "tally/cpu/softmax.hpp"

namespace tally::cpu {

namespace {

[[noreturn]] void fail_label(std::int32_t label, std::size_t row, std::size_t classes) {
    throw Error("[cross_entropy] label " + std::to_string(label) + " in row " + std::to_string(row) +
                " is not one of the " + std::to_string(classes) + " classes");
}

template <class S> void cross_entropy(const S* logits, const std::int32_t* labels,
                                      const LabelOptions& settings, S* probabilities, S* total, S* count,
                                      std::size_t rows, std::size_t classes) {
    const auto smooth = static_cast<S>(settings.smoothing), sharp = static_cast<S>(1 - settings.smoothing);
    const auto distance = [](auto v, auto m) { return v - m; };
    S sum = S(0);
    double sum_of_many = 0;
    std::size_t counted = 0;
    for (std::size_t r = 0; r < rows; ++r, logits += classes, probabilities += classes) {
        const std::int32_t label = labels[r];
        if (label != settings.ignore && (label < 0 || static_cast<std::size_t>(label) >= classes))
            fail_label(label, r, classes);
        if (classes == 0) continue;
        const SoftmaxRow<S> row = softmax_row(logits, probabilities, classes);
        if (label == settings.ignore) continue;
        S loss = row.log_total - (logits[label] - row.largest);
        if (settings.smoothing != 0) {
            const S distances =
                sum_run(S(0), classes, 0, distance, Contiguous<S>{logits}, Broadcast<S>(row.largest));
            loss = sharp * loss + smooth * (row.log_total - distances / static_cast<S>(classes));
        }
        sum += loss;
        sum_of_many += static_cast<double>(loss);
        ++counted;
    }
    *total = rows <= longest_sequential_sum ? sum : static_cast<S>(sum_of_many);
    *count = static_cast<S>(counted);
}

template <class S> void cross_entropy_back(const S* dtotal, const S* probabilities,
                                           const std::int32_t* labels, const LabelOptions& settings,
                                           Into<S[]> dlogits, std::size_t rows, std::size_t classes) {
    const auto slope = [](auto d, auto p, auto target) { return d * (p - target); };
    const double share = settings.smoothing / static_cast<double>(classes);
    const Broadcast<S> elsewhere(static_cast<S>(share));
    const auto wanted = static_cast<S>(1 - settings.smoothing + share);
    for (std::size_t r = 0; r < rows; ++r, probabilities += classes, dlogits.dst += classes) {
        if (labels[r] == settings.ignore) {
            simd_for_each(classes, dlogits, Identity(), Broadcast<S>(S(0)));
            continue;
        }
        S& at_label = dlogits.dst[labels[r]];
        const S before = dlogits.how == Write::set ? sum_identity<S>(1) : at_label;
        simd_for_each(classes, dlogits, slope, Broadcast<S>(*dtotal), Contiguous<S>{probabilities},
                      elsewhere);
        at_label = before + *dtotal * (probabilities[labels[r]] - wanted);
    }
}

}  // namespace

template <class S> void install_loss(Kernels<S>& t) {
    t.cross_entropy = cross_entropy<S>;
    t.cross_entropy_back = cross_entropy_back<S>;
}

template void install_loss(Kernels<float>&);
template void install_loss(Kernels<double>&);

}  // namespace tally::cpu
