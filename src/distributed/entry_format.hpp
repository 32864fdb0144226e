// Converts values, training states and lists of named texts to texts that processes exchange and compare.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "tally/io/training_state.hpp"
#include "tally/train/state_reader.hpp"

namespace tally::detail {

inline std::string entry_text(const TrainingState::Entry& entry) {  // arrays are described by a checksum
    return std::visit(
        [](const auto& value) -> std::string {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::string>)
                return value;
            else if constexpr (std::is_arithmetic_v<T>)
                return to_text(static_cast<double>(value));
            else
                return to_string(value.shape()) + " with checksum " + std::to_string(checksum(value));
        },
        entry);
}

// bytes_of() converts a trivially copyable value to a text. from_bytes() converts it back, and ignores later bytes.
template <class T> std::string bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T> T from_bytes(const std::string& bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// serialize_texts() returns the bytes of a TrainingState with these texts, and parse_texts() reads them back.
inline std::string serialize_texts(const NamedTexts& texts) {
    TrainingState state;
    state.put("lines", static_cast<std::int64_t>(texts.size()));
    for (std::size_t i = 0; i < texts.size(); ++i) {
        state.put("name/" + std::to_string(i), texts[i].first);
        state.put("value/" + std::to_string(i), texts[i].second);
    }
    return state_bytes(state);
}

inline TrainingState state_in_message(const std::string& bytes, std::size_t rank) {
    return parse_state(std::as_bytes(std::span(bytes)), "the message of rank " + std::to_string(rank));
}

inline NamedTexts parse_texts(const std::string& bytes, std::size_t rank) {
    const TrainingState state = state_in_message(bytes, rank);
    NamedTexts texts;
    for (std::int64_t i = 0; i < state.get<std::int64_t>("lines"); ++i)
        texts.emplace_back(state.get<std::string>("name/" + std::to_string(i)),
                           state.get<std::string>("value/" + std::to_string(i)));
    return texts;
}

// Describes the first named text that differs between rank 0 and another rank, or that only one of them has.
inline std::string difference(const std::vector<std::string>& serialized) {
    std::size_t rank = 1;
    while (rank + 1 < serialized.size() && serialized[rank] == serialized[0]) ++rank;
    const NamedTexts first = parse_texts(serialized[0], 0), other = parse_texts(serialized[rank], rank);
    const std::string who = "rank " + std::to_string(rank) + " has ";
    for (std::size_t i = 0; i < std::max(first.size(), other.size()); ++i) {
        if (i >= other.size()) return who + "no " + first[i].first + ", rank 0 has " + first[i].second;
        if (i >= first.size()) return who + other[i].first + " " + other[i].second + ", rank 0 has none";
        if (first[i].first != other[i].first)
            return who + "an entry '" + other[i].first + "' where rank 0 has '" + first[i].first + "'";
        if (first[i].second != other[i].second)
            return who + first[i].first + " " + other[i].second + ", rank 0 has " + first[i].second;
    }
    return "";
}

}  // namespace tally::detail
