// Lists the versions and devices that ./learn doctor prints, and what each optional package is good for.
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
