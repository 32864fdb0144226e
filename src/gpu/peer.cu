// Defines the device module for CUDA, with memory, copies and the table of kernels.
#include <mutex>
#include <string>

#include "tally/gpu/backend_entry.hpp"
#include "tally/gpu/on_device.hpp"
#include "tally/gpu/staging.hpp"

namespace tally::gpu {

// all_kernels.cu instantiates these templates.
#define TALLY_MADE_ELSEWHERE(family)                                  \
    extern template void install_##family<OnDevice>(Kernels<float>&); \
    extern template void install_##family<OnDevice>(Kernels<double>&);
TALLY_KERNEL_FAMILIES(TALLY_MADE_ELSEWHERE)
#undef TALLY_MADE_ELSEWHERE

namespace {

std::string copying(std::size_t bytes, Device from, Device to) {
    return std::to_string(bytes) + " bytes from " + to_string(from) + " to " + to_string(to);
}

struct Link {  // holds an event for each part of the ring
    cudaEvent_t sent[StagingRing::parts] = {};

    static void* pinned(std::size_t bytes) {
        void* memory = nullptr;
        check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "cudaHostAlloc",
              std::to_string(bytes) + " bytes of pinned memory for uploads");
        return memory;
    }
    static void send(void* to, const void* from, std::size_t bytes) {
        if (const auto failed = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream());
            failed != cudaSuccess)
            check(failed, "cudaMemcpyAsync", copying(bytes, Device::cpu, Device::cuda));
    }
    void mark(std::size_t part) {
        if (sent[part] == nullptr)
            check(cudaEventCreateWithFlags(&sent[part], cudaEventDisableTiming), "cudaEventCreateWithFlags",
                  "uploading");
        check(cudaEventRecord(sent[part], stream()), "cudaEventRecord", "uploading");
    }
    void await(std::size_t part) { wait_for(sent[part], "uploading faster than the device takes it"); }
};

void upload(void* to, const void* from, std::size_t bytes) {
    static std::mutex& one_at_a_time = *new std::mutex;
    const std::lock_guard lock(one_at_a_time);
    static auto& staging = *new Staging<Link>(Link{});
    staging.upload(to, from, bytes);
}

struct Cuda {
    static constexpr const char* name = "cuda";
    using On = OnDevice;

    static std::string missing() { return why_missing(); }

    // Memory is allocated and freed in the order of the stream, so the host does not wait.
    static void* allocate(std::size_t bytes) {
        void* data = nullptr;
        cudaError_t failed = cudaMallocAsync(&data, bytes, stream());
        if (failed == cudaErrorMemoryAllocation) {  // freed blocks may not have returned to the pool yet
            static_cast<void>(cudaGetLastError());
            trim_pool();
            failed = cudaMallocAsync(&data, bytes, stream());
        }
        if (failed == cudaSuccess) return data;
        static_cast<void>(cudaGetLastError());
        if (failed != cudaErrorMemoryAllocation)  // the caller throws OutOfMemory
            check(failed, "cudaMallocAsync", std::to_string(bytes) + " bytes");
        return nullptr;
    }

    static void free(void* data, std::size_t) {
        if (cudaFreeAsync(data, stream()) != cudaSuccess)
            static_cast<void>(cudaGetLastError());  // at the end of the program the driver may be unloaded
    }

    static void fill(void* data, unsigned char byte, std::size_t bytes) {
        check(cudaMemsetAsync(data, byte, bytes, stream()), "cudaMemsetAsync",
              std::to_string(bytes) + " bytes");
    }

    static void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes) {
        if (from_device == Device::cpu) return upload(to, from, bytes);
        const bool back = to_device == Device::cpu;
        const auto kind = back ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
        if (const auto failed = cudaMemcpyAsync(to, from, bytes, kind, stream()); failed != cudaSuccess)
            check(failed, "cudaMemcpyAsync", copying(bytes, from_device, to_device));
        if (back) wait_for_device("reading values");
    }
    static std::uint64_t waits() { return gpu::waits(); }

    template <class S> static Kernels<S> kernels() { return table<On, S>(); }

    // ---- for tests ----

    static void wait_after_each_launch(bool wait) { gpu::wait_after_each_launch(wait); }
    static void* pinned_alloc(std::size_t bytes) {
        void* memory = nullptr;
        check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "cudaHostAlloc",
              std::to_string(bytes) + " bytes of pinned memory");
        return memory;
    }
};

}  // namespace
}  // namespace tally::gpu

TALLY_MODULE(tally::gpu::Cuda)
