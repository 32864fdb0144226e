// MovingAverage: an exponential moving average of the parameters, and the model that has it for weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"
#include "tally/io/training_state.hpp"

namespace tally {

// Options of MovingAverage.
struct AverageOptions {
    double decay = 0.999;
    // Without it the average starts from the parameters at the first update, which then weigh the most for
    // long. With it each update k of t weighs (1 - decay) decay^(t - k) / (1 - decay^t).
    bool bias_correction = false;
};

// PyTorch's swa_utils.AveragedModel with averages = decay * average + (1 - decay) * parameter.
template <class S> class MovingAverage {
public:
    explicit MovingAverage(std::vector<Var<Array<S>>> parameters, AverageOptions options = {});
    MovingAverage(const MovingAverage&) = delete;
    MovingAverage& operator=(const MovingAverage&) = delete;
    ~MovingAverage() {
        if (swapped_) mark_holds_average(false);
    }

    void prepare();  // the next update will need no memory
    void
    update();  // once per update of the parameters; a window that was given the average does it by itself
    std::int64_t updates() const { return updates_; }
    const Array<S>& value(
        std::size_t i) const;  // before the first update: the parameter as it was at the start

    // Exchanges averages and parameters: the model computes with the averages until the next call.
    void swap();
    bool swapped() const { return swapped_; }

    void save(TrainingState& state, const std::string& under) const;
    void load(const TrainingState& state, const std::string& under) {  // all, or nothing and an Error
        validate_state(state, under)();
    }
    detail::ApplyState validate_state(const TrainingState& state, const std::string& under);

private:
    template <class> friend class Window;

    // By a window that steps `stepped` and updates the average, as long as it keeps what is returned.
    std::shared_ptr<const void> use(const std::vector<Var<Array<S>>>& stepped) const;

    detail::AverageStep<S> numbers() const;  // of the next update
    void move_to_parameter_device();         // the parameters to their device
    void follow_update();
    void refuse_swapped(const char* doing) const;
    void mark_holds_average(bool lent) noexcept;  // the parameters, which no optimizer may step then

    std::vector<Var<Array<S>>> parameters_;
    AverageOptions options_;
    std::vector<Array<S>> averages_;
    std::vector<detail::Update<S>> list_;  // of the update that is on its way; its memory stays
    std::int64_t updates_ = 0;
    bool swapped_ = false;
    std::shared_ptr<const void> in_use_ = std::make_shared<char>();  // by windows, which hold copies
};

extern template class MovingAverage<float>;
extern template class MovingAverage<double>;

}  // namespace tally
