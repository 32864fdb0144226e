// The one place where a kernel body learns whether it may run on a GPU: for every other compiler it
// is plain C++.
#pragma once

#ifdef __CUDACC__
#define TALLY_HOST_DEVICE __host__ __device__
#else
#define TALLY_HOST_DEVICE
#endif
