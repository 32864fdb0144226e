// MovingAverage stores exponential moving averages of parameters, and can swap the averages into the model.
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

namespace detail {
// Options of MovingAverage.
struct AverageOptions {
    double decay = 0.999;
    // If false, the average starts with the parameters after update 1, which dominate for many updates. If
    // true, the parameters after update k of t have the weight (1 - decay) decay^(t - k) / (1 - decay^t).
    bool bias_correction = false;
};
}  // namespace detail

// update() computes average = decay * average + (1 - decay) * parameter, like PyTorch's AveragedModel.
template <class S> class MovingAverage {
public:
    using Options = detail::AverageOptions;
    explicit MovingAverage(std::vector<Var<Array<S>>> parameters, Options options = {});
    MovingAverage(const MovingAverage&) = delete;
    MovingAverage& operator=(const MovingAverage&) = delete;
    ~MovingAverage() {
        if (swapped_) mark_holds_average(false);
    }

    // Call update() after each step of the optimizer. A `Window` with Options::average calls update() itself.
    void update();
    std::int64_t updates() const { return updates_; }
    const Array<S>& value(std::size_t i) const;  // the initial parameter before the first update

    // Exchanges averages and parameters. The model computes with the averages until the next swap().
    void swap();
    bool swapped() const { return swapped_; }

    void save(TrainingState& state, const std::string& prefix) const;
    void load(const TrainingState& state, const std::string& prefix) {  // changes nothing if it throws
        validate_state(state, prefix)();
    }
    // ---- for the engine ----
    void prepare();  // allocates all memory that the next update needs
    detail::ApplyState validate_state(const TrainingState& state, const std::string& prefix);

private:
    template <class> friend class Window;

    // Returns a token for a `Window` that updates `stepped`. While the token exists, update() throws.
    std::shared_ptr<const void> use(const std::vector<Var<Array<S>>>& stepped) const;

    detail::AverageStep<S> numbers() const;  // factors of the next update
    void move_to_parameter_device();
    void follow_update();
    void require_not_swapped(const char* doing) const;
    void mark_holds_average(bool lent) noexcept;  // so that optimizers do not step averages

    std::vector<Var<Array<S>>> parameters_;
    Options options_;
    std::vector<Array<S>> averages_;
    std::vector<detail::Update<S>> list_;  // arguments of one update; kept, so that the memory is reused
    std::int64_t updates_ = 0;
    bool swapped_ = false;
    std::shared_ptr<const void> in_use_ = std::make_shared<char>();  // copies: the tokens of use()
};

extern template class MovingAverage<float>;
extern template class MovingAverage<double>;

}  // namespace tally
