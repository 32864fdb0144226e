// These helpers for tests of file formats read and write bytes, and change one entry of a TrainingState.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tally/io/training_state.hpp"

namespace tally::test {

inline std::string read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class T> std::string as_text(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Returns a copy of `state` in which the entry `name` is replaced or removed.
inline TrainingState with(const TrainingState& state, const std::string& name,
                          const std::optional<TrainingState::Entry>& entry) {
    TrainingState changed;
    for (const auto& [key, value] : state.entries())
        if (key != name) std::visit([&, &k = key](auto v) { changed.put(k, std::move(v)); }, value);
    if (entry) std::visit([&](auto v) { changed.put(name, std::move(v)); }, *entry);
    return changed;
}

}  // namespace tally::test
