// What the test cases of one program share, and each must leave as it found it.
#pragma once

#include <map>
#include <string>

namespace tally::test {

using Surroundings = std::map<std::string, std::string>;  // what, and how it stands, in words

Surroundings surroundings();

}  // namespace tally::test
