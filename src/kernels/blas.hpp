// blas_kernels() returns the name of the kernels that the CPU's BLAS uses for Products::blas.
#pragma once

#include <string>

namespace tally::detail {

std::string blas_kernels();  // "SkylakeX"

}  // namespace tally::detail
