// Reads and validates a saved training state, and validates options. Include this header only in .cpp files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/text.hpp"
#include "tally/io/training_state.hpp"

namespace tally {

inline void require(bool holds, const std::string& who, const std::string& what, double given) {
    if (!holds) throw Error("[" + who + "] " + what + "; " + detail::to_text(given) + " is not");
}

// Throws unless each variable is a parameter, all are on one device, and none occurs twice.
template <class S>
void require_parameters(const std::string& who, const std::vector<Var<Array<S>>>& parameters) {
    if (parameters.empty()) throw Error("[" + who + "] the list of parameters is empty");
    const auto which = [&](std::size_t i) { return "[" + who + "] parameter " + std::to_string(i); };
    std::vector<std::pair<const Node*, std::size_t>> seen(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Node* const node = parameters[i].node();
        if (!node) throw Error(which(i) + " is an empty variable");
        const Array<S>& value = parameters[i].value();
        if (node->state != detail::State::leaf)
            throw Error(which(i) + " of " + detail::describe(value) + " is the result of '" + node->op() +
                        "'; only a result of parameter() can be updated");
        if (value.device() != parameters[0].value().device())
            throw Error(which(i) + " is on " + to_string(value.device()) + ", but parameter 0 is on " +
                        to_string(parameters[0].value().device()) + "; move all parameters to one device");
        seen[i] = {node, i};
    }
    std::sort(seen.begin(), seen.end());
    const auto twice = std::adjacent_find(seen.begin(), seen.end(),
                                          [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice == seen.end()) return;
    const std::size_t second = (twice + 1)->second;
    throw Error(which(second) + " of " + detail::describe(parameters[second].value()) +
                " is listed twice, so it would be updated twice; list it once");
}

// StateReader reads the entries of a state whose names begin with `prefix`, and throws for invalid values.
// require_all_read() throws for entries that were not read, because such entries belong to a different run.
class StateReader {
public:
    StateReader(std::string who, const TrainingState& state, std::string prefix)
        : who_(std::move(who)), state_(state), prefix_(std::move(prefix)) {}

    std::string name_of(const std::string& name) const { return prefix_ + "/" + name; }
    bool has(const std::string& name) const { return state_.has(name_of(name)); }
    template <class T> const T& get(const std::string& name) {
        return state_.get<T>(*read_.insert(name_of(name)).first);
    }
    std::int64_t count(const std::string& name, std::int64_t max_count = std::int64_t{1} << 53) {
        const auto saved = get<std::int64_t>(name);
        if (saved < 0 || saved > max_count)
            fail("'" + name_of(name) + "' is " + std::to_string(saved) + ", a count from 0 to " +
                 std::to_string(max_count) + " expected");
        return saved;
    }
    template <class S> Array<S> number(const std::string& name, const Array<S>& like) {
        const Array<S>& saved = get<Array<S>>(name);
        if (!detail::has_memory(saved) || saved.shape() != Shape{})
            fail("'" + name_of(name) + "' is " + to_string(saved.shape()) + ", one number expected");
        return saved.to(like.device());
    }
    // Returns an array with the shape of `like`, on the device of `like`.
    template <class S> Array<S> array(const std::string& name, const Array<S>& like) {
        const Array<S>& saved = get<Array<S>>(name);
        if (!detail::has_memory(saved) || saved.shape() != like.shape())
            fail("'" + name_of(name) + "' is " + to_string(saved.shape()) + ", its parameter " +
                 to_string(like.shape()));
        return saved.to(like.device());
    }

    void require_parameter_count(std::size_t here) {
        if (const std::int64_t saved = count("parameters"); saved != static_cast<std::int64_t>(here))
            fail("'" + prefix_ + "' was saved with " + std::to_string(saved) + " parameters, here are " +
                 std::to_string(here));
    }
    void require_present(std::int64_t saved, const std::string& what, std::int64_t present) const {
        if (saved != present)
            fail("'" + prefix_ + "' has " + std::to_string(present) + " of " + std::to_string(saved) + " " +
                 what);
    }
    // Throws if the saved value differs from the current value `here`. The error message ends with `way_out`.
    void require_option(const std::string& option, double here, const std::string& way_out = "") {
        const double saved = get<double>("options/" + option);
        if (saved != here) fail_option(option, detail::to_text(saved), detail::to_text(here), way_out);
    }
    void require_options(const std::vector<std::pair<std::string, std::string>>& options) {
        for (const auto& [option, here] : options)
            if (const auto& saved = get<std::string>("options/" + option); saved != here)
                fail_option(option, saved, here, "");
    }
    [[noreturn]] void fail_option(const std::string& option, const std::string& saved,
                                  const std::string& here, const std::string& way_out) const {
        fail("'" + prefix_ + "' was saved with " + option + " " + saved + ", here it is " + here + way_out);
    }

    // Makes require_all_read() accept entries whose names begin with `part`, because other code reads them.
    void skip(const std::string& part) { skipped_.push_back(name_of(part)); }
    void require_all_read() const {
        const std::string start = prefix_ + "/";
        const auto& all = state_.entries();
        for (auto each = all.lower_bound(start); each != all.end() && each->first.starts_with(start);
             ++each) {
            const std::string& name = each->first;
            const auto is_in = [&](const std::string& part) { return name.starts_with(part); };
            if (read_.count(name) == 0 && std::none_of(skipped_.begin(), skipped_.end(), is_in))
                fail("'" + name + "' was saved, but nothing here reads it");
        }
    }
    [[noreturn]] void fail(const std::string& what) const { throw Error("[" + who_ + "] " + what); }

private:
    std::string who_;
    const TrainingState& state_;
    std::string prefix_;
    std::set<std::string> read_;
    std::vector<std::string> skipped_;
};

}  // namespace tally
