// TrainingState: what must be kept so that training can go on as if nothing had happened; named numbers,
// words and arrays, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>

#include "tally/array/array.hpp"

namespace tally {

class TrainingState {
public:
    using Entry = std::variant<std::int64_t, double, std::string, Array<float>, Array<double>>;

    template <class T> void put(const std::string& name, T value) {
        if (!entries_.emplace(name, Entry(std::move(value))).second)
            throw Error("[state] '" + name + "' is there already");
    }

    bool has(const std::string& name) const { return entries_.count(name) > 0; }

    // An Error that says what is missing, or of another kind.
    template <class T> const T& get(const std::string& name) const {
        const auto found = entries_.find(name);
        if (found == entries_.end()) throw Error("[state] there is no '" + name + "'");
        const T* const value = std::get_if<T>(&found->second);
        if (value == nullptr) throw Error("[state] '" + name + "' is of another kind than asked for");
        return *value;
    }

    const std::map<std::string, Entry>& entries() const { return entries_; }

private:
    std::map<std::string, Entry>
        entries_;  // in the order of their names, so that a file of it is the same every time
};

namespace detail {
// Loading in two halves: everything is looked at and all memory had, and then this changes everything and
// cannot fail. So of several things that are loaded together either all change or none.
using ApplyState = std::function<void()>;
}  // namespace detail

}  // namespace tally
