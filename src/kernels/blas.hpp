// By which kernels of its own the CPU's BLAS multiplies: Products::blas.
#pragma once

#include <string>

namespace tally::detail {

struct BlasKernels {
    std::string name;  // "SkylakeX"
    bool chosen;       // by the processor it runs on; otherwise these are the only ones it was built with
};
BlasKernels blas_kernels();

}  // namespace tally::detail
