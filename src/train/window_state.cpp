// Saves and loads a window. load() validates all entries and allocates all memory before any change.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "tally/train/option_names.hpp"
#include "tally/train/state_reader.hpp"
#include "tally/train/window.hpp"

namespace tally {

namespace {

using Names = std::map<const Node*, std::string>;

template <class S> Names names_of(Module<S>* model) {
    Names names;
    if (model)
        for (const auto& [name, parameter] : model->named_parameters()) names.emplace(parameter.node(), name);
    return names;
}

// Returns the learning rates of the updates 0, 1, 2, 4, 8, ... and of the last update, in rows (update,
// rate). These samples identify the schedule, because a file cannot contain a function.
Array<double> sample_schedule(const Schedule& schedule, std::int64_t updates) {
    std::vector<double> rows;
    const auto sample = [&](std::int64_t update) {
        rows.push_back(static_cast<double>(update));
        rows.push_back(schedule.at(update));
    };
    std::int64_t next = 0;
    for (; next < updates; next = std::max<std::int64_t>(2 * next, 1)) sample(next);
    if (updates > 0) sample(updates - 1);
    return Array<double>({static_cast<std::int64_t>(rows.size()) / 2, 2}, rows);
}

void require_same_values(const StateReader& saved, const Schedule& schedule, const Array<double>& samples,
                         std::int64_t updates) {
    const Array<double> here = sample_schedule(schedule, updates);
    if (samples.shape() != here.shape())
        saved.fail("'" + saved.name_of("schedule") + "' is " + to_string(samples.shape()) + " after " +
                   std::to_string(updates) + " updates; " + to_string(here.shape()) + " expected");
    for (std::size_t i = 0; i < here.size(); i += 2) {
        const double *const before = samples.span().data() + i, *const now = here.span().data() + i;
        if (before[0] != now[0])
            saved.fail("'" + saved.name_of("schedule") + "' has a rate for update " +
                       detail::to_text(before[0]) + ", " + detail::to_text(now[0]) + " expected");
        if (before[1] != now[1])
            saved.fail_option("schedule(" + detail::to_text(now[0]) + ")", detail::to_text(before[1]),
                              detail::to_text(now[1]), "");
    }
}

template <class S> struct SavedWindow {
    std::vector<detail::PendingValue<S>> numbers;
    std::vector<std::pair<detail::ValueNode<Array<S>>*, Array<S>>> gradients;
    std::int64_t micro_batches, dropped, items, updates;
    typename detail::ParameterLock<S>::Mode mode;
    Var<Array<S>> sum, count;
    std::vector<detail::ExactSum<S>> exact;
    typename detail::NoiseScaleEstimator<S>::Saved noise;
    detail::SideEffects effects;
    bool buffers = false;  // whether the model has buffers
    detail::ApplyState optimizer, average;
};

template <class S> void read_totals(StateReader& saved, const Array<S>& like, SavedWindow<S>& to) {
    to.micro_batches = saved.count("micro_batches");
    to.dropped = saved.count("dropped", to.micro_batches);
    to.items = saved.count("items");
    to.mode = saved.count("swept", 1) == 1 ? detail::ParameterLock<S>::Mode::external
                                           : detail::ParameterLock<S>::Mode::internal;
    to.updates = saved.count("updates");
    to.sum = Var<Array<S>>(saved.number("sum", like));
    to.count = Var<Array<S>>(saved.number("count", like));
    const auto counted = static_cast<double>(to.count.item());
    if (!std::isfinite(counted) || counted < 0 || (to.micro_batches == 0 && counted > 0))
        saved.fail("'" + saved.name_of("count") + "' is " + detail::to_text(counted) + " of " +
                   std::to_string(to.micro_batches) + " micro-batches");
}

template <class S> void read_parameters(StateReader& saved, const Names& names,
                                        const std::vector<Var<Array<S>>>& parameters, SavedWindow<S>& to) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::string number = std::to_string(i);
        const Var<Array<S>>& parameter = parameters[i];
        if (const auto name = names.find(parameter.node()); name != names.end()) {
            if (!saved.has("names/" + number))
                saved.fail(
                    "it was saved without the model; load it without the model, or save it with "
                    "save(state, name, &model)");
            if (const auto& before = saved.get<std::string>("names/" + number); before != name->second)
                saved.fail("parameter " + number + " was saved as '" + before + "', here it is '" +
                           name->second + "'");
        }
        to.numbers.emplace_back(parameter, saved.array("parameters/" + number, parameter.value()));
        if (saved.has("gradients/" + number))
            to.gradients.emplace_back(parameter.node(),
                                      saved.array("gradients/" + number, parameter.value()).clone());
    }
    const auto reached = saved.count("reached", to.micro_batches > 0 ? std::ssize(parameters) : 0);
    saved.require_present(reached, "gradients", std::ssize(to.gradients));
}

