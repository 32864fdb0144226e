// TALLY_KERNEL_FAMILIES lists the families of kernels. For each family, src/cpu and src/gpu contain a file.
// The function install_NAME() of this file fills the slots of the family in the kernel table.
#pragma once

// clang-format off
#define TALLY_KERNEL_FAMILIES(each) \
    each(elementwise) each(movement) each(reduce) each(softmax) each(matmul) each(loss) each(norm) \
    each(update) each(batch_norm) each(dropout) each(windows)
// clang-format on
