// TALLY_HOST_DEVICE marks functions for host and GPU. Without a CUDA compiler the macro is empty.
#pragma once

#ifdef __CUDACC__
#define TALLY_HOST_DEVICE __host__ __device__
#else
#define TALLY_HOST_DEVICE
#endif
