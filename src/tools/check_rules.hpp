// CheckRules: does a rule leave alone what it was given, and write its gradients as it was told?
//
//     const CheckRules check;   // on this thread, while it lives
//     loss.backward();          // an Error names the operation, and what its rule did
//
// gradcheck makes one. Without one no build checks rules, not even a debug build: a checked rule runs twice and
// takes more memory.
#pragma once

#include "tally/autograd/backward_check.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

// While one lives, each rule is tried: it must leave alone what it was given, and write its gradients as it was
// told. What is saved meanwhile must stay as it was, and fresh memory is filled with NaN.
class CheckRules {
public:
    [[nodiscard]] CheckRules() : before_(watching::set_checks(true)) { memory::detail::hold_poison(true); }
    ~CheckRules() {
        watching::set_checks(before_);
        memory::detail::hold_poison(false);
    }
    CheckRules(const CheckRules&) = delete;
    CheckRules& operator=(const CheckRules&) = delete;

private:
    bool before_;
};

}  // namespace tally
