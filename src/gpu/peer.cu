// The GPU as the engine sees it: its memory, copies to and from it, and its table of kernels.
#include "autograd/peer.hpp"

#include <memory>
#include <mutex>

#include "autograd/dual.hpp"
#include "autograd/error.hpp"
#include "gpu/capture.hpp"
#include "gpu/on_device.hpp"
#include "gpu/staging.hpp"

namespace tally::gpu {

// Each is made in the .cu file of its family.
// clang-format off
#define TALLY_MADE_ELSEWHERE(S)                                       \
    extern template void install_elementwise<OnDevice>(Kernels<S>&);  \
    extern template void install_memory<OnDevice>(Kernels<S>&);       \
    extern template void install_reduce<OnDevice>(Kernels<S>&);       \
    extern template void install_softmax<OnDevice>(Kernels<S>&);      \
    extern template void install_matmul<OnDevice>(Kernels<S>&);       \
    extern template void install_loss<OnDevice>(Kernels<S>&);         \
    extern template void install_norm<OnDevice>(Kernels<S>&);         \
    extern template void install_update<OnDevice>(Kernels<S>&);       \
    extern template void install_batch_norm<OnDevice>(Kernels<S>&);   \
    extern template void install_dropout<OnDevice>(Kernels<S>&);      \
    extern template void install_windows<OnDevice>(Kernels<S>&);
// clang-format on
TALLY_MADE_ELSEWHERE(float)
TALLY_MADE_ELSEWHERE(double)
#undef TALLY_MADE_ELSEWHERE

}  // namespace tally::gpu

namespace tally::peer {

namespace {

void expect(const char* what) {
    if (!absent().empty()) throw Error(std::string("[") + what + "] " + absent());
}

// Blocks are taken and given back in the order of the stream: neither makes the host wait.
void* grab(std::size_t bytes) {
    gpu::refuse_fresh_memory(gpu::capturing(), bytes);
    void* data = nullptr;
    cudaError_t failed = cudaMallocAsync(&data, bytes, gpu::stream());
    if (failed == cudaErrorMemoryAllocation) {  // what was given back may still be on its way
        static_cast<void>(cudaGetLastError());
        gpu::wait_for_what_was_given_back();
        failed = cudaMallocAsync(&data, bytes, gpu::stream());
    }
    if (failed == cudaSuccess) return data;
    static_cast<void>(cudaGetLastError());
    if (failed != cudaErrorMemoryAllocation)  // the ledger says that in its own words
        gpu::check(failed, "cudaMallocAsync", std::to_string(bytes) + " bytes");
    return nullptr;
}

void give(void* data, std::size_t bytes) {
    gpu::refuse_giving_back(gpu::still_capturing(), bytes);
    if (cudaFreeAsync(data, gpu::stream()) != cudaSuccess)
        static_cast<void>(cudaGetLastError());  // while the program ends the driver may be gone already
}

void fill(void* data, unsigned char byte, std::size_t bytes) {
    gpu::check(cudaMemsetAsync(data, byte, bytes, gpu::stream()), "cudaMemsetAsync",
               std::to_string(bytes) + " bytes");
}

constexpr memory::Raw device_memory{grab, give, fill};

std::string copying(std::size_t bytes, Device from, Device to) {
    return std::to_string(bytes) + " bytes from " + to_string(from) + " to " + to_string(to);
}

struct Link {  // an event for each part of the ring
    cudaEvent_t sent[gpu::StagingRing::parts] = {};

    static void* pinned(std::size_t bytes) {
        void* memory = nullptr;
        gpu::check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "cudaHostAlloc",
                   std::to_string(bytes) + " bytes of pinned memory for uploads");
        return memory;
    }
    static void send(void* to, const void* from, std::size_t bytes) {
        if (const auto failed = cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, gpu::stream());
            failed != cudaSuccess)
            gpu::check(failed, "cudaMemcpyAsync", copying(bytes, Device::cpu, Device::cuda));
    }
    void mark(std::size_t part) {
        if (sent[part] == nullptr)
            gpu::check(cudaEventCreateWithFlags(&sent[part], cudaEventDisableTiming),
                       "cudaEventCreateWithFlags", "uploading");
        gpu::check(cudaEventRecord(sent[part], gpu::stream()), "cudaEventRecord", "uploading");
    }
    void await(std::size_t part) { gpu::wait_for(sent[part], "uploading faster than the device takes it"); }
};

