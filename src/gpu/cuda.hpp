// Declares the CUDA stream and functions that check CUDA calls. Only .cu files include this header.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <string>

namespace tally::gpu {

// If a CUDA call failed, throws an Error with the call, its purpose and CUDA's message.
void check(cudaError_t result, const char* call, const std::string& doing);
void check(cublasStatus_t result, const char* call, const std::string& doing);

cudaStream_t stream();      // orders all work
cublasHandle_t cublas();    // on this stream; computes in full float32, without TF32
std::string why_missing();  // empty if there is a device

// Only these functions wait for the device. wait_for_device() also throws errors of kernels.
void wait_for_device(const char* why);
void trim_pool();  // waits, and returns unused memory to the device
void wait_for(cudaEvent_t event, const char* why);

std::uint64_t waits();
// Makes the host wait after each launch, so that tests can read device memory. waits() ignores these waits.
void wait_after_each_launch(bool wait);

void launched(const char* kernel);  // stores the name for a later error

}  // namespace tally::gpu
