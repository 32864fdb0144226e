// PipelineParallel: the windows of a pipe's processes as one. Each has its own stage's parameters, and all step, or none.
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

// What a window asks of those with the other stages: the norm of all gradients, and whether all of them are
// numbers. The micro-batches are the same everywhere, and so are options and the rate.
template <class S> class PipelineParallel : public detail::GradientReducer<S> {
public:
    explicit PipelineParallel(ProcessGroup& processes) : processes_(processes) {}

    std::vector<Items> share(const std::vector<Items>& parts) override { return parts; }

    // ---- for the window ----
    bool is_main_process() const override { return true; }  // its own stage's parameters
    using Named = typename detail::GradientReducer<S>::Named;
    void open(const Optimizer<S>& optimizer, const Named& options) override;
    detail::WindowTotals gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window,
                                const detail::WindowTotals& here, std::span<ExactSum<S>> exact) override;
    void reduce(SideEffects&, std::span<ExactSum<S>>) override {}
    detail::MeasuredGradients measured(const detail::MeasuredGradients& mine) override;
    void barrier_before_step() override { all_gather("the step, ", ""); }
    void fail(const char* call, std::int64_t window, const std::string& why) noexcept override;
    std::int64_t first_item(const Optimizer<S>&, std::int64_t) override { return 0; }

private:
    std::vector<std::string> all_gather(const std::string& what, const std::string& mine);

    ProcessGroup& processes_;
    std::string call_;              // of the window's end
    bool error_is_shared_ = false;  // to all others, what went wrong here
};

extern template class PipelineParallel<float>;
extern template class PipelineParallel<double>;

}  // namespace tally