void upload(void* to, const void* from, std::size_t bytes) {
    static std::mutex& one_at_a_time = *new std::mutex;
    const std::lock_guard lock(one_at_a_time);
    static auto& staging = *new gpu::Staging<Link>(Link{});
    staging.upload(to, from, bytes);
}

}  // namespace

const std::string& absent() {
    static const std::string& words = *new std::string(gpu::missing_words());  // asked until the very end
    return words;
}

std::uint64_t waits() { return gpu::waits(); }

const memory::Raw& raw() {
    expect("memory");
    return device_memory;
}

void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes) {
    expect("to");
    if (bytes == 0) return;
    if (from_device == Device::cpu) {
        gpu::refuse_upload(capturing(), bytes);
        return upload(to, from, bytes);
    }
    const bool back = to_device == Device::cpu;
    if (back) gpu::refuse_wait(capturing(), "reading values");
    const auto kind = back ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
    if (const auto failed = cudaMemcpyAsync(to, from, bytes, kind, gpu::stream()); failed != cudaSuccess)
        gpu::check(failed, "cudaMemcpyAsync", copying(bytes, from_device, to_device));
    if (back) gpu::wait_for_device("reading values");
}

template <class S>
const Kernels<S>& kernels() {
    expect("kernels");
    static const Kernels<S> made = gpu::table<gpu::OnDevice, S>();
    return made;
}

template <>
const Kernels<Dual<double>>& kernels() {
    throw Error("[kernels] dual numbers are computed on the CPU only; use to(Device::cpu)");
}

// ---- capturing ----

struct Graph {
    cudaGraphExec_t made = nullptr;
};

bool capturing() { return gpu::capturing(); }

void begin_capture() {
    expect("capture");
    // Relaxed: a kernel that is launched for the first time may have to be loaded. What must not happen is
    // refused by tally itself.
    gpu::check(cudaStreamBeginCapture(gpu::stream(), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture",
               "capturing a window");
}

Graph* end_capture() {
    cudaGraph_t captured = nullptr;
    gpu::check(cudaStreamEndCapture(gpu::stream(), &captured), "cudaStreamEndCapture", "capturing a window");
    auto graph = std::make_unique<Graph>();
    const cudaError_t failed = cudaGraphInstantiateWithFlags(&graph->made, captured, 0);
    static_cast<void>(cudaGraphDestroy(captured));
    gpu::check(failed, "cudaGraphInstantiateWithFlags", "capturing a window");
    return graph.release();
}

void abandon_capture() noexcept {
    if (!gpu::still_capturing()) return;
    cudaGraph_t captured = nullptr;
    if (cudaStreamEndCapture(gpu::stream(), &captured) == cudaSuccess)
        static_cast<void>(cudaGraphDestroy(captured));
    static_cast<void>(cudaGetLastError());
}

void replay(const Graph& graph) {
    gpu::check(cudaGraphLaunch(graph.made, gpu::stream()), "cudaGraphLaunch", "replaying a window");
    gpu::launched("a captured window");
}

void discard(Graph* graph) noexcept {
    if (!graph) return;
    static_cast<void>(cudaGraphExecDestroy(graph->made));
    delete graph;
}

template <class S>
void decide(const Conditions<S>& conditions, Decisions<S>* decisions) {
    gpu::OnDevice::each("decide", 1, gpu::DecideBody<S>{conditions, gpu::OnDevice::wrong_label(), decisions});
}

template void decide(const Conditions<float>&, Decisions<float>*);
template void decide(const Conditions<double>&, Decisions<double>*);
template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();

}  // namespace tally::peer
