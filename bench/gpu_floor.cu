// Implements the direct calls of the GPU benchmark with cuBLAS and the CUDA runtime.
#include "bench/gpu_floor.hpp"

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <memory>
#include <stdexcept>

namespace tally::bench {

namespace {

void check(cudaError_t result, const char* call) {
    if (result != cudaSuccess)
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}

void check(cublasStatus_t result, const char* call) {
    if (result != CUBLAS_STATUS_SUCCESS)
        throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(result));
}

cudaStream_t stream() {
    static const cudaStream_t made = [] {
        cudaStream_t one = nullptr;
        check(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
        return one;
    }();
    return made;
}

cublasHandle_t cublas() {
    static const cublasHandle_t made = [] {
        cublasHandle_t one = nullptr;
        check(cublasCreate(&one), "cublasCreate");
        check(cublasSetStream(one, stream()), "cublasSetStream");
        return one;
    }();
    return made;
}

__global__ void fill(float* y, std::size_t n) {  // because products of zeros are faster than other products
    for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < n;
         i += gridDim.x * std::size_t(blockDim.x))
        y[i] = static_cast<float>(i * 2654435761u % 1000) / 50000 - 0.01f;
}

std::shared_ptr<void> memory(std::size_t numbers) {
    void* data = nullptr;
    check(cudaMalloc(&data, numbers * sizeof(float)), "cudaMalloc");
    std::shared_ptr<void> owner(data, [](void* p) { cudaFree(p); });
    if (numbers > 0) fill<<<1024, 256, 0, stream()>>>(static_cast<float*>(data), numbers);
    check(cudaGetLastError(), "fill");
    return owner;
}

}  // namespace

std::string device_name() {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    return properties.name;
}

void finish() { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

std::function<void()> products(const std::vector<std::size_t>& buffers, const std::vector<Call>& calls) {
    std::vector<std::shared_ptr<void>> data;
    for (const std::size_t numbers : buffers) data.push_back(memory(numbers));
    return [data, calls] {
        const auto at = [&](std::size_t buffer) { return static_cast<float*>(data[buffer].get()); };
        for (const Call& call : calls) {
            const detail::Product& p = call.product;
            const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
            const float alpha = 1, beta = call.how == Write::add ? 1 : 0;
            // In memory, the row-major product C = A · B is equal to the column-major product Cᵀ = Bᵀ · Aᵀ.
            check(cublasSgemm(cublas(), p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                              p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &alpha, at(call.b),
                              p.transpose_b ? k : n, at(call.a), p.transpose_a ? m : k, &beta, at(call.c), n),
                  "cublasSgemm");
        }
    };
}

std::function<void()> copy(std::size_t moved) {
    const std::size_t bytes = moved / 2, numbers = bytes / sizeof(float) + 1;
    return [bytes, from = memory(numbers), to = memory(numbers)] {
        check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, stream()),
              "cudaMemcpyAsync");
    };
}

}  // namespace tally::bench
