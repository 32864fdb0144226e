// The state that the test cases of a program share; each case must leave it unchanged.
#pragma once

#include <map>
#include <string>

namespace tally::test {

using Surroundings = std::map<std::string, std::string>;  // name and value of each setting

Surroundings surroundings();

}  // namespace tally::test
