// Which of several things was meant: by its number, its name, or a part of that.
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

// The one with this number, or called so; else the only one whose name begins so; else the only one whose name has it
// somewhere. Otherwise nothing, and in `message` a sentence with the several that it could be, or with the nearest.
std::optional<std::size_t> meant(const std::vector<Named>& all, const std::string& which,
                                 std::string_view kind, std::string_view see, std::string& message);

}  // namespace tally::lesson
