// TALLY_HOST_DEVICE marks functions for host and GPU, and TALLY_DO_NOT_UNROLL marks loops whose copies would need too many
// registers of a GPU. Without a CUDA compiler the macros are empty.
#pragma once

#ifdef __CUDACC__
#define TALLY_HOST_DEVICE __host__ __device__
#else
#define TALLY_HOST_DEVICE
#endif
#ifdef __CUDA_ARCH__
#define TALLY_DO_NOT_UNROLL _Pragma("unroll 1")
#else
#define TALLY_DO_NOT_UNROLL
#endif
