// By which kernels of its own the CPU's BLAS multiplies: Products::blas.
#pragma once

#include <string>

namespace tally::detail {

std::string blas_kernels();  // "SkylakeX"

}  // namespace tally::detail
