// A `CheckRules` checks that backward functions keep their operands unchanged and write gradients correctly.
//
//     const CheckRules check;   // for its lifetime, on this thread
//     loss.backward();          // throws an Error that names the operation and the fault
//
// gradcheck uses CheckRules. Without a CheckRules, no build checks backward functions, because a checked
// backward function runs twice and needs more memory.
#pragma once

#include "tally/autograd/backward_check.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

// While a CheckRules exists, an Error is thrown if a backward function changes an operand or a saved value,
// or writes a gradient incorrectly. CheckRules fills new memory with NaN.
class CheckRules {
public:
    [[nodiscard]] CheckRules() : before_(instrumentation::set_checks(true)) {
        memory::detail::hold_poison(true);
    }
    ~CheckRules() {
        instrumentation::set_checks(before_);
        memory::detail::hold_poison(false);
    }
    CheckRules(const CheckRules&) = delete;
    CheckRules& operator=(const CheckRules&) = delete;

private:
    bool before_;
};

}  // namespace tally
