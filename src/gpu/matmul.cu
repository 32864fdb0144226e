// Computes matrix products by cuBLAS if Products::blas is set.
#include "tally/gpu/matmul.hpp"

#include <cstdint>
#include <limits>
#include <mutex>

#include "tally/base/error.hpp"
#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

namespace {

// Returns the size of cuBLAS's workspace. Only the budget changes the size, so equal calls give equal bits.
std::size_t workspace_bytes() {
    constexpr std::size_t small = std::size_t{64} << 10, large = std::size_t{32} << 20;
    const std::size_t budget = host().budget();
    return budget != 0 && budget < 16 * large ? small : large;
}

cublasStatus_t gemm(cublasOperation_t first, cublasOperation_t second, int m, int n, int k, float alpha,
                    const float* a, int a_pitch, const float* b, int b_pitch, float beta, float* c) {
    return cublasSgemm(cublas(), first, second, m, n, k, &alpha, a, a_pitch, b, b_pitch, &beta, c, m);
}

cublasStatus_t gemm(cublasOperation_t first, cublasOperation_t second, int m, int n, int k, double alpha,
                    const double* a, int a_pitch, const double* b, int b_pitch, double beta, double* c) {
    return cublasDgemm(cublas(), first, second, m, n, k, &alpha, a, a_pitch, b, b_pitch, &beta, c, m);
}

}  // namespace

template <class S> void OnDevice::multiply(const Product& p, const S* a, const S* b, Into<S[]> c) {
    constexpr auto max_extent = static_cast<std::size_t>(std::numeric_limits<int>::max());
    if (p.m > max_extent || p.n > max_extent || p.k > max_extent)
        throw Error("[matmul] " + words(p) + ": cuBLAS supports extents up to " + std::to_string(max_extent));
    const auto require_success = [&](cublasStatus_t result, const char* call) {
        if (result != CUBLAS_STATUS_SUCCESS) [[unlikely]]
            check(result, call, "matmul " + words(p));
    };
    constexpr std::uintptr_t line = 256;  // alignment required by cuBLAS
    const std::size_t bytes = workspace_bytes();
    const Scratch<unsigned char> workspace(bytes + line);
    const auto from = (reinterpret_cast<std::uintptr_t>(workspace.data()) + line - 1) & ~(line - 1);
    static std::mutex& one_at_a_time = *new std::mutex;  // because all threads share the handle
    const std::lock_guard lock(one_at_a_time);
    require_success(cublasSetWorkspace(cublas(), reinterpret_cast<void*>(from), bytes), "cublasSetWorkspace");
    const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    // cuBLAS expects column-major matrices, so this call computes Cᵀ = Bᵀ · Aᵀ.
    require_success(
        gemm(operation(p.transpose_b), operation(p.transpose_a), n, m, k, S(1), b, p.transpose_b ? k : n, a,
             p.transpose_a ? m : k, static_cast<S>(static_cast<int>(c.how)), c.dst),
        "cublasGemm");
    launched("matmul");
}

template void OnDevice::multiply(const Product&, const float*, const float*, Into<float[]>);
template void OnDevice::multiply(const Product&, const double*, const double*, Into<double[]>);

}  // namespace tally::gpu
