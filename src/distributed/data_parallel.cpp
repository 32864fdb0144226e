// DataParallel compares the updates of all processes, sums gradients, and merges side effects.
#include "tally/distributed/data_parallel.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "tally/base/checksum.hpp"
#include "tally/base/version.hpp"
#include "tally/distributed/entry_format.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/state_reader.hpp"

namespace tally {

namespace {

// At the end of an accumulation window, each process sends a message that begins with a `WindowMessage`. The
// message also contains one byte per parameter (1 if it has a gradient), and what SharedSums::serialize() gives.
template <class S> struct WindowMessage {
    detail::WindowTotals totals;
    std::int64_t construction_index;  // index of the Window in the order of construction
    typename DataParallel<S>::MicroBatchesSummary batches;
};

template <class S>
typename DataParallel<S>::MicroBatchesSummary summary_of(const std::vector<Items>& micro_batches) {
    std::vector<std::int64_t> numbers;
    typename DataParallel<S>::MicroBatchesSummary summary{.given = true, .count = std::ssize(micro_batches)};
    for (const Items& part : micro_batches) {
        summary.items += part.count();
        numbers.push_back(part.count());
        for (std::int64_t i = 0; i < part.count(); ++i) numbers.push_back(part[i]);
    }
    summary.checksum = detail::checksum_of(numbers.data(), numbers.size() * sizeof(std::int64_t));
    return summary;
}

template <class Summary> std::string to_text(const Summary& batches) {
    return std::to_string(batches.count) + " micro-batches with " + std::to_string(batches.items) +
           " items in all and checksum " + std::to_string(batches.checksum);
}

}  // namespace

template <class S>
DataParallel<S>::DataParallel(ProcessGroup& processes, detail::DataParallelOptions<S> options)
    : processes_(processes),
      options_(options),
      bucket_(std::make_unique<detail::Bucket<S>>()),
      digits_(std::make_unique<detail::Bucket<std::int64_t>>()) {
    detail::require(options_.bucket > 0, "data_parallel", "a bucket of 0 numbers; pass at least 1");
}

template <class S> DataParallel<S>::~DataParallel() = default;

template <class S> std::vector<Items> DataParallel<S>::share(const std::vector<Items>& micro_batches) {
    const std::size_t ranks = static_cast<std::size_t>(processes_.size()),
                      me = static_cast<std::size_t>(processes_.rank());
    const auto begin = [&](std::size_t rank) {
        return micro_batches.begin() + static_cast<std::ptrdiff_t>(rank * micro_batches.size() / ranks);
    };
    latest_share_number_ = ++share_count_;
    numbered_ = true;
    last_micro_batches_ = summary_of<S>(micro_batches);
    first_item_ = 0;
    for (auto part = micro_batches.begin(); part != begin(me); ++part) first_item_ += part->count();
    return {begin(me), begin(me + 1)};
}

template <class S>
std::int64_t DataParallel<S>::first_item(const Optimizer<S>& optimizer, std::int64_t window_index) {
    WindowRecord& record = windows_.at(&optimizer);
    if (std::exchange(record.share_number_window_index, window_index) != window_index)
        record.share_number = latest_share_number_;
    if (latest_share_number_ && record.share_number && *record.share_number != *latest_share_number_)
        throw Error("data_parallel",
                    "share() was called again in this window, so two processes would draw the same random "
                    "numbers; share all micro-batches of a window by one call, or call begin_at(item) with "
                    "the index of this process's first item");
    return first_item_;
}

template <class S>
std::vector<std::string> DataParallel<S>::all_gather(const std::string& what, const std::string& mine) {
    must_not_report_ = true;  // an error in this call is thrown on all processes
    std::vector<std::string> all = processes_.all_gather(what + call_, where_, mine);
    must_not_report_ = false;
    return all;
}

// ---- before the first micro-batch ----

// Compares a checksum of all texts between the processes, and the texts themselves if the checksums differ.
template <class S> void DataParallel<S>::require_equal(const std::string& what, const NamedTexts& texts,
                                                       const std::string& advice) {
    const std::string bytes = detail::serialize_texts(texts);
    const auto sums = all_gather(what, std::to_string(detail::checksum_of(bytes.data(), bytes.size())));
    if (std::ranges::count(sums, sums[0]) == std::ssize(sums)) return;
    const std::vector<std::string> serialized = all_gather("the compared values of " + what, bytes);
    must_not_report_ = true;
    throw Error("processes", what, call_, ": ", detail::difference(serialized), advice);
}

template <class S> typename DataParallel<S>::NamedTexts DataParallel<S>::checksums() const {
    NamedTexts texts;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
        texts.emplace_back("parameter " + std::to_string(i) + " with checksum",
                           std::to_string(detail::checksum(parameters_[i].value())));
    return texts;
}

template <class S> void DataParallel<S>::open(const Optimizer<S>& optimizer, const NamedTexts& options) {
    parameters_ = optimizer.parameters();
    WindowRecord& record = windows_[&optimizer] = {};
    call_ = where_ = "";
    NamedTexts texts{
        {"version", std::to_string(TALLY_VERSION_MAJOR) + '.' + std::to_string(TALLY_VERSION_MINOR) + '.' +
                        std::to_string(TALLY_VERSION_PATCH)},
        {"bits per number", std::to_string(8 * sizeof(S))},
        {"reduce", options_.reduce == ProcessGroup::AllReduce::fast ? "fast" : "rank_order"},
        {"numbers per bucket", std::to_string(options_.bucket)},
        {"parameters:", std::to_string(parameters_.size())}};
    std::size_t elements = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const auto& value = parameters_[i].value();
        texts.emplace_back("parameter " + std::to_string(i) + " with shape", to_string(value.shape()));
        elements += value.size();
    }
    if (options_.model)
        for (const detail::Member<S>& member : detail::members(*options_.model))
            for (std::size_t i = 0; i < parameters_.size(); ++i)
                if (member.parameter && member.parameter.node() == parameters_[i].node())
                    texts.emplace_back("parameter " + std::to_string(i) + " with name", member.name);
    for (const auto& [name, value] : options) texts.emplace_back("option " + name, value);
    TrainingState state;
    optimizer.save(state, "optimizer");
    for (const auto& [name, entry] : state.entries()) texts.emplace_back(name, detail::entry_text(entry));
    for (auto& line : checksums()) texts.push_back(std::move(line));
    require_equal_and_allow_reports("the construction of a Window", texts);
    record.construction_index = processes_.next_window_index();
    if (processes_.size() == 1) return;
    bucket_->resize(std::max(std::min(elements, options_.bucket), bucket_->numbers.size()),
                    static_cast<std::size_t>(processes_.size()));
}

