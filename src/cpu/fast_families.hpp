// Declares install_NAME() for each family of fast kernels, to fill the family's slots of a kernel table.
#pragma once

#include "tally/kernels/families.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

#define TALLY_DECLARE(family) template <class S> void install_##family(Kernels<S>&);
TALLY_KERNEL_FAMILIES(TALLY_DECLARE)
#undef TALLY_DECLARE

}  // namespace tally::cpu
