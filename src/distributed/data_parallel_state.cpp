// Implements DataParallel::save() and load(). A file saved during an update has a part for each process.
#include <algorithm>
#include <array>
#include <string_view>

#include "tally/distributed/data_parallel.hpp"
#include "tally/distributed/entry_format.hpp"
#include "tally/distributed/parcel.hpp"
#include "tally/io/training_state.hpp"

namespace tally {

namespace {

const std::string prefix = "window", batches_entry = prefix + "/micro_batches";

// Returns whether each process has its own value of an entry. "swept" tells if after_backward() was called,
// "sum" is the sum of the losses, and "reached" is the number of saved gradients.
bool is_own(std::string_view name) {
    constexpr std::array own = {"window/planned", "window/micro_batches", "window/dropped",
                                "window/items",   "window/swept",         "window/sum",
                                "window/count",   "window/reached",       "window/gradients/",
                                "window/effects", "window/noise/first",   "window/noise/squared_weights"};
    return std::ranges::any_of(own, [&](const char* start) { return name.starts_with(start); });
}

std::string rank_prefix(std::size_t rank) { return "processes/rank/" + std::to_string(rank) + "/"; }

void put(TrainingState& to, const std::string& name, const TrainingState::Entry& entry) {
    std::visit([&](const auto& value) { to.put(name, value); }, entry);
}

// Throws if the file was saved during an update by a different number of processes, because the file then
// contains separate sums for each process. Between two updates, all processes have the same values.
void require_resumable(int ranks, const TrainingState& file, const std::string& path) {
    const std::int64_t saved = file.has("processes/count") ? file.get<std::int64_t>("processes/count") : 1;
    const bool has_parts = file.has(rank_prefix(0) + batches_entry);
    if (!has_parts && (!file.has(batches_entry) || file.get<std::int64_t>(batches_entry) == 0)) return;
    const std::string saved_by = std::to_string(saved) + (saved == 1 ? " process" : " processes");
    if (saved != ranks)
        throw Error("data_parallel", "load: '", path, "' was saved in the middle of a window by ", saved_by,
                    ", but this run has ", ranks, "; resume with ", saved_by,
                    ", or from a file that was saved between two windows");
    if (!has_parts && saved > 1)
        throw Error("data_parallel", "load: '", path, "' was saved in the middle of a window by ", saved_by,
                    " with joined exact sums, by an earlier version of tally that is not supported any more; "
                    "resume from a file that was saved between two windows");
}

// Returns the entries of the process `rank`, and the entries that are common to all processes.
TrainingState state_for(int rank, const TrainingState& file) {
    TrainingState all;
    const std::string mine = rank_prefix(static_cast<std::size_t>(rank));
    for (const auto& [name, entry] : file.entries())
        if (name.starts_with(mine))
            put(all, name.substr(mine.size()), entry);
        else if (!name.starts_with("processes/"))
            put(all, name, entry);
    return all;
}

// Calls f. Reports an error of f to the other processes, unless all processes already throw this error.
template <class F> void run_and_report_errors(ProcessGroup& processes, const std::string& call, F f) {
    try {
        f();
    } catch (const detail::SharedError&) {
        throw;
    } catch (const std::exception& error) {
        processes.report_failure(call, error.what());
        throw;
    }
}

// Returns the entries that differ between processes, and adds all other entries of `window` to `shared`.
template <class S> TrainingState own_part(const Window<S>& window, Module<S>* model, TrainingState& shared) {
    for (const auto& [name, entry] : shared.entries())
        if (name.starts_with("window/") || name.starts_with("processes/"))
            throw Error("data_parallel", "save: the name '", name,
                        "' is reserved; use names without the prefixes 'window/' and 'processes/'");
    TrainingState all, part;
    window.save(all, prefix, model);
    for (const auto& [name, entry] : all.entries()) put(is_own(name) ? part : shared, name, entry);
    return part;
}

TrainingState receive_part(int rank, ProcessGroup& processes, const std::string& call) {
    const std::string bytes = detail::receive_parcel(processes, rank, call);
    return detail::parse_state(std::as_bytes(std::span(bytes)), "the part of rank " + std::to_string(rank));
}

// Joins the parts of all processes and the shared entries on rank 0.
TrainingState joined_file(TrainingState first, TrainingState shared, ProcessGroup& processes,
                          const std::string& call) {
    std::vector<TrainingState> parts{std::move(first)};
    for (int rank = 1; rank < processes.size(); ++rank) parts.push_back(receive_part(rank, processes, call));
    const bool mid_window = std::ranges::any_of(
        parts, [](const TrainingState& part) { return part.get<std::int64_t>(batches_entry) > 0; });
    shared.put("processes/count", std::int64_t{processes.size()});
    for (std::size_t rank = 0; rank < (mid_window ? parts.size() : 1); ++rank)
        for (const auto& [name, entry] : parts[rank].entries())
            put(shared, (mid_window ? rank_prefix(rank) : "") + name, entry);
    return shared;
}

}  // namespace

template <class S>
void DataParallel<S>::save(const std::string& path, const Window<S>& window, TrainingState state) {
    call_ = "save of '" + path + "', file " + std::to_string(file_count_++);
    where_ = "";
    TrainingState part;
    run_and_report_errors(processes_, call_, [&] { part = own_part(window, options_.model, state); });
    NamedTexts texts;
    for (const auto& [name, entry] : state.entries()) texts.emplace_back(name, detail::entry_text(entry));
    require_equal_and_allow_reports("the shared entries, ", texts);
    run_and_report_errors(processes_, call_, [&] {
        if (processes_.rank() == 0)
            joined_file(std::move(part), std::move(state), processes_, call_).save(path);
        else
            detail::send_parcel(processes_, 0, call_, detail::state_bytes(part));
    });
    processes_.all_gather(call_, "while rank 0 writes the file", "");
    processes_.transport().free_sent();
}

template <class S> TrainingState DataParallel<S>::load(const std::string& path, Window<S>& window) {
    call_ = "load of '" + path + "', file " + std::to_string(file_count_++);
    where_ = "";
    TrainingState mine;
    run_and_report_errors(processes_, call_, [&] {
        if (processes_.rank() != 0) {
            mine = receive_part(0, processes_, call_);
            return;
        }
        const TrainingState file = TrainingState::load(path);
        require_resumable(processes_.size(), file, path);
        mine = state_for(0, file);
        for (int rank = 1; rank < processes_.size(); ++rank)
            detail::send_parcel(processes_, rank, call_, detail::state_bytes(state_for(rank, file)));
    });
    detail::ApplyState apply_state;
    run_and_report_errors(processes_, call_,
                          [&] { apply_state = window.validate_state(mine, prefix, options_.model, {}); });
    processes_.all_gather(call_, "while all processes check the state", "");
    processes_.transport().free_sent();
    apply_state();
    TrainingState rest;
    for (const auto& [name, entry] : mine.entries())
        if (!name.starts_with("window/")) put(rest, name, entry);
    return rest;
}

template void DataParallel<float>::save(const std::string&, const Window<float>&, TrainingState);
template void DataParallel<double>::save(const std::string&, const Window<double>&, TrainingState);
template TrainingState DataParallel<float>::load(const std::string&, Window<float>&);
template TrainingState DataParallel<double>::load(const std::string&, Window<double>&);

}  // namespace tally