template <class S> void DataParallel<S>::require_same_weights() {
    detail::require(!parameters_.empty(), "data_parallel", "no weights to compare; construct a Window first");
    call_ = where_ = "";
    require_equal_and_allow_reports("require_same_weights", checksums());
}

template <class S>
void DataParallel<S>::require_equal_and_allow_reports(const std::string& what, const NamedTexts& texts) {
    try {
        require_equal(what, texts);
    } catch (...) {
        must_not_report_ = false;  // otherwise the next report_failure() would report nothing
        throw;
    }
}

// ---- the window's end ----

template <class S> void DataParallel<S>::require_equal_totals(const std::vector<std::string>& all) {
    const auto first = detail::from_bytes<WindowMessage<S>>(all[0]);
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        const auto other = detail::from_bytes<WindowMessage<S>>(all[rank]);
        const auto require_same = [&](const char* what, auto theirs, auto of_first) {
            if (theirs == of_first) return;
            if (std::isnan(static_cast<double>(theirs)) && std::isnan(static_cast<double>(of_first))) return;
            must_not_report_ = true;
            throw Error("processes", call_, ": rank ", rank, " has ", what, " ", static_cast<double>(theirs),
                        ", rank 0 has ", static_cast<double>(of_first), "; make them equal on all processes");
        };
        require_same("Window objects constructed before this one:", other.construction_index,
                     first.construction_index);
        require_same("updates:", other.totals.updates, first.totals.updates);
        require_same("the learning rate", other.totals.learning_rate, first.totals.learning_rate);
        require_same("terms of add_regularizer():", other.totals.regularizers, first.totals.regularizers);
        require_same("terms of add_regularizer() with the sum", other.totals.regularizer_value,
                     first.totals.regularizer_value);
        if (!other.batches.given || !first.batches.given || other.batches == first.batches) continue;
        must_not_report_ = true;
        throw Error("processes", call_, ": rank ", rank, " passed ", to_text(other.batches),
                    " to share(), rank 0 passed ", to_text(first.batches),
                    "; pass the same micro-batches in the same order on all processes");
    }
}

// Compares the weights of all processes again if a process changed weights without an optimizer step.
template <class S> void DataParallel<S>::require_equal_written_weights(const std::vector<std::string>& all) {
    std::string writers;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (detail::from_bytes<detail::WindowTotals>(all[rank]).written)
            writers += (writers.empty() ? "rank " : ", rank ") + std::to_string(rank);
    if (!writers.empty())
        require_equal("the weights, written since the last update by " + writers + ", at the ", checksums(),
                      "; discard() the window, and write the same numbers on all processes");
}

