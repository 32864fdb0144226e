// The optimizers `Sgd`, `Adam` and `AdamW` update all parameters in one kernel launch.
//
// The formulas and the order of operations are the same as in PyTorch (kernels/optimizer_steps.hpp). Factors
// such as 1 - beta and Adam's corrections are computed in double, and rounded once to
// the type of the parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"
#include "tally/io/training_state.hpp"

namespace tally {

// `Optimizer` is the base class of all optimizers. The page docs/optimizers.md lists all formulas.
template <class S> class Optimizer {
public:
    using Parameters = std::vector<Var<Array<S>>>;

    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;
    virtual ~Optimizer() = default;

    // Updates every parameter that has a gradient, and leaves other parameters and their state unchanged. If
    // memory runs out, no parameter changes. Throws while a window is open, because finish() makes the step.
    void step();
    void zero_grad() const;  // throws while a window is open

    // `now` is the present size of the state. `whole` is the size after all parameters have had a gradient.
    struct Bytes {
        std::size_t now = 0, whole = 0;
    };
    Bytes state_size() const;

    const std::string& name() const { return name_; }
    const Parameters& parameters() const { return parameters_; }
    double learning_rate() const { return learning_rate_; }
    void set_learning_rate(double rate);
    // save() and load() give the state and the learning rate names like "optimizer/momentum/0". load() throws
    // and changes nothing if the optimizer's kind, options or shapes differ. To resume with a different
    // learning rate, make the optimizer with the previous rate, call load(), then set_learning_rate().
    void save(TrainingState& state, const std::string& prefix) const;
    void load(const TrainingState& state, const std::string& prefix) { validate_state(state, prefix)(); }

    // ---- for the window ----
    detail::ApplyState validate_state(const TrainingState& state, const std::string& prefix);
    void prepare();            // allocates all memory that the next step needs
    void drop_unused_state();  // frees state that no step has written, after a step that failed
    void schedule_learning_rate(double rate);  // called for a schedule; load() may overwrite this rate
    // ~Window() calls this for a window with micro-batches that were not finished, discarded or saved. The
    // next step() or the next `Window` throws after this call.
    void unfinished(std::int64_t micro_batches) { unfinished_ = micro_batches; }
    void require_finished() const;
    // Throws if the model has replaced a parameter, so that only the optimizer and `also` refer to the old
    // parameter. Also throws if MovingAverage::swap() has put an average into a parameter.
    void require_current(const Parameters& also = {}) const;
    void note_variables(const Parameters& also) const;  // records the parameters that a variable refers to
    // Called by a `Window` after an update that changed buffers. Window::save() then requires the model.
    void note_effects() { had_effects_ = true; }
    bool had_effects() const { return had_effects_; }

protected:
    using NamedNumbers = std::vector<std::pair<std::string, double>>;
    using Arrays = std::vector<Array<S>>;      // one for each parameter, allocated by the first step
    using Counts = std::vector<std::int64_t>;  // one for each parameter
    template <class Of> using NamedState = std::vector<std::pair<std::string, Of>>;

    // `remembers` and `counts` name the arrays and counts that make up the state of each parameter.
    Optimizer(std::string name, Parameters parameters, double learning_rate, NamedNumbers options,
              const std::vector<std::string>& remembers, const std::vector<std::string>& counts);

    const detail::Kernels<S>& kernel() const { return detail::kernels<S>(parameters_[0].value().device()); }
    Counts& count(std::size_t which) { return counts_[which].second; }

    // Returns the kernel arguments for parameter i, and allocates `arrays` arrays for its state.
    detail::Update<S> state_of(std::size_t i, std::size_t arrays);

    virtual void update() = 0;

    // Calls launch(number, list) for the parameters that have a gradient. `number` is the index of a
    // parameter's update, counted from 1. `list` contains all parameters with this index.
    template <class Launch> void update_with_gradients(std::size_t arrays, Launch launch);

    void require_unlocked(const char* what) const;  // throws if a window has locked a parameter

private:
    void require_learning_rate(double rate) const;
    bool has_state(std::size_t i) const;  // whether parameter i has been updated

    std::string name_;
    Parameters parameters_;
    double learning_rate_ = 0;
    mutable std::int64_t unfinished_ = 0;  // lost micro-batches; require_finished() throws once and sets 0
    bool rate_was_set_ = false;            // set_learning_rate() ran after the last step or load()
    bool had_effects_ = false;
    mutable std::vector<bool> had_variable_;  // whether a variable has referred to parameter i
    NamedNumbers options_;
    NamedState<Arrays> arrays_;
    NamedState<Counts> counts_;
};

namespace detail {
// Options of Sgd.
struct SgdOptions {
    double learning_rate = 1e-3;
    double momentum = 0;
    double dampening = 0;
    bool nesterov = false;
    double weight_decay = 0;  // added to the gradient
};
}  // namespace detail

// The class `Sgd` is gradient descent with momentum and weight decay as in PyTorch.
template <class S> class Sgd : public Optimizer<S> {
public:
    using Options = detail::SgdOptions;

    Sgd(std::vector<Var<Array<S>>> parameters, Options options);

private:
    void update() override;
    detail::SgdStep<S> numbers() const;

    Options options_;
};

namespace detail {
// Options of Adam.
struct AdamOptions {
    double learning_rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;
};
}  // namespace detail

// The class `Adam` adds weight decay to the gradient.
template <class S> class Adam : public Optimizer<S> {
public:
    using Options = detail::AdamOptions;

    Adam(std::vector<Var<Array<S>>> parameters, Options options = {})
        : Adam("Adam", std::move(parameters), options, {"updates"}) {}

protected:
    static constexpr std::size_t moments = 2;

    void update() override;

    Adam(const char* name, std::vector<Var<Array<S>>> parameters, Options options,
         const std::vector<std::string>& counts);
    virtual bool shrinks() const { return false; }           // weight decay shrinks the value directly
    detail::AdamStep<S> numbers(std::int64_t update) const;  // `update` counts a parameter's updates from 1

private:
    Options options_;
};

namespace detail {
// The options of `AdamW` are those of `Adam`, with PyTorch's default weight decay for AdamW.
struct AdamWOptions {
    double learning_rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 1e-2;
};
}  // namespace detail

// The class `AdamW` shrinks the value by weight decay and leaves the gradient unchanged.
template <class S> class AdamW : public Adam<S> {
public:
    using Options = detail::AdamWOptions;

    AdamW(std::vector<Var<Array<S>>> parameters, Options options = {})
        : Adam<S>("AdamW", std::move(parameters),
                  detail::AdamOptions{options.learning_rate, options.beta1, options.beta2, options.eps,
                                      options.weight_decay},
                  {"updates"}) {}

protected:
    bool shrinks() const override { return true; }
};

template <class S> Sgd(std::initializer_list<Var<Array<S>>>, detail::SgdOptions) -> Sgd<S>;
template <class S> Adam(std::initializer_list<Var<Array<S>>>, detail::AdamOptions = {}) -> Adam<S>;
template <class S> AdamW(std::initializer_list<Var<Array<S>>>, detail::AdamWOptions = {}) -> AdamW<S>;

extern template class Optimizer<float>;
extern template class Optimizer<double>;
extern template class Sgd<float>;
extern template class Sgd<double>;
extern template class Adam<float>;
extern template class Adam<double>;
extern template class AdamW<float>;
extern template class AdamW<double>;

}  // namespace tally
