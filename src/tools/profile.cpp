// A `Profile` adds up the time and bytes of each operation, and prints the sums as a table.
#include "tally/tools/profile.hpp"

#include <algorithm>
#include <chrono>

#include "tally/base/text.hpp"
#include "tally/base/text_table.hpp"
#include "tally/memory/memory_thread_stats.hpp"
#include "tally/tools/scope_name.hpp"

namespace tally {

Profile::Profile(Device device, Clock clock)
    : device_(device), clock_(std::move(clock)), begin_(clock_()), last_(begin_) {}

std::uint64_t Profile::steady() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::uint64_t Profile::passed() {
    const std::uint64_t now = clock_();
    return now - std::exchange(last_, now);
}

std::size_t Profile::row_of(const std::string& name, bool marked) {
    const auto [at, added] = places_.try_emplace({marked, name}, rows_.size());
    if (added) {
        rows_.emplace_back();
        rows_.back().name = name;
        rows_.back().marked = marked;
    }
    return at->second;
}

void Profile::trace(Event event) {
    if (events_.size() < most_events) {
        event.where = ScopeName::place();
        const memory::detail::Sums now = memory::detail::sums(device_);
        std::copy_n(now.begin(), memory::detail::memory_classes, event.in_use_by);
        events_.push_back(std::move(event));
    } else {
        ++left_out_;
    }
    own_time_ += passed();
}

void Profile::mark(const std::string& name) {
    const std::uint64_t begin = last_, time = passed();
    const std::size_t place = row_of(name, true);
    ++rows_[place].calls;
    rows_[place].forward += time;
    trace({place, true, begin, last_, {}, {}, 0, 0, {}});
}

void Profile::on_forward(const ForwardEvent& operation) {
    const std::uint64_t begin = last_, time = passed();
    const std::size_t place = row_of(operation.op), result_bytes = detail::output_bytes(operation),
                      saved_bytes = detail::newly_saved_bytes(operation);
    Row& row = rows_[place];
    ++row.calls;
    row.forward += time;
    row.result_bytes += result_bytes;
    row.saved_bytes += saved_bytes;
    trace({place, true, begin, last_, {}, operation.value.shape, result_bytes, saved_bytes, {}});
}

void Profile::before_backward(const Node& node) {
    const std::uint64_t time = passed();
    if (!open_.empty()) rows_[open_.back().row].backward += time;
    open_.push_back({node.id, row_of(node.op()), last_});
}

void Profile::after_backward(const Node& node) {
    const std::uint64_t time = passed();
    if (open_.empty() || open_.back().node != node.id) return;  // the function began before this profile
    const Open rule = open_.back();
    open_.pop_back();
    ++rows_[rule.row].backward_calls;
    rows_[rule.row].backward += time;
    trace({rule.row, false, rule.begin, last_, {}, {}, 0, 0, {}});
}

std::vector<Profile::Row> Profile::rows() const {
    std::vector<Row> sorted = rows_;
    std::ranges::stable_sort(sorted, std::greater(), &Row::total);
    return sorted;
}

std::uint64_t Profile::between() const {
    std::uint64_t remaining = nanoseconds();
    for (const Row& row : rows_) remaining -= row.total();
    return remaining;
}

namespace {

std::string time_in_words(std::uint64_t nanoseconds) {
    const auto time = static_cast<double>(nanoseconds);
    if (nanoseconds < 1000000) return detail::with_decimals(time / 1e3, 1) + " us";
    if (nanoseconds < 10000000000) return detail::with_decimals(time / 1e6, 1) + " ms";
    return detail::with_decimals(time / 1e9, 1) + " s";
}

}  // namespace

std::string to_string(const Profile& profile) {
    using enum TextTable::Side;
    TextTable table({{"operation", left},
                     {"calls", right},
                     {"forward", right},
                     {"backward", right},
                     {"together", right},
                     {"share", right},
                     {"made", right},
                     {"kept", right}});
    const auto line = [&](const Profile::Row& row, bool of_operations) {
        const std::string share =
            detail::with_decimals(100 * static_cast<double>(row.total()) /
                                      static_cast<double>(std::max<std::uint64_t>(profile.nanoseconds(), 1)),
                                  1) +
            " %";
        const auto bytes = [&](std::size_t n) { return of_operations ? detail::format_bytes(n) : ""; };
        table.add({row.name, row.calls ? std::to_string(row.calls) : "", time_in_words(row.forward),
                   of_operations ? time_in_words(row.backward) : "", time_in_words(row.total()), share,
                   bytes(row.result_bytes), bytes(row.saved_bytes)});
    };
    Profile::Row all;
    all.name = "all";
    for (const Profile::Row& row : profile.rows()) {
        line(row, !row.marked);
        if (!row.marked) all.calls += row.calls;
        all.forward += row.forward;
        all.backward += row.backward;
        all.result_bytes += row.result_bytes;
        all.saved_bytes += row.saved_bytes;
    }
    Profile::Row between;
    between.name = "(between)";
    between.forward = profile.between();
    if (between.forward > 0) line(between, false);
    all.forward += between.forward;
    line(all, true);
    return table.text();
}

}  // namespace tally