template <class S> detail::WindowTotals DataParallel<S>::gather(const Optimizer<S>& optimizer,
                                                                const char* call, std::int64_t window_index,
                                                                const detail::WindowTotals& here,
                                                                std::span<detail::ExactSum<S>> exact) {
    parameters_ = optimizer.parameters();
    call_ = std::string(call) + " of window " + std::to_string(window_index);
    where_ = "after " + std::to_string(here.micro_batches) + " micro-batches";
    const WindowMessage<S> mine{here, windows_.at(&optimizer).construction_index, last_micro_batches_};
    std::string message = detail::bytes_of(mine);
    for (const Var<Array<S>>& parameter : parameters_) message += parameter.has_grad() ? '\1' : '\0';
    const std::vector<std::string> all =
        all_gather("", message + exact_sums_.serialize(exact, static_cast<std::size_t>(processes_.size())));

    detail::WindowTotals combined{.regularizers = here.regularizers,
                                  .full = true,
                                  .learning_rate = here.learning_rate,
                                  .updates = here.updates};
    any_rank_has_gradient_.assign(parameters_.size(), false);
    require_equal_totals(all);
    require_equal_written_weights(all);
    for (const std::string& theirs : all) {
        const auto totals = detail::from_bytes<detail::WindowTotals>(theirs);
        combined.micro_batches += totals.micro_batches;
        combined.dropped += totals.dropped;
        combined.count += totals.count;
        combined.loss_sum += totals.loss_sum;
        combined.noise += totals.noise;
        combined.planned = combined.planned || totals.planned;
        combined.full = combined.full && totals.full;
        for (std::size_t i = 0; i < parameters_.size(); ++i)
            if (theirs[sizeof mine + i]) any_rank_has_gradient_[i] = true;
        exact_sums_.merge(std::string_view(theirs).substr(message.size()));
    }
    if (!exact.empty()) combined.loss_sum = exact_sums_.loss(), combined.count = exact_sums_.count();
    return combined;
}

// Allocates memory before the processes exchange side effects, so that a process can still report an error.
template <class S>
void DataParallel<S>::reduce(detail::SideEffects& effects, std::span<detail::ExactSum<S>> exact) {
    if (processes_.size() == 1) return;
    detail::require(effects.empty() || options_.model, "data_parallel",
                    "a layer has side effects, such as the statistics of batch norm; pass the model: "
                    "DataParallel(processes, {.model = &model})");
    exact.empty() ? prepare_gradients() : prepare_digits(exact);
    merge_effects(effects);
    exact.empty() ? sum_gradients() : sum_digits(exact);
}

// If only other processes have a gradient of a parameter, sets the gradient to -0, which changes no sum.
// Allocates all memory now, because a process cannot report an error that occurs between two sums.
template <class S> void DataParallel<S>::prepare_gradients() {
    for (std::size_t i = 0; i < any_rank_has_gradient_.size(); ++i) {
        const Var<Array<S>>& parameter = parameters_[i];
        if (!any_rank_has_gradient_[i]) continue;
        if (!parameter.has_grad()) {
            const Array<S>& value = parameter.value();
            accumulate_into(parameter.node()->into(), Array<S>::full(value.shape(), S(-0.0), value.device()));
            detail::account_as(parameter.node()->gradient, MemoryClass::gradient);
        }
        parameter.modify_grad([](Array<S>& gradient) { gradient.writable(); });  // copies a shared buffer
    }
}

// Merges the side effects of all processes in the order of ranks, including processes without side effects.
template <class S> void DataParallel<S>::merge_effects(detail::SideEffects& effects) {
    TrainingState mine;
    if (options_.model)
        for (const auto& [name, module] : detail::modules(*options_.model))
            if (const detail::SideEffect* const effect = effects.of(module))
                effect->save(mine, "effects/" + name);
    const std::vector<std::string> all = all_gather("effects, ", detail::state_bytes(mine));
    if (!options_.model) return;  // without a model, no process has side effects
    detail::SideEffects merged;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const TrainingState state = detail::state_in_message(all[rank], rank);
        for (const auto& [name, module] : detail::modules(*options_.model))
            if (auto effect = module->saved_effect(state, "effects/" + name))
                merged.add(module, std::move(effect));
    }
    effects = std::move(merged);
}

template <class S> void DataParallel<S>::sum_gradients() {
    detail::BucketedAllReduce<S> sums(processes_, options_.reduce, bucket_, must_not_report_);
    for (std::size_t i = 0; i < any_rank_has_gradient_.size(); ++i)
        if (any_rank_has_gradient_[i])
            parameters_[i].modify_grad([&](Array<S>& gradient) {
                sums.add(gradient.writable(), gradient.size(), gradient.device());
            });
    sums.finish();
}

template <class S> void DataParallel<S>::prepare_digits(std::span<detail::ExactSum<S>> exact) {
    const std::size_t digits = exact_sums_.widen(exact);
    digits_->resize(std::min(digits, options_.bucket), static_cast<std::size_t>(processes_.size()));
}

// Uses AllReduce::fast, because a sum of integers does not depend on the order.
template <class S> void DataParallel<S>::sum_digits(std::span<detail::ExactSum<S>> exact) {
    detail::BucketedAllReduce<std::int64_t> sums(processes_, ProcessGroup::AllReduce::fast, digits_,
                                                 must_not_report_);
    for (detail::ExactSum<S>& sum : exact) sums.add(sum.words().data(), sum.words().size(), Device::cpu);
    sums.finish();
    exact_sums_.set_additions(exact);
}

template <class S> void DataParallel<S>::barrier_before_step() { all_gather("the step, "); }

template <class S> void DataParallel<S>::report_failure(const char* call, std::int64_t window_index,
                                                        const std::string& why) noexcept {
    if (std::exchange(must_not_report_, false)) return;
    processes_.report_failure(std::string(call) + " of window " + std::to_string(window_index), why);
}

template class DataParallel<float>;
template class DataParallel<double>;

}  // namespace tally
