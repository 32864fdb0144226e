// CUDA as tally uses it: one compute stream, errors in words, and one counter for every call that makes the
// host wait. Included by .cu files only.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tally::gpu {

// Throws an Error with the call, what was being done, and CUDA's own words.
void check(cudaError_t result, const char* call, const std::string& doing);
void check(cublasStatus_t result, const char* call, const std::string& doing);

cudaStream_t stream();        // everything is ordered on it
cublasHandle_t cublas();      // on that stream; its default is full float32, without TF32
std::string missing_words();  // empty when there is a device; else why there is none

// The only places where the host waits for the device. After the first it throws what kernels could not say.
void wait_for_device(const char* why);
void trim_pool();  // and gives it back to the device
void wait_for(cudaEvent_t event, const char* why);

std::uint64_t waits();
// For tests that look at results behind the engine's back. These are not counted.
void wait_after_each_launch(bool wait);

void launched(const char* kernel);  // to be named when an error comes to light later

}  // namespace tally::gpu
