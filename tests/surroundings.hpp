// surroundings() returns the state of the program that no test case may change.
#pragma once

#include <map>
#include <string>

namespace tally::test {

using Surroundings = std::map<std::string, std::string>;  // name and value of each setting

Surroundings surroundings();

}  // namespace tally::test
