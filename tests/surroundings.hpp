// surroundings() returns the state that all test cases of a program share. No case may change this state.
#pragma once

#include <map>
#include <string>

namespace tally::test {

using Surroundings = std::map<std::string, std::string>;  // name and value of each setting

Surroundings surroundings();

}  // namespace tally::test
