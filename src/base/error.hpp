// What tally throws: a sentence with what was attempted, the operands and the way out.
#pragma once

#include <stdexcept>
#include <string>

namespace tally {

// Everything that tally refuses; what() begins with the operation, as [matmul].
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

}  // namespace tally
