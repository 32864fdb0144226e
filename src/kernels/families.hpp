// TALLY_KERNEL_FAMILIES lists the families of kernels. src/cpu and src/gpu have a file for each family, with
// a function install_NAME() that fills the family's slots of the kernel table.
#pragma once

// clang-format off
#define TALLY_KERNEL_FAMILIES(each) \
    each(elementwise) each(movement) each(reduce) each(softmax) each(matmul) each(loss) each(norm) \
    each(update) each(batch_norm) each(dropout) each(windows)
// clang-format on