// Saves the buffers of the model, and the changes of buffers that finish() has not committed yet.
template <class S> void save_model(TrainingState& state, const std::string& prefix, Module<S>& model,
                                   const detail::SideEffects& effects) {
    for (const detail::Member<S>& member : detail::members(model)) {
        if (member.buffer) state.put(prefix + "/buffers/" + member.name, *member.buffer);
        if (member.counter)
            state.put(prefix + "/buffers/" + member.name, static_cast<std::int64_t>(member.counter->item()));
    }
    std::size_t saved = 0;
    for (const auto& [name, module] : detail::modules(model))
        if (const detail::SideEffect* const effect = effects.of(module)) {
            effect->save(state, prefix + "/effects/" + name);
            ++saved;
        }
    state.put(prefix + "/effects", static_cast<std::int64_t>(saved));
    if (saved < effects.size())
        throw Error("[window] save: a layer that the model does not list has side effects; list the layer");
}

template <class S>
void read_model(StateReader& saved, const TrainingState& state, Module<S>& model, SavedWindow<S>& to) {
    const std::int64_t largest = std::numeric_limits<std::int32_t>::max();
    for (const detail::Member<S>& member : detail::members(model)) {
        const std::string name = "buffers/" + member.name;
        to.buffers = to.buffers || member.buffer || member.counter;
        if (member.buffer) to.numbers.emplace_back(*member.buffer, saved.array(name, *member.buffer).clone());
        if (member.counter)
            to.numbers.emplace_back(
                *member.counter,
                Array<std::int32_t>::full({}, static_cast<std::int32_t>(saved.count(name, largest))));
    }
    for (const auto& [name, module] : detail::modules(model)) {
        auto effect = module->saved_effect(state, saved.name_of("effects/" + name));
        if (!effect) continue;
        TrainingState its;
        effect->save(its, "effects/" + name);
        for (const auto& [entry, value] : its.entries()) saved.skip(entry);
        to.effects.add(module, std::move(effect));
    }
    const auto effects = saved.count("effects", to.micro_batches > 0 ? 1 << 30 : 0);
    saved.require_present(effects, "effects", std::ssize(to.effects));
}

}  // namespace

// Returns the options that affect the result of a training run, as text for comparison with a saved window.
// The structured binding must name every option, so a new option causes a compile error here. The planned
// number of micro-batches is compared separately. `noise` does not change the weights, but must be equal on
// all processes.
template <class S>
typename detail::GradientReducer<S>::NamedTexts Window<S>::options_as_text(bool with_noise) const {
    [[maybe_unused]] const auto& [micro_batches, total, reduction, weigh, sum, tail, non_finite, max_norm,
                                  max_value, schedule, average, seed, noise] = options_;
    typename detail::GradientReducer<S>::NamedTexts words{{"total", detail::to_text(total)},
                                                          {"reduction", detail::to_text(reduction)},
                                                          {"weigh", detail::to_text(weigh)},
                                                          {"sum", detail::to_text(sum)},
                                                          {"tail", detail::to_text(tail)},
                                                          {"non_finite", detail::to_text(non_finite)},
                                                          {"max_norm", detail::to_text(max_norm)},
                                                          {"max_value", detail::to_text(max_value)},
                                                          {"schedule", schedule ? "given" : "none"},
                                                          {"average", average ? "given" : "none"},
                                                          {"seed", std::to_string(seed)}};
    if (with_noise) words.emplace_back("noise", detail::to_text(noise));
    return words;
}

