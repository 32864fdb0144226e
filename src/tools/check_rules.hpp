// A CheckRules checks that backward functions keep their operands unchanged and write gradients correctly.
//
//     const CheckRules check;   // for its lifetime, on this thread
//     loss.backward();          // throws an Error that names the operation and the fault
//
// gradcheck uses CheckRules. No build, not even a debug build, checks backward functions without CheckRules,
// because a checked backward function runs twice and needs more memory.
#pragma once

#include "tally/autograd/backward_check.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

// While a CheckRules exists, each backward function must leave its operands unchanged, and set or add each
// gradient as requested. Saved values must stay unchanged. New memory is filled with NaN.
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
