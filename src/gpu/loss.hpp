// Computes cross-entropy, fused with softmax, on a GPU. One team of threads computes each row of the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tally/gpu/softmax.hpp"
#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

// The first label that is not a class. A GPU cannot throw, so the host throws when it next waits for the GPU.
struct WrongLabel {
    bool found = false;
    std::int32_t label = 0;
    std::size_t row = 0, classes = 0;
};

inline std::string words(const WrongLabel& wrong) {
    return "[cross_entropy] label " + std::to_string(wrong.label) + " in row " + std::to_string(wrong.row) +
           " is not one of the " + std::to_string(wrong.classes) + " classes";
}

TALLY_HOST_DEVICE constexpr bool is_class(std::int32_t label, std::size_t classes) {
    return label >= 0 && static_cast<std::size_t>(label) < classes;
}

template <class S> struct RowLossBody {
    const S* logits;
    const std::int32_t* labels;
    LabelOptions settings;
    S *probabilities, *losses;
    std::size_t classes;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t row) const {
        using formula::exp, formula::log;
        const S* x = logits + row * classes;
        S* y = probabilities + row * classes;
        const ExpSum<S> sum = exp_sum<S>(team, classes, false, [&](std::size_t c) { return x[c]; });
        team.each(classes, [&](std::size_t c) { y[c] = exp(x[c] - sum.shift) / sum.total; });
        const S log_total = log(sum.total);
        const S distances =
            settings.smoothing == 0
                ? S(0)
                : sum_in_team<S>(team, classes, [&](std::size_t c) { return x[c] - sum.shift; });
        team.alone([&] {
            const std::int32_t label = labels[row];
            const bool counts = label != settings.ignore && is_class(label, classes);
            S loss = counts ? log_total - (x[label] - sum.shift) : S(0);
            if (counts && settings.smoothing != 0)
                loss = static_cast<S>(1 - settings.smoothing) * loss +
                       static_cast<S>(settings.smoothing) * (log_total - distances / static_cast<S>(classes));
            losses[row] = loss;
        });
    }
};

template <class S> struct TotalLossBody {
    const S* losses;
    const std::int32_t* labels;
    std::int32_t ignore;
    S *total, *count;
    std::size_t rows, classes;
    WrongLabel* wrong;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t) const {
        add_terms(team, rows, T::lanes < block, Into<S[]>{total, Write::set},
                  [&](std::size_t r) { return losses[r]; });
        const std::size_t counted = team.fold(
            rows, std::size_t(0), Plus(), [&](std::size_t r) { return std::size_t(labels[r] != ignore); });
        const std::size_t first_wrong = team.fold(rows, rows, Smaller(), [&](std::size_t r) {
            return labels[r] == ignore || is_class(labels[r], classes) ? rows : r;
        });
        team.alone([&] {
            *count = static_cast<S>(counted);
            if (first_wrong != rows && !wrong->found)
                *wrong = {true, labels[first_wrong], first_wrong, classes};
        });
    }
};

template <class S> struct CrossEntropyBackBody {
    const S *dtotal, *probabilities;
    const std::int32_t* labels;
    std::int32_t ignore;
    S at_label, elsewhere;  // target probabilities
    Into<S[]> dlogits;
    std::size_t classes;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const std::int32_t label = labels[i / classes];
        const bool is_label = label >= 0 && static_cast<std::size_t>(label) == i % classes;
        store(dlogits, i,
              label == ignore ? S(0) : *dtotal * (probabilities[i] - (is_label ? at_label : elsewhere)));
    }
};

template <class On, class S> void cross_entropy(const S* logits, const std::int32_t* labels,
                                                const LabelOptions& settings, S* probabilities, S* total,
                                                S* count, std::size_t rows, std::size_t classes) {
    const typename On::template Scratch<S> losses(rows);
    const RowLossBody<S> of_rows{logits, labels, settings, probabilities, losses.data(), classes};
    team_per_row<On>("cross_entropy", rows, classes, of_rows);
    const TotalLossBody<S> of_all{losses.data(), labels, settings.ignore, total,
                                  count,         rows,   classes,         On::wrong_label()};
    team_per_row<On>("cross_entropy, total", 1, rows, of_all);
    On::throw_wrong_label();
}

template <class On, class S> void cross_entropy_back(const S* dtotal, const S* probabilities,
                                                     const std::int32_t* labels, const LabelOptions& settings,
                                                     Into<S[]> dlogits, std::size_t rows,
                                                     std::size_t classes) {
    const double share = settings.smoothing / static_cast<double>(classes);
    On::each("cross_entropy, backward", rows * classes,
             CrossEntropyBackBody<S>{dtotal, probabilities, labels, settings.ignore,
                                     static_cast<S>(1 - settings.smoothing + share), static_cast<S>(share),
                                     dlogits, classes});
}

template <class On, class S> void install_loss(Kernels<S>& t) {
    t.cross_entropy = cross_entropy<On, S>;
    t.cross_entropy_back = cross_entropy_back<On, S>;
}

}  // namespace tally::gpu
