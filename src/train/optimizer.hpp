// Optimizers: from gradients to updated parameters, one launch for all of them; SGD, Adam, AdamW.
//
// PyTorch's formulas in PyTorch's order of operations (kernels/optimizer_steps.hpp). Whatever depends on the options
// alone (1 - beta, Adam's corrections, lr over a correction) is computed in double and rounded once to the
// type of the parameters.
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

// What all optimizers do; each has a formula of its own (docs/optimizers.md).
template <class S> class Optimizer {
public:
    using Parameters = std::vector<Var<Array<S>>>;

    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;
    virtual ~Optimizer() = default;

    // One update of every parameter that a gradient has reached; the others stay as they are, and so does
    // what is remembered of them. Where memory runs out, all stay as they are.
    void step();             // an Error while a window is open: its finish() is what steps
    void zero_grad() const;  // an Error likewise
    // By a window that ends with so many micro-batches in it, neither finished nor discarded nor saved: the
    // next step, or the next window, says so.
    void unfinished(std::int64_t micro_batches) { unfinished_ = micro_batches; }
    void expect_finished() const;
    // Throws if no gradient has reached a parameter and only the optimizer and `also` refer to it, because its variable
    // was replaced. Throws also if a parameter's value is a moving average's (swap()).
    void expect_current(const Parameters& also = {}) const;
    void note_variables(const Parameters& also) const;  // which parameters a variable refers to
    // A window's updates have changed buffers of the model, which are part of the state from now on.
    void note_effects() { had_effects_ = true; }
    bool had_effects() const { return had_effects_; }

    // Of what is remembered: now, and once a gradient has reached every parameter.
    struct Bytes {
        std::size_t now = 0, whole = 0;
    };
    Bytes state_size() const;

    const std::string& name() const { return name_; }
    const Parameters& parameters() const { return parameters_; }
    double learning_rate() const { return learning_rate_; }
    void set_learning_rate(double rate);
    void schedule_learning_rate(double rate);  // the same by a schedule, which load() may take back

    // ---- for a window across processes ----

    void prepare();            // has all memory that the next step needs
    void drop_unused_state();  // what nothing has been written to, where that step was not made

    // All that a resumed training needs, under names like "optimizer/momentum/0". What is loaded must come
    // from an optimizer of the same kind, options and shapes; else nothing changes. It is brought to the
    // parameters' device. The learning rate is then the saved one: who wants another makes the optimizer with
    // the same as before, and calls set_learning_rate() after load().
    void save(TrainingState& state, const std::string& under) const;
    void load(const TrainingState& state, const std::string& under) { validate_state(state, under)(); }
    detail::ApplyState validate_state(const TrainingState& state, const std::string& under);

protected:
    using Options = std::vector<std::pair<std::string, double>>;
    using Arrays = std::vector<Array<S>>;      // one a parameter; no memory before it is needed
    using Counts = std::vector<std::int64_t>;  // likewise
    template <class Of> using Named = std::vector<std::pair<std::string, Of>>;

    // `remembers` and `counts` name what is kept for each parameter.
    Optimizer(std::string name, Parameters parameters, double learning_rate, Options options,
              const std::vector<std::string>& remembers, const std::vector<std::string>& counts);

    const detail::Kernels<S>& kernel() const { return detail::kernels<S>(parameters_[0].value().device()); }
    Counts& count(std::size_t which) { return counts_[which].second; }

    // An update of parameter i that brings `arrays` of what is remembered of it, to be written.
    detail::Update<S> state_of(std::size_t i, std::size_t arrays);

    virtual void update() = 0;

    // launch(number, list): the parameters that a gradient has reached; each counts its own updates, and
    // those with the same number, from 1, go together.
    template <class Launch> void update_with_gradients(std::size_t arrays, Launch launch);

protected:
    void require_unlocked(const char* what) const;  // of any window's hold

private:
    void require_learning_rate(double rate) const;
    bool has_state(std::size_t i) const;  // of parameter i anything

    std::string name_;
    Parameters parameters_;
    double learning_rate_ = 0;
    mutable std::int64_t unfinished_ = 0;  // told once
    bool rate_was_set_ = false;            // since the last step or load
    bool had_effects_ = false;
    mutable std::vector<bool> had_variable_;  // by parameter: a variable has referred to it
    Options options_;
    Named<Arrays> arrays_;
    Named<Counts> counts_;
};

// Options of Sgd.
struct SgdOptions {
    double learning_rate = 1e-3;
    double momentum = 0;
    double dampening = 0;
    bool nesterov = false;
    double weight_decay = 0;  // added to the gradient
};

// Gradient descent, with momentum and weight decay as in PyTorch.
template <class S> class Sgd : public Optimizer<S> {
public:
    Sgd(std::vector<Var<Array<S>>> parameters, SgdOptions options);

private:
    void update() override;
    detail::SgdStep<S> numbers() const;

    SgdOptions options_;
};

// Of Adam, and of what is made of it.
struct AdamOptions {
    double learning_rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;
};

// Weight decay is added to the gradient.
template <class S> class Adam : public Optimizer<S> {
public:
    Adam(std::vector<Var<Array<S>>> parameters, AdamOptions options = {})
        : Adam("Adam", std::move(parameters), options, {"updates"}) {}

protected:
    static constexpr std::size_t moments = 2;

    void update() override;

    Adam(const char* name, std::vector<Var<Array<S>>> parameters, AdamOptions options,
         const std::vector<std::string>& counts);
    virtual bool shrinks() const { return false; }  // instead of adding weight decay to the gradient
    detail::AdamStep<S> numbers(
        std::int64_t update) const;  // of a parameter's update with that number, from 1

private:
    AdamOptions options_;
};

// Options of AdamW: those of Adam, with PyTorch's weight decay.
struct AdamWOptions {
    double learning_rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 1e-2;
};

// Weight decay shrinks the value separately from the gradient.
template <class S> class AdamW : public Adam<S> {
public:
    AdamW(std::vector<Var<Array<S>>> parameters, AdamWOptions options = {})
        : Adam<S>("AdamW", std::move(parameters),
                  AdamOptions{options.learning_rate, options.beta1, options.beta2, options.eps,
                              options.weight_decay},
                  {"updates"}) {}

protected:
    bool shrinks() const override { return true; }
};

template <class S> Sgd(std::initializer_list<Var<Array<S>>>, SgdOptions) -> Sgd<S>;
template <class S> Adam(std::initializer_list<Var<Array<S>>>, AdamOptions = {}) -> Adam<S>;
template <class S> AdamW(std::initializer_list<Var<Array<S>>>, AdamWOptions = {}) -> AdamW<S>;

extern template class Optimizer<float>;
extern template class Optimizer<double>;
extern template class Sgd<float>;
extern template class Sgd<double>;
extern template class Adam<float>;
extern template class Adam<double>;
extern template class AdamW<float>;
extern template class AdamW<double>;

}  // namespace tally
