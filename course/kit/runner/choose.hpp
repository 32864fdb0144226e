// Finds the lesson or exercise that the user means by a number, a name or a part of a name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally::lesson {

struct Named {
    int number = 0;
    std::string slug;
};

// Returns the index of the entry with the number or name `which`, or else of the only name that begins with
// `which` or contains it. Otherwise sets `message` to the candidates or to the most similar name.
std::optional<std::size_t> find_named(const std::vector<Named>& all, const std::string& which,
                                      std::string_view kind, std::string_view see, std::string& message);

}  // namespace tally::lesson
