// PipelineParallel compares the updates of all processes of a pipe, and computes the norm of all gradients.
#include "tally/distributed/pipeline_parallel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tally/distributed/entry_format.hpp"

namespace tally {

template <class S>
std::vector<std::string> PipelineParallel<S>::all_gather(const std::string& what, const std::string& mine) {
    must_not_report_ = true;  // an error in this call is thrown on all processes
    std::vector<std::string> all = processes_.all_gather(what + call_, mine);
    must_not_report_ = false;
    return all;
}

template <class S> void PipelineParallel<S>::open(const Optimizer<S>&, const NamedTexts& options) {
    call_ = "";
    const std::string call = "the construction of a pipeline's Window";
    NamedTexts lines;
    for (const auto& [name, value] : options) lines.emplace_back("option " + name, value);
    std::vector<std::string> all;
    try {
        all = all_gather(call, detail::serialize_texts(lines));
    } catch (...) {
        must_not_report_ = false;  // otherwise the next report_failure() would report nothing
        throw;
    }
    if (std::ranges::count(all, all[0]) != std::ssize(all))
        throw Error("processes", call, ": ", detail::difference(all), "; make them equal on all processes");
}

template <class S> detail::WindowTotals PipelineParallel<S>::gather(const Optimizer<S>&, const char* call,
                                                                    std::int64_t window_index,
                                                                    const detail::WindowTotals& here,
                                                                    std::span<detail::ExactSum<S>>) {
    call_ = std::string(call) + " of the pipeline's window " + std::to_string(window_index);
    using Numbers = std::array<double, 4>;
    constexpr const char* names[] = {"micro-batches:", "a count of", "updates:", "the learning rate"};
    const Numbers mine{static_cast<double>(here.micro_batches), here.count, static_cast<double>(here.updates),
                       here.learning_rate};
    const std::vector<std::string> all = all_gather("", detail::bytes_of(mine));
    const auto first = detail::from_bytes<Numbers>(all[0]);
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        const auto other = detail::from_bytes<Numbers>(all[rank]);
        for (std::size_t i = 0; i < mine.size(); ++i)
            if (other[i] != first[i]) {
                must_not_report_ = true;
                throw Error("processes", call_, ": rank ", rank, " has ", names[i], " ", other[i],
                            ", rank 0 has ", first[i], "; make them equal on all processes");
            }
    }
    return here;
}

// Adds the squared gradient norms of all stages in the order of ranks.
template <class S>
detail::MeasuredGradients PipelineParallel<S>::combine_norms(const detail::MeasuredGradients& mine) {
    const std::vector<std::string> all = all_gather("the gradients of all stages, ", detail::bytes_of(mine));
    double squares = 0;
    detail::MeasuredGradients combined;
    for (const std::string& message : all) {
        const auto theirs = detail::from_bytes<detail::MeasuredGradients>(message);
        squares += theirs.norm * theirs.norm;
        combined.non_finite += theirs.non_finite;
    }
    combined.norm = std::sqrt(squares);
    return combined;
}

template <class S> void PipelineParallel<S>::report_failure(const char* call, std::int64_t window_index,
                                                            const std::string& why) noexcept {
    if (std::exchange(must_not_report_, false)) return;
    processes_.report_failure(std::string(call) + " of window " + std::to_string(window_index), why);
}

template class PipelineParallel<float>;
template class PipelineParallel<double>;

}  // namespace tally