template <class S>
void Window<S>::save(TrainingState& state, const std::string& prefix, Module<S>* model) const {
    require_not_broken("save");
    require_after_backward_called("save");
    require_loss_reached_parameter("save");
    if (micro_batches_ == 0) require_no_gradients();
    if (!regularizers_.empty())
        throw Error("[window] save: terms of add_regularizer() cannot be saved; save after finish()");
    if (!model && !effects_.empty())
        throw Error(
            "[window] save: finish() has yet to change buffers of the model, such as running statistics, and "
            "this call would not save the changes; pass the model, or save after finish()");
    if (!model && optimizer_.had_effects())
        throw Error(
            "[window] save: updates have changed buffers of the model, such as batch norm's running "
            "statistics, and this call would not save them; write save(state, \"" +
            prefix + "\", &model)");
    const Names names = names_of(model);
    std::int64_t gradients = 0;
    for (std::size_t i = 0; i < parameters().size(); ++i) {
        const std::string number = "/" + std::to_string(i);
        state.put(prefix + "/parameters" + number, parameters()[i].value().clone());
        if (const auto name = names.find(parameters()[i].node()); name != names.end())
            state.put(prefix + "/names" + number, name->second);
        if (exact_ || !parameters()[i].has_grad()) continue;
        state.put(prefix + "/gradients" + number, parameters()[i].node()->gradient.clone());
        ++gradients;
    }
    state.put(prefix + "/reached", gradients);
    state.put(prefix + "/planned", options_.micro_batches);
    state.put(prefix + "/micro_batches", micro_batches_);
    state.put(prefix + "/dropped", dropped_);
    state.put(prefix + "/items", items_);
    const bool swept = lock_.on() && lock_.mode() == detail::ParameterLock<S>::Mode::external;
    state.put(prefix + "/swept", std::int64_t{swept});
    state.put(prefix + "/updates", updates_);
    state.put(prefix + "/sum", loss_sum_.value());
    state.put(prefix + "/count", denominator_.counted().value());
    for (auto& [name, value] : options_as_text()) state.put(prefix + "/options/" + name, value);
    if (exact_) exact_->save(state, prefix);
    if (noise_estimator_) noise_estimator_->save(state, prefix);
    if (options_.schedule) state.put(prefix + "/schedule", sample_schedule(*options_.schedule, updates_));
    optimizer_.save(state, prefix + "/optimizer");
    if (options_.average) options_.average->save(state, prefix + "/average");
    if (model) save_model(state, prefix, *model, effects_);
    saved_ = true;
}

template <class S> detail::ApplyState Window<S>::validate_state(const TrainingState& state,
                                                                const std::string& prefix, Module<S>* model,
                                                                std::optional<std::int64_t> planned) {
    if (detail::context.backward_passes) detail::throw_during_backward("load");
    // Unlocks the parameters of this window, but not parameters that a different window has locked.
    const detail::UnlockScope own(lock_.on() ? grad_flag::locked : std::uint8_t{0});
    StateReader saved("window", state, prefix);
    const std::int64_t planned_before = saved.count("planned");
    if (planned && *planned != planned_before)
        saved.fail_option("micro_batches", std::to_string(planned_before), std::to_string(*planned), "");
    saved.require_options(options_as_text());

    const auto loaded = std::make_shared<SavedWindow<S>>();
    read_totals(saved, zero_.value(), *loaded);
    if (exact_) loaded->exact = exact_->read(saved, loaded->micro_batches);
    if (noise_estimator_) loaded->noise = noise_estimator_->read(saved, loaded->micro_batches);
    if (!noise_estimator_) saved.skip("noise/");
    if (options_.schedule)
        require_same_values(saved, *options_.schedule, saved.template get<Array<double>>("schedule"),
                            loaded->updates);
    read_parameters(saved, names_of(model), parameters(), *loaded);
    if (model) read_model(saved, state, *model, *loaded);
    if (!model) saved.skip("names/");
    loaded->optimizer = optimizer_.validate_state(state, saved.name_of("optimizer"));
    saved.skip("optimizer/");
    if (options_.average) {
        loaded->average = options_.average->validate_state(state, saved.name_of("average"));
        saved.skip("average/");
    }
    saved.require_all_read();

    return [this, loaded] {
        discard();
        for (detail::PendingValue<S>& each : loaded->numbers) each.commit();
        for (auto& [node, gradient] : loaded->gradients) {
            std::swap(node->gradient, gradient);
            node->grad_flags |= grad_flag::present;  // because into() would count a backward()
            detail::account_as(node->gradient, MemoryClass::gradient);
        }
        if (loaded->micro_batches > 0) {
            lock_.lock(loaded->mode);
            lock_.snapshot();
        }
        saved_ = true;
        micro_batches_ = loaded->micro_batches;
        dropped_ = loaded->dropped;
        items_ = loaded->items;
        updates_ = loaded->updates;
        loss_sum_ = std::move(loaded->sum);
        denominator_.restart(std::move(loaded->count));
        if (exact_) exact_->sums() = std::move(loaded->exact);
        if (noise_estimator_) noise_estimator_->take(std::move(loaded->noise));
        effects_ = std::move(loaded->effects);
        if (loaded->buffers) optimizer_.note_effects();
        loaded->optimizer();
        if (loaded->average) loaded->average();
    };
}

template detail::GradientReducer<float>::NamedTexts Window<float>::options_as_text(bool) const;
template detail::GradientReducer<double>::NamedTexts Window<double>::options_as_text(bool) const;
template void Window<float>::save(TrainingState&, const std::string&, Module<float>*) const;
template void Window<double>::save(TrainingState&, const std::string&, Module<double>*) const;
template detail::ApplyState Window<float>::validate_state(const TrainingState&, const std::string&,
                                                          Module<float>*, std::optional<std::int64_t>);
template detail::ApplyState Window<double>::validate_state(const TrainingState&, const std::string&,
                                                           Module<double>*, std::optional<std::int64_t>);

}  // namespace tally
