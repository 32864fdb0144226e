// TALLY_KERNEL_FAMILIES lists the families of kernels. Each family has a file in src/cpu and in src/gpu. The
// file's function install_NAME() fills the family's slots of the kernel table.
#pragma once

// clang-format off
#define TALLY_KERNEL_FAMILIES(each) \
    each(elementwise) each(movement) each(reduce) each(softmax) each(matmul) each(loss) each(norm) \
    each(update) each(batch_norm) each(dropout) each(windows)
// clang-format on
