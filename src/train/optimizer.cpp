// Implements the host part of optimizers: allocates state, computes the numbers of a step, saves and loads.
#include "tally/train/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tally/train/state_reader.hpp"

namespace tally {

// ---- all optimizers ----

template <class S>
Optimizer<S>::Optimizer(std::string name, Parameters parameters, double learning_rate, NamedNumbers options,
                        const std::vector<std::string>& remembers, const std::vector<std::string>& counts)
    : name_(std::move(name)), parameters_(std::move(parameters)), options_(std::move(options)) {
    require_parameters(name_, parameters_);
    schedule_learning_rate(learning_rate);
    options_.emplace_back("learning_rate", learning_rate);
    Arrays unwritten;
    for (const Var<Array<S>>& parameter : parameters_)
        unwritten.push_back(detail::like_without_memory(parameter.value()));
    for (const std::string& each : remembers) arrays_.emplace_back(each, unwritten);
    for (const std::string& each : counts) counts_.emplace_back(each, Counts(parameters_.size(), 0));
}

template <class S> void Optimizer<S>::require_learning_rate(double rate) const {
    if (!(std::isfinite(rate) && rate >= 0))  // allocates nothing: restores the rate after memory has run out
        require(false, name_, "the learning rate must be finite and at least 0", rate);
}

template <class S> void Optimizer<S>::set_learning_rate(double rate) {
    schedule_learning_rate(rate);
    rate_was_set_ = true;
}

template <class S> void Optimizer<S>::schedule_learning_rate(double rate) {
    require_learning_rate(rate);
    learning_rate_ = rate;
}

template <class S> void Optimizer<S>::step() {
    require_finished();
    require_unlocked("step");
    require_current();
    try {
        update();
    } catch (...) {
        drop_unused_state();
        throw;
    }
    rate_was_set_ = false;
}

template <class S> void Optimizer<S>::require_finished() const {
    if (const std::int64_t lost = std::exchange(unfinished_, 0))
        throw Error(
            "[window] the last window of this " + name_ + " ended with " + std::to_string(lost) +
            " micro-batches in it, which were discarded without an update; call finish() or discard() before "
            "a window ends");
}

template <class S> void Optimizer<S>::note_variables(const Parameters& also) const {
    had_variable_.resize(parameters_.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const Node* const node = parameters_[i].node();
        if (node->handles > 1 + std::ranges::count(also, node, &Var<Array<S>>::node)) had_variable_[i] = true;
    }
}

template <class S> void Optimizer<S>::require_current(const Parameters& also) const {
    had_variable_.resize(parameters_.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const Node* const node = parameters_[i].node();
        if (node->grad_flags & grad_flag::holds_average) detail::throw_holds_average(name_.c_str(), i);
        if (node->handles > 1 && node->handles > 1 + std::ranges::count(also, node, &Var<Array<S>>::node)) {
            had_variable_[i] = true;
            continue;
        }
        if (parameters_[i].has_grad() && !had_variable_[i]) continue;  // only the optimizer ever had a handle
        throw Error(
            "[" + name_ + "] no variable refers to parameter " + std::to_string(i) + " of " +
            to_string(parameters_[i].shape()) +
            " any more; if the variable was replaced by a new parameter, make the optimizer after that, or "
            "write variable.assign(numbers)");
    }
}

template <class S> void Optimizer<S>::require_unlocked(const char* what) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (detail::is_locked(parameters_[i].node()->grad_flags))
            throw Error(
                std::string("[") + what + "] a window is open, with micro-batches in it, and parameter " +
                std::to_string(i) + " of " + to_string(parameters_[i].shape()) +
                " belongs to the window; call finish(), which normalises, clips and steps, or discard()");
}

template <class S> void Optimizer<S>::prepare() {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        parameters_[i].update([&](Array<S>& value, const Array<S>&) {
            value.writable();
            state_of(i, arrays_.size());
        });
}

template <class S> void Optimizer<S>::drop_unused_state() {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        if (!has_state(i))
            for (auto& [name, arrays] : arrays_) arrays[i].reset();
}

template <class S> bool Optimizer<S>::has_state(std::size_t i) const {
    return std::any_of(counts_.begin(), counts_.end(), [i](const auto& each) { return each.second[i] > 0; });
}

