// The families of kernels: src/cpu and src/gpu have a file of that name for each, whose install_NAME() fills
// the family's slots of the table.
#pragma once

// clang-format off
#define TALLY_KERNEL_FAMILIES(each) \
    each(elementwise) each(memory) each(reduce) each(softmax) each(matmul) each(loss) each(norm) \
    each(update) each(batch_norm) each(dropout) each(windows)
// clang-format on
