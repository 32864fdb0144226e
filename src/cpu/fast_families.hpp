// Declares the families of fast kernels. Each fills its slots of the tables for float and double.
#pragma once

#include "tally/kernels/families.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

#define TALLY_DECLARE(family) template <class S> void install_##family(Kernels<S>&);
TALLY_KERNEL_FAMILIES(TALLY_DECLARE)
#undef TALLY_DECLARE

}  // namespace tally::cpu
