// With a `PipelineParallel`, either all processes of a `Pipe` make an update or no process does.
//
//     PipelineParallel<float> all(processes);
//     Window<float> window(sgd, {.max_norm = 1}, &all);
//     pipe.run(...);
//     window.after_backward(48);
//     window.finish();   // clipped by the norm of all stages' gradients
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tally/distributed/processes.hpp"
#include "tally/train/gradient_reducer.hpp"

namespace tally {

// A `PipelineParallel` is a `GradientReducer` for processes that train different parameters of one model. The
// processes exchange their gradient norms and their numbers of infinite or NaN gradient elements.
// Micro-batches, options and the learning rate must be the same on all processes.
template <class S> class PipelineParallel : public detail::GradientReducer<S> {
public:
    explicit PipelineParallel(ProcessGroup& processes) : processes_(processes) {}

    std::vector<Items> share(const std::vector<Items>& micro_batches) override { return micro_batches; }

    // ---- for the window ----
    bool writes_files() const override { return true; }  // each process writes those of its own stage
    using NamedTexts = typename detail::GradientReducer<S>::NamedTexts;
    void open(const Optimizer<S>& optimizer, const NamedTexts& options) override;
    detail::WindowTotals gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window_index,
                                const detail::WindowTotals& here,
                                std::span<detail::ExactSum<S>> exact) override;
    void reduce(detail::SideEffects&, std::span<detail::ExactSum<S>>) override {}
    detail::MeasuredGradients combine_norms(const detail::MeasuredGradients& mine) override;
    void barrier_before_step() override { all_gather("the step, ", ""); }
    void report_failure(const char* call, std::int64_t window_index,
                        const std::string& why) noexcept override;
    std::int64_t first_item(const Optimizer<S>&, std::int64_t) override { return 0; }

private:
    std::vector<std::string> all_gather(const std::string& what, const std::string& mine);

    ProcessGroup& processes_;
    std::string call_;              // name of the call that ends the window, for errors
    bool must_not_report_ = false;  // all processes get the current error, so report_failure() is silent
};

extern template class PipelineParallel<float>;
extern template class PipelineParallel<double>;

}  // namespace tally
