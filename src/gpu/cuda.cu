// Implements the CUDA stream, the checks of CUDA calls, and functions that wait for the device.
#include "tally/gpu/cuda.hpp"

#include <atomic>
#include <mutex>

#include "tally/base/error.hpp"
#include "tally/gpu/on_device.hpp"

namespace tally::gpu {

namespace {

std::atomic<std::uint64_t> waited{0};
std::atomic<const char*> last_kernel{"none"};
std::atomic<bool> waits_for_each{false};

struct Context {  // never destroyed, because arrays may be freed while the program ends
    cudaStream_t stream = nullptr;
    WrongLabel* wrong = nullptr;

    Context() {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags",
              "starting");
        void* pinned_alloc = nullptr;
        check(cudaHostAlloc(&pinned_alloc, sizeof(WrongLabel), cudaHostAllocMapped), "cudaHostAlloc",
              "starting");
        wrong = new (pinned_alloc) WrongLabel;
    }
};

Context& context() {
    static Context* const made = new Context;
    return *made;
}

void synchronize_stream(const char* why) {
    if (const cudaError_t result = cudaStreamSynchronize(context().stream); result != cudaSuccess)
        check(result, "cudaStreamSynchronize",
              std::string(why) + "; the kernel launched last is '" + last_kernel.load() +
                  "', and CUDA_LAUNCH_BLOCKING=1 in the environment shows which one failed");
}

// Waits for the stream. If a kernel has found a wrong label, the next thread that waits throws an Error.
void synchronize(const char* why) {
    synchronize_stream(why);
    static std::mutex& one_at_a_time = *new std::mutex;
    const std::lock_guard lock(one_at_a_time);
    const WrongLabel seen = *context().wrong;
    if (!seen.found) return;
    *context().wrong = {};
    throw Error(words(seen));
}

}  // namespace

void check(cudaError_t result, const char* call, const std::string& doing) {
    if (result == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());  // clears the error, so that the next call does not report it
    throw Error(std::string("[cuda] ") + call + " failed (" + doing + "): " + cudaGetErrorString(result));
}

void check(cublasStatus_t result, const char* call, const std::string& doing) {
    if (result != CUBLAS_STATUS_SUCCESS)
        throw Error(std::string("[cuda] ") + call + " failed (" + doing +
                    "): " + cublasGetStatusString(result));
}

cudaStream_t stream() { return context().stream; }

cublasHandle_t cublas() {
    static const cublasHandle_t handle = [] {
        cublasHandle_t made = nullptr;
        check(cublasCreate(&made), "cublasCreate", "starting");
        check(cublasSetStream(made, stream()), "cublasSetStream", "starting");
        return made;
    }();
    return handle;
}

std::string why_missing() {
    int count = 0;
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result == cudaSuccess && count > 0) {
        const auto attribute = [](cudaDeviceAttr which) {
            int value = 0;
            check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute", "starting");
            return value;
        };
        const int capability =
            10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
        if (capability < TALLY_LEAST_ARCHITECTURE)
            return "the CUDA device is older than this build's kernels; configure with "
                   "-DCMAKE_CUDA_ARCHITECTURES=" +
                   std::to_string(capability);
        return attribute(cudaDevAttrMemoryPoolsSupported) ? "" : "the CUDA device has no memory pools";
    }
    static_cast<void>(cudaGetLastError());
    return std::string("this machine has no CUDA device (") +
           (result == cudaSuccess ? "none was found" : cudaGetErrorString(result)) + ")";
}

void wait_for_device(const char* why) {
    waited.fetch_add(1, std::memory_order_relaxed);
    synchronize(why);
}

void trim_pool() {
    waited.fetch_add(1, std::memory_order_relaxed);
    synchronize_stream("waiting for memory that was given back");
    int device = 0;
    cudaMemPool_t pool = nullptr;
    check(cudaGetDevice(&device), "cudaGetDevice", "waiting for memory");
    check(cudaDeviceGetDefaultMemPool(&pool, device), "cudaDeviceGetDefaultMemPool", "waiting for memory");
    check(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo", "waiting for memory");
}

void wait_for(cudaEvent_t event, const char* why) {
    const cudaError_t so_far = cudaEventQuery(event);
    if (so_far != cudaErrorNotReady) return check(so_far, "cudaEventQuery", why);
    static_cast<void>(cudaGetLastError());
    waited.fetch_add(1, std::memory_order_relaxed);
    check(cudaEventSynchronize(event), "cudaEventSynchronize", why);
}

void launched(const char* kernel) {
    last_kernel.store(kernel, std::memory_order_relaxed);
    if (waits_for_each.load(std::memory_order_relaxed)) synchronize(kernel);
}

void wait_after_each_launch(bool wait) { waits_for_each.store(wait); }

std::uint64_t waits() { return waited.load(std::memory_order_relaxed); }

WrongLabel* OnDevice::wrong_label() { return context().wrong; }

}  // namespace tally::gpu
