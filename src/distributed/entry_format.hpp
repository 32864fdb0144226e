// entry_text() formats an entry of a training state, so that processes can compare their entries as text.
#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include "tally/base/checksum.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/state_reader.hpp"

namespace tally::detail {

inline std::string entry_text(const TrainingState::Entry& entry) {
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

}  // namespace tally::detail