template <class S> typename Optimizer<S>::Bytes Optimizer<S>::state_size() const {
    Bytes bytes;
    for (const auto& [name, arrays] : arrays_)
        for (const Array<S>& array : arrays) {
            bytes.whole += array.size() * sizeof(S);
            if (detail::has_memory(array)) bytes.now += array.size() * sizeof(S);
        }
    return bytes;
}

template <class S> void Optimizer<S>::zero_grad() const {
    require_unlocked("zero_grad");
    for (const Var<Array<S>>& parameter : parameters_) parameter.zero_grad();
}

template <class S> detail::Update<S> Optimizer<S>::state_of(std::size_t i, std::size_t arrays) {
    const Array<S>& value = parameters_[i].value();
    // to() may have moved only some of the parameters.
    if (const Device first = parameters_[0].value().device(); value.device() != first)
        detail::fail_devices(name_.c_str(), first, value.device());
    const auto place = [&](std::size_t which) {
        Array<S>& array = arrays_[which].second[i];
        if (array.device() != value.device())  // to() has moved the parameter
            array = detail::has_memory(array) ? array.to(value.device()) : detail::like_without_memory(value);
        if (detail::has_memory(array)) return array.writable();
        array.allocate();
        return array.raw();
    };
    detail::Update<S> update;
    update.size = value.size();
    if (arrays > 0) update.first = place(0);
    if (arrays > 1) update.second = place(1);
    if (has_state(i)) update.state = Write::add;
    return update;
}

template <class S> template <class Launch>
void Optimizer<S>::update_with_gradients(std::size_t arrays, Launch launch) {
    std::map<std::int64_t, std::vector<detail::Update<S>>> lists;
    std::vector<std::size_t> reached;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        parameters_[i].update([&](Array<S>& value, const Array<S>& gradient) {
            detail::Update<S> change = state_of(i, arrays);
            change.value = value.writable();
            change.gradient = gradient.data();
            lists[count(0)[i] + 1].push_back(change);
            reached.push_back(i);
        });
    for (const auto& [number, list] : lists) launch(number, list);
    for (std::size_t i : reached) ++count(0)[i];  // at the end, so that running out of memory changes nothing
}

template <class S> void Optimizer<S>::save(TrainingState& state, const std::string& prefix) const {
    require_finished();
    state.put(prefix + "/name", name_);
    state.put(prefix + "/parameters", static_cast<std::int64_t>(parameters_.size()));
    state.put(prefix + "/learning_rate", learning_rate_);
    for (const auto& [name, value] : options_) state.put(prefix + "/options/" + name, value);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const std::string which = "/" + std::to_string(i);
        for (const auto& [name, counts] : counts_) state.put(prefix + "/" + name + which, counts[i]);
        for (const auto& [name, arrays] : arrays_)
            if (has_state(i)) state.put(prefix + "/" + name + which, arrays[i]);
    }
}

template <class S>
detail::ApplyState Optimizer<S>::validate_state(const TrainingState& state, const std::string& prefix) {
    StateReader saved(name_, state, prefix);
    const std::string kind = saved.template get<std::string>("name");
    if (kind != name_) saved.fail("'" + prefix + "' was saved by " + kind);
    saved.require_parameter_count(parameters_.size());
    for (const auto& [name, value] : options_)
        saved.require_option(name, value,
                             name == "learning_rate"
                                 ? "; make it with what was saved, and after load() set_learning_rate(" +
                                       detail::to_text(value) + ") if that is what you want"
                                 : "");
    const double rate = saved.template get<double>("learning_rate");
    require_learning_rate(rate);
    if (rate_was_set_ && learning_rate_ != rate)
        saved.fail("set_learning_rate(" + detail::to_text(learning_rate_) +
                   ") was called before load(), which sets " + detail::to_text(rate) +
                   "; call it after load()");

    NamedState<Counts> counts = counts_;
    NamedState<Arrays> arrays = arrays_;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const std::string which = "/" + std::to_string(i);
        bool remembered = false;
        for (auto& [name, loaded] : counts) {
            loaded[i] = saved.count(name + which);
            remembered = remembered || loaded[i] > 0;
        }
        for (auto& [name, loaded] : arrays)
            loaded[i] = remembered ? saved.array(name + which, parameters_[i].value())
                                   : detail::like_without_memory(parameters_[i].value());
    }
    saved.require_all_read();
    return [this, rate, counts = std::move(counts), arrays = std::move(arrays)]() mutable {
        learning_rate_ = rate;
        rate_was_set_ = false;
        counts_ = std::move(counts);
        arrays_ = std::move(arrays);
    };
}

