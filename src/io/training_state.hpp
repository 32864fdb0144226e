// TrainingState holds named numbers, texts and arrays, from which a training resumes with the same bits.
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
            throw Error("state", "'", name, "' exists already; use another name");
    }

    bool has(const std::string& name) const { return entries_.count(name) > 0; }

    // Throws if the entry does not exist or has another type.
    template <class T> const T& get(const std::string& name) const {
        const auto found = entries_.find(name);
        if (found == entries_.end())
            throw Error("state", "there is no '", name, "'; load a state that holds it");
        const T* const value = std::get_if<T>(&found->second);
        if (value == nullptr) throw Error("state", "'", name, "' has another type; call get() with its type");
        return *value;
    }

    const std::map<std::string, Entry>& entries() const { return entries_; }

private:
    std::map<std::string, Entry> entries_;  // sorted, so that equal states give equal files
};

namespace detail {
// The second step of loading. The first step checks everything and allocates all memory; this function then
// applies the changes and cannot fail. Objects that are loaded together therefore change all or none.
using ApplyState = std::function<void()>;
}  // namespace detail

}  // namespace tally
