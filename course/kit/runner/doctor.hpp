// Collects versions, devices and optional packages for ./learn doctor.
#pragma once

#include <string>
#include <vector>

#include "course/kit/flags.hpp"

namespace tally::lesson {

struct Finding {
    std::string about, name, text;
};

std::vector<Finding> findings(const Flags& flags, const std::string& lessons_folder);

}  // namespace tally::lesson
