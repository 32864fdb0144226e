// The window of all processes as one file: what each has of its own is joined by rank 0, all else is the same.
#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string_view>

#include "tally/files/state_file.hpp"
#include "tally/processes/entry_words.hpp"
#include "tally/processes/parcel.hpp"
#include "tally/processes/ranks.hpp"
#include "tally/train/require.hpp"

namespace tally {

namespace {

const std::string under = "window", numbers = "processes/done";

// The entries of a window that are each process's own, by how they begin.
bool is_own(std::string_view name) {
    constexpr std::array own = {"window/planned", "window/micro_batches", "window/dropped",
                                "window/items",   "window/swept",         "window/sum",
                                "window/count",   "window/reached",       "window/gradients/",
                                "window/effects", "window/noise/first",   "window/noise/squared_weights",
                                "processes/done"};
    return std::ranges::any_of(own, [&](const char* start) { return name.starts_with(start); });
}

std::string apart(std::size_t rank) { return "processes/rank/" + std::to_string(rank) + "/"; }

void put(TrainingState& to, const std::string& name, const TrainingState::Entry& entry) {
    std::visit([&](const auto& value) { to.put(name, value); }, entry);
}

std::string listed(const std::vector<std::int64_t>& all) {
    std::string words;
    for (const std::int64_t number : all) words += (words.empty() ? "" : " ") + std::to_string(number);
    return words;
}

std::vector<std::int64_t> numbers_of(const TrainingState& state) {
    std::istringstream words(state.has(numbers) ? state.get<std::string>(numbers) : "");
    std::vector<std::int64_t> all;
    for (std::int64_t number; words >> number;) all.push_back(number);
    return all;
}

// What a process that has added nothing has of its own.
TrainingState nothing_of(const TrainingState& part) {
    TrainingState nothing;
    for (const auto& [name, entry] : part.entries()) {
        if (name.starts_with("window/sums/") && !name.ends_with("/there")) continue;
        if (name.starts_with("window/effects/") || name.starts_with("window/gradients/")) continue;
        if (name == under + "/planned")
            put(nothing, name, entry);
        else
            std::visit(
                [&nothing, &name = name]<class T>(const T& value) {
                    if constexpr (std::is_arithmetic_v<T>)
                        nothing.put(name, T(0));
                    else if constexpr (!std::is_same_v<T, std::string>)
                        nothing.put(name, T::zeros(value.shape()));
                },
                entry);
    }
    return nothing;
}

// Parts of a window of Sum::exact, which become one: sums of whole numbers, so whoever had what.
template <class S> class Joined {
public:
    Joined(const std::vector<Var<Array<S>>>& parameters, Module<S>* model)
        : sums_(parameters), model_(model) {}

    void add(const TrainingState& part) {
        Reading saved("ranks", part, under);
        const std::int64_t micro_batches = saved.count("micro_batches");
        const auto theirs = sums_.read(saved, micro_batches);
        for (std::size_t i = 0; i < theirs.size(); ++i) sums_.sums()[i].merge(theirs[i]);
        for (const auto& [name, entry] : part.entries()) {
            if (const auto* const count = std::get_if<std::int64_t>(&entry)) counts_[name] += *count;
            if (const auto* const measured = std::get_if<double>(&entry)) measured_[name] += *measured;
        }
        if (!model_) return;
        for (const auto& [name, module] : modules(*model_))
            if (auto effect = module->saved_effect(part, under + "/effects/" + name))
                effects_.leave(module, std::move(effect));
    }

    // `first`: that of rank 0, whose plan it keeps.
    TrainingState state(const TrainingState& first) const {
        TrainingState all;
        sums_.save(all, under);
        all.put(under + "/sum", sums_.loss().value());
        all.put(under + "/count", sums_.counted().value());
        std::int64_t effects = 0;
        if (model_)
            for (const auto& [name, module] : modules(*model_))
                if (const Effect* const effect = effects_.of(module)) {
                    effect->save(all, under + "/effects/" + name);
                    ++effects;
                }
        for (const auto& [name, entry] : first.entries()) {
            if (all.has(name) || name.starts_with("window/effects/") || name.starts_with("window/sums/"))
                continue;
            if (name == under + "/effects")
                all.put(name, effects);
            else if (name == under + "/planned" || name == under + "/swept")
                put(all, name, entry);
            else if (const auto measured = measured_.find(name); measured != measured_.end())
                all.put(name, measured->second);
            else if (const auto count = counts_.find(name); count != counts_.end())
                all.put(name, count->second);
        }
        return all;
    }

private:
    detail::ExactGradients<S> sums_;
    Module<S>* model_;
    Effects effects_;
    std::map<std::string, std::int64_t> counts_;
    std::map<std::string, double> measured_;
};

// The micro-batches of all; none of them twice.
class Numbers {
public:
    void add(const TrainingState& part, int rank) {
        for (const std::int64_t number : numbers_of(part))
            if (const auto [at, is_new] = by_.emplace(number, rank); !is_new)
                throw Error("[ranks] save: micro-batch " + std::to_string(number) + " was added by rank " +
                            std::to_string(at->second) + " and by rank " + std::to_string(rank));
    }
    std::string words() const {
        std::vector<std::int64_t> all;
        for (const auto& [number, rank] : by_) all.push_back(number);
        return listed(all);
    }

private:
    std::map<std::int64_t, int> by_;
};

// What the file holds for this process of so many.
TrainingState state_for(int rank, int ranks, const TrainingState& file, const std::string& path) {
    TrainingState part, all;
    const std::int64_t saved = file.has("processes/count") ? file.get<std::int64_t>("processes/count") : 1;
    if (file.has(apart(0) + under + "/micro_batches")) {
        if (saved != ranks)
            throw Error(
                "[ranks] load: '" + path + "' was saved by " + std::to_string(saved) +
                " processes in the middle of a window with Sum::running, whose bits depend on who has "
                "which micro-batches; here are " +
                std::to_string(ranks) + ". Resume with " + std::to_string(saved) + ", or use Sum::exact");
        const std::string mine = apart(static_cast<std::size_t>(rank));
        for (const auto& [name, entry] : file.entries())
            if (name.starts_with(mine)) put(part, name.substr(mine.size()), entry);
    } else {
        for (const auto& [name, entry] : file.entries())
            if (is_own(name) && name != numbers) put(part, name, entry);
        if (rank != 0) part = nothing_of(part);
    }
    for (const auto& [name, entry] : file.entries())
        if (!is_own(name) && !name.starts_with("processes/")) put(all, name, entry);
    for (const auto& [name, entry] : part.entries()) put(all, name, entry);
    if (file.has(numbers)) put(all, numbers, file.entries().at(numbers));
    return all;
}

// What goes wrong in f on this process is an Error on all.
template <class F> void or_all_hear(Processes& processes, const std::string& call, F f) {
    try {
        f();
    } catch (const detail::Heard&) {
        throw;
    } catch (const std::exception& error) {
        processes.fail(call, error.what());
        throw;
    }
}

// What this process has of its own; all else goes to what is shared.
template <class S> TrainingState part_of(const Window<S>& window, Module<S>* model,
                                         const std::vector<std::int64_t>& done, TrainingState& shared) {
    if (!done.empty() && std::ssize(done) != window.micro_batches())
        throw Error("[ranks] save: " + std::to_string(done.size()) + " micro-batches are named, and " +
                    std::to_string(window.micro_batches()) + " are in the window");
    for (const auto& [name, entry] : shared.entries())
        if (name.starts_with("window/") || name.starts_with("processes/"))
            throw Error("[ranks] save: '" + name + "' is a name of the window's own");
    TrainingState all, part;
    window.save(all, under, model);
    for (const auto& [name, entry] : all.entries()) put(is_own(name) ? part : shared, name, entry);
    if (!done.empty()) part.put(numbers, listed(done));
    return part;
}

TrainingState part_from(int rank, Processes& processes, const std::string& call) {
    const std::string bytes = detail::receive_parcel(processes, rank, call);
    return parse_state(std::as_bytes(std::span(bytes)), "what rank " + std::to_string(rank) + " has");
}

// Rank 0 asks the others for their parts, one after the other.
template <class S> TrainingState whole(const Window<S>& window, Module<S>* model, TrainingState first,
                                       TrainingState shared, Processes& processes, const std::string& call) {
    Joined<S> joined(window.optimizer().parameters(), model);
    Numbers done;
    const bool exact = window.options().sum == Sum::exact;
    std::vector<TrainingState> parts;
    std::int64_t came = 0;
    for (int rank = 0; rank < processes.size(); ++rank) {
        TrainingState part = rank == 0 ? first : part_from(rank, processes, call);
        came += part.get<std::int64_t>(under + "/micro_batches");
        done.add(part, rank);
        if (exact)
            joined.add(part);
        else
            parts.push_back(std::move(part));
    }
    shared.put("processes/count", std::int64_t{processes.size()});
    const TrainingState own = exact ? joined.state(first) : first;
    if (exact || came == 0) {
        for (const auto& [name, entry] : own.entries())
            if (name != numbers) put(shared, name, entry);
    } else {
        for (std::size_t rank = 0; rank < parts.size(); ++rank)
            for (const auto& [name, entry] : parts[rank].entries())
                if (name != numbers) put(shared, apart(rank) + name, entry);
    }
    shared.put(numbers, done.words());
    return shared;
}

}  // namespace

template <class S> void Ranks<S>::save(const std::string& path, const Window<S>& window, TrainingState state,
                                       const std::vector<std::int64_t>& done) {
    call_ = "save of '" + path + "', file " + std::to_string(files_++);
    where_ = "";
    TrainingState part;
    or_all_hear(processes_, call_, [&] { part = part_of(window, options_.model, done, state); });
    Named lines;
    for (const auto& [name, entry] : state.entries()) lines.emplace_back(name, detail::entry_in_words(entry));
    expect_equal_apart("what is the same everywhere, ", lines);
    or_all_hear(processes_, call_, [&] {
        if (processes_.rank() == 0)
            save_state(path,
                       whole(window, options_.model, std::move(part), std::move(state), processes_, call_));
        else
            detail::send_parcel(processes_, 0, call_, state_bytes(part));
    });
    processes_.meet(call_, "the file", "");
    processes_.wire().under_way();  // lets go of what was sent
}

template <class S> Resumed Ranks<S>::load(const std::string& path, Window<S>& window) {
    call_ = "load of '" + path + "', file " + std::to_string(files_++);
    where_ = "";
    TrainingState mine;
    or_all_hear(processes_, call_, [&] {
        if (processes_.rank() != 0) {
            mine = part_from(0, processes_, call_);
            return;
        }
        const TrainingState file = load_state(path);
        mine = state_for(0, processes_.size(), file, path);
        for (int rank = 1; rank < processes_.size(); ++rank)
            detail::send_parcel(processes_, rank, call_,
                                state_bytes(state_for(rank, processes_.size(), file, path)));
    });
    Commit commit;
    or_all_hear(processes_, call_, [&] { commit = window.prepare_load(mine, under, options_.model, {}); });
    processes_.meet(call_, "all of it", "");
    processes_.wire().under_way();
    commit();
    Resumed resumed{{}, numbers_of(mine)};
    for (const auto& [name, entry] : mine.entries())
        if (!name.starts_with("window/") && name != numbers) put(resumed.state, name, entry);
    return resumed;
}

template void Ranks<float>::save(const std::string&, const Window<float>&, TrainingState,
                                 const std::vector<std::int64_t>&);
template void Ranks<double>::save(const std::string&, const Window<double>&, TrainingState,
                                  const std::vector<std::int64_t>&);
template Resumed Ranks<float>::load(const std::string&, Window<float>&);
template Resumed Ranks<double>::load(const std::string&, Window<double>&);

}  // namespace tally
