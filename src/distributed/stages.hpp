// Stages: the windows of a pipe's processes as one. Each has its own stage's parameters, and all step, or none.
//
//     Stages<float> all(processes);
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
#include "tally/train/across.hpp"

namespace tally {

// What a window asks of those with the other stages: the norm of all gradients, and whether all of them are
// numbers. The micro-batches are the same everywhere, and so are options and the rate.
template <class S> class Stages : public detail::Across<S> {
public:
    explicit Stages(Processes& processes) : processes_(processes) {}

    std::vector<Items> share(const std::vector<Items>& parts) override { return parts; }

    // ---- for the window ----
    bool writes() const override { return true; }  // its own stage's parameters
    using Named = typename detail::Across<S>::Named;
    void open(const Optimizer<S>& optimizer, const Named& options) override;
    detail::Standing gather(const Optimizer<S>& optimizer, const char* call, std::int64_t window,
                            const detail::Standing& here, std::span<ExactSum<S>> exact) override;
    void reduce(Effects&, std::span<ExactSum<S>>) override {}
    detail::MeasuredGradients measured(const detail::MeasuredGradients& mine) override;
    void ready() override { meet("the step, ", ""); }
    void fail(const char* call, std::int64_t window, const std::string& why) noexcept override;
    std::int64_t first_item(const Optimizer<S>&, std::int64_t) override { return 0; }

private:
    std::vector<std::string> meet(const std::string& what, const std::string& mine);

    Processes& processes_;
    std::string call_;    // of the window's end
    bool known_ = false;  // to all others, what went wrong here
};

extern template class Stages<float>;
extern template class Stages<double>;

}  // namespace tally