// ---- SGD ----

template <class S> Sgd<S>::Sgd(std::vector<Var<Array<S>>> parameters, detail::SgdOptions options)
    : Optimizer<S>("SGD", std::move(parameters), options.learning_rate,
                   {{"momentum", options.momentum},
                    {"dampening", options.dampening},
                    {"nesterov", options.nesterov ? 1 : 0},
                    {"weight_decay", options.weight_decay}},
                   options.momentum != 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>(),
                   {"updates"}),
      options_(options) {
    const auto from_0 = [](double x) { return std::isfinite(x) && x >= 0; };
    require(from_0(options.momentum), "SGD", "momentum must be finite and at least 0", options.momentum);
    require(std::isfinite(options.dampening), "SGD", "dampening must be a finite number", options.dampening);
    require(from_0(options.weight_decay), "SGD", "weight_decay must be finite and at least 0",
            options.weight_decay);
    if (options.nesterov && (options.momentum == 0 || options.dampening != 0))
        throw Error("[SGD] nesterov requires a momentum and no dampening; momentum is " +
                    detail::to_text(options.momentum) + ", dampening " + detail::to_text(options.dampening));
}

template <class S> detail::SgdStep<S> Sgd<S>::numbers() const {
    return {static_cast<S>(-this->learning_rate()),
            static_cast<S>(options_.momentum),
            static_cast<S>(1 - options_.dampening),
            static_cast<S>(options_.weight_decay),
            options_.nesterov,
            options_.weight_decay != 0};
}

template <class S> void Sgd<S>::update() {
    this->update_with_gradients(options_.momentum != 0 ? 1 : 0,
                                [&](std::int64_t, const auto& list) { this->kernel().sgd(list, numbers()); });
}

// ---- Adam and AdamW ----

template <class S> Adam<S>::Adam(const char* name, std::vector<Var<Array<S>>> parameters,
                                 detail::AdamOptions options, const std::vector<std::string>& counts)
    : Optimizer<S>(name, std::move(parameters), options.learning_rate,
                   {{"beta1", options.beta1},
                    {"beta2", options.beta2},
                    {"eps", options.eps},
                    {"weight_decay", options.weight_decay}},
                   {"m", "v"}, counts),
      options_(options) {
    const auto below_1 = [](double x) { return x >= 0 && x < 1; };
    const auto from_0 = [](double x) { return std::isfinite(x) && x >= 0; };
    require(below_1(options.beta1), name, "beta1 must be from 0 to below 1", options.beta1);
    require(below_1(options.beta2), name, "beta2 must be from 0 to below 1", options.beta2);
    require(from_0(options.eps), name, "eps must be finite and at least 0", options.eps);
    require(from_0(options.weight_decay), name, "weight_decay must be finite and at least 0",
            options.weight_decay);
}

template <class S> detail::AdamStep<S> Adam<S>::numbers(std::int64_t update) const {
    const auto t = static_cast<double>(update);
    const double rate = this->learning_rate(), decay = options_.weight_decay;
    detail::AdamStep<S> step{};
    step.beta1 = static_cast<S>(options_.beta1);
    step.one_minus_beta1 = static_cast<S>(1 - options_.beta1);
    step.beta2 = static_cast<S>(options_.beta2);
    step.one_minus_beta2 = static_cast<S>(1 - options_.beta2);
    step.negative_rate = static_cast<S>(-rate / (1 - formula::pow(options_.beta1, t)));
    step.correction2 = static_cast<S>(std::sqrt(1 - formula::pow(options_.beta2, t)));
    step.eps = static_cast<S>(options_.eps);
    step.decays = decay != 0 && !shrinks();
    step.weight_decay = static_cast<S>(decay);
    step.shrink = static_cast<S>(shrinks() ? 1 - rate * decay : 1);
    return step;
}

template <class S> void Adam<S>::update() {
    this->update_with_gradients(
        moments, [&](std::int64_t number, const auto& list) { this->kernel().adam(list, numbers(number)); });
}

template class Optimizer<float>;
template class Optimizer<double>;
template class Sgd<float>;
template class Sgd<double>;
template class Adam<float>;
template class Adam<double>;
template class AdamW<float>;
template class AdamW<double>;

}  // namespace tally
