// CheckRules: does a rule leave alone what it was given, and write its gradients as it was told?
//
//     const CheckRules check;   // on this thread, while it lives
//     loss.backward();          // an Error names the operation, and what its rule did
//
// gradcheck makes one. It is not on by itself: a rule that is checked takes more memory. A library built for
// debugging (without NDEBUG) always checks what it can without a byte of the ledger, on the CPU: whether
// somebody wrote to what is kept for the way back, and the rules of custom().
#pragma once

#include "tally/autograd/node.hpp"
#include "tally/memory/memory.hpp"
#include "tally/watching/trial.hpp"

namespace tally {

// While one lives, each rule is tried: it must leave alone what it was given, and write its gradients as it was
// told. What is saved meanwhile must stay as it was, and fresh memory is filled with NaN.
class CheckRules {
public:
    [[nodiscard]] CheckRules()
        : before_((detail::this_thread(), watching::set_checks(watching::Checks::all))) {
        memory::poison_meanwhile(true);
    }
    ~CheckRules() {
        watching::set_checks(before_);
        memory::poison_meanwhile(false);
    }
    CheckRules(const CheckRules&) = delete;
    CheckRules& operator=(const CheckRules&) = delete;

private:
    watching::Checks before_;
};

}  // namespace tally
