// Replaces the CUDA runtime and cuBLAS by functions that execute kernels on the host. Work is queued, and runs when
// the host waits, as on a GPU.
//
// These environment variables are for tests, and most of them for tests/ptx/mutate:
//  - TALLY_PTX_ORDER is the order of threads: forward, reverse or random:SEED.
//  - TALLY_PTX_BLOCKS is the largest number of blocks in a launch. A kernel must loop over the rest of its work.
//  - TALLY_PTX_FILE is a file of PTX that replaces the PTX of the object files.
//  - TALLY_PTX_DUMP is a file to which the module writes its PTX.
//  - TALLY_PTX_LOG is a file to which the module adds the name of each kernel that has run.
//  - TALLY_PTX_MUTANTS is "all", or "30:7" for 30 changes of the kernels, chosen with the seed 7, which run in addition.
//  - TALLY_PTX_REPORT is a file to which the module writes what noticed these changes.
#include <cblas.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "fat_binary.hpp"
#include "machine.hpp"
#include "memory.hpp"
#include "mutants.hpp"
#include "program.hpp"

namespace tally::ptx {

namespace {

std::string environment(const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : otherwise;
}

unsigned blocks_from(const std::string& words) {
    unsigned blocks = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), blocks);
    if (error != std::errc() || *end != '\0' || blocks == 0)
        throw Unreadable("[ptx] TALLY_PTX_BLOCKS is '" + words + "'; it must be a number from 1 on");
    return blocks;
}

class Runtime {
public:
    static Runtime& one() {
        static Runtime* const made = new Runtime;
        return *made;
    }

    void add_binary(const void* data) { binaries_.push_back(data); }
    void add_kernel(const void* stub, const char* name) { names_[stub] = name; }

    // Queues a task, which returns a complaint or nothing.
    void later(std::function<std::string()> task) {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(task));
        ++queued_;
        if (queue_.size() >= 256) run();
    }
    cudaError_t wait() {
        const std::lock_guard lock(mutex_);
        run();
        return complaint_.empty() ? cudaSuccess : fail(cudaErrorLaunchFailure, std::exchange(complaint_, ""));
    }
    std::uint64_t queued() {
        const std::lock_guard lock(mutex_);
        return queued_;
    }
    bool has_done(std::uint64_t tasks) {
        const std::lock_guard lock(mutex_);
        return queued_ - queue_.size() >= tasks;
    }
    void* allocate(std::size_t bytes, bool pinned) {
        const std::lock_guard lock(mutex_);
        return pinned ? Memory::one().pinned(bytes) : Memory::one().allocate(bytes);
    }

    cudaError_t launch(const void* stub, dim3 grid, dim3 block, void** arguments, std::size_t dynamic_shared);

    // Stores the text of cudaGetErrorString().
    cudaError_t fail(cudaError_t error, const std::string& why) {
        static thread_local std::string text;
        text = why;
        words_ = text.c_str();
        return latest_ = error;
    }
    cudaError_t latest() { return std::exchange(latest_, cudaSuccess); }
    const char* words() const { return words_; }

private:
    // A program that has not waited for its last work fails, too, if this work is faulty.
    Runtime() {
        std::atexit([] {
            Runtime& runtime = one();
            static_cast<void>(runtime.wait());
            runtime.report_mutants();
            if (!runtime.has_finding_) return;
            std::fflush(nullptr);
            std::_Exit(1);
        });
    }

    // Reads the environment at the first launch, because an exception cannot leave the loading of a module.
    struct Settings {
        Schedule schedule = Schedule::from(environment("TALLY_PTX_ORDER", "forward"));
        unsigned most_blocks = blocks_from(environment("TALLY_PTX_BLOCKS", "2147483647"));
        std::string log = environment("TALLY_PTX_LOG", "");
    };
    static const Settings& settings() {
        static const Settings& read = *new Settings;  // never destroyed, as the Runtime
        return read;
    }

    Program& program() {
        if (program_) return *program_;
        std::string text, name = "the PTX of the object files";
        if (const std::string file = environment("TALLY_PTX_FILE", ""); !file.empty()) {
            std::ifstream in(file, std::ios::binary);
            std::stringstream all;
            if (!(all << in.rdbuf()))
                throw Unreadable("[ptx] the file " + file + " of TALLY_PTX_FILE cannot be read");
            text = all.str();
            name = file;
        } else {
            for (const void* const data : binaries_)
                if (std::string found = ptx_of(data); found.find(".entry") != found.npos) {
                    if (!text.empty())
                        throw Unreadable("[ptx] two object files have kernels; only one is supported");
                    text = std::move(found);
                }
            if (text.empty())
                throw Unreadable(
                    "[ptx] the object files have no PTX; configure with CMAKE_CUDA_ARCHITECTURES=80, without "
                    "-real");
        }
        if (const std::string file = environment("TALLY_PTX_DUMP", ""); !file.empty())
            std::ofstream(file, std::ios::binary) << text;
        auto made = std::make_unique<Program>(std::move(text), name);
        if (const std::string chosen = environment("TALLY_PTX_MUTANTS", ""); !chosen.empty())
            mutants_ = std::make_unique<Mutants>(*made, chosen);
        program_ = std::move(made);
        for (const Program::Table& table : program_->tables())
            Memory::one().add(reinterpret_cast<std::uint64_t>(table.bytes.data()), table.bytes.size());
        return *program_;
    }

    void report_mutants() {
        if (!mutants_) return;
        try {
            mutants_->write_report(environment("TALLY_PTX_REPORT", "/dev/stdout"));
        } catch (const std::exception& error) {
            std::cerr << error.what() << std::endl;
            has_finding_ = true;
        }
    }

    void run() {
        const auto tasks = std::exchange(queue_, {});
        if (tasks.empty()) return;
        Memory::one().open();
        for (const auto& task : tasks) {
            std::string why;
            try {
                why = task();
            } catch (const std::exception& error) {
                why = error.what();
            }
            if (why.empty()) continue;
            std::cerr << why << std::endl;
            has_finding_ = true;
            if (complaint_.empty()) complaint_ = why;
        }
        Memory::one().close();
    }

    static void log(const Kernel& kernel, const Machine& machine) {
        if (settings().log.empty()) return;
        std::ofstream out(settings().log, std::ios::app);
        out << kernel.name + " " + std::to_string(machine.steps()) + "\n" << std::flush;
    }

    std::recursive_mutex mutex_;
    std::vector<const void*> binaries_;
    std::map<const void*, std::string> names_;
    std::unique_ptr<Program> program_;
    std::unique_ptr<Mutants> mutants_;
    std::vector<std::function<std::string()>> queue_;
    std::uint64_t queued_ = 0;
    std::string complaint_;
    bool has_finding_ = false;
    static thread_local cudaError_t latest_;
    static thread_local const char* words_;
};

thread_local cudaError_t Runtime::latest_ = cudaSuccess;
thread_local const char* Runtime::words_ = "no error";

// Checks what every device checks, copies the arguments, and queues the launch.
cudaError_t Runtime::launch(const void* stub, dim3 grid, dim3 block, void** arguments,
                            std::size_t dynamic_shared) {
    const std::lock_guard lock(mutex_);
    try {
        const auto name = names_.find(stub);
        if (name == names_.end()) return fail(cudaErrorInvalidDeviceFunction, "the kernel is not registered");
        const Kernel& kernel = program().kernel(name->second);
        grid.x = std::min(grid.x, settings().most_blocks);
        const auto sizes = std::to_string(grid.x) + " blocks of " + std::to_string(block.x) + " threads";
        if (grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1 || dynamic_shared != 0)
            return fail(cudaErrorInvalidConfiguration,
                        "launches with several dimensions, or with dynamic shared memory, are not supported");
        if (grid.x == 0 || grid.x > 0x7FFFFFFF || block.x == 0 || block.x > 1024 ||
            block.x > kernel.most_threads)
            return fail(cudaErrorInvalidConfiguration, "no device accepts " + sizes +
                                                           " of a kernel for at most " +
                                                           std::to_string(kernel.most_threads));
        if (kernel.shared_bytes > 48 * 1024)
            return fail(cudaErrorInvalidConfiguration,
                        std::to_string(kernel.shared_bytes) + " bytes of shared memory are more than 48 KiB");
        std::vector<std::byte> parameters(kernel.parameter_bytes);
        for (std::size_t k = 0; k < kernel.parameters.size(); ++k)
            std::memcpy(parameters.data() + kernel.parameters[k].offset, arguments[k],
                        kernel.parameters[k].bytes);
        later([this, &kernel, grid, block, parameters = std::move(parameters)] {
            Machine machine(*program_, kernel, grid.x, block.x, parameters, settings().schedule);
            std::vector<Write> writes;
            std::vector<bool> executed(kernel.code.size());
            const bool has_mutants = mutants_ && mutants_->has(kernel);
            if (has_mutants) {
                machine.record(writes);
                machine.cover(executed);
            }
            machine.run();
            log(kernel, machine);
            if (has_mutants && machine.findings().empty())
                mutants_->judge({kernel, grid.x, block.x, parameters, writes, machine.steps()}, executed);
            std::string all;
            for (const std::string& one : machine.findings()) all += (all.empty() ? "" : "\n") + one;
            return all;
        });
        return cudaSuccess;
    } catch (const std::exception& error) {
        return fail(cudaErrorInvalidPtx, error.what());
    }
}

struct Configuration {
    dim3 grid, block;
    std::size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

template <class Gemm, class S> cublasStatus_t multiply(Gemm gemm, cublasOperation_t first,
                                                       cublasOperation_t second, int m, int n, int k, S alpha,
                                                       const S* a, int a_pitch, const S* b, int b_pitch,
                                                       S beta, S* c, int c_pitch) {
    const auto bytes = [](int pitch, int columns) {
        return sizeof(S) * static_cast<std::size_t>(pitch) * static_cast<std::size_t>(columns);
    };
    Runtime::one().later([=] {
        for (const auto& [data, size] :
             {std::pair<const S*, std::size_t>{a, bytes(a_pitch, first == CUBLAS_OP_N ? k : m)},
              {b, bytes(b_pitch, second == CUBLAS_OP_N ? n : k)},
              {c, bytes(c_pitch, n)}})
            if (std::string why = Memory::one().complaint(data, size); !why.empty())
                return "[ptx] matrix product: " + why;
        const auto operation = [](cublasOperation_t one) {
            return one == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
        };
        gemm(CblasColMajor, operation(first), operation(second), m, n, k, alpha, a, a_pitch, b, b_pitch, beta,
             c, c_pitch);
        return std::string();
    });
    return CUBLAS_STATUS_SUCCESS;
}

struct Event {
    std::uint64_t after = 0;  // the number of tasks before it
};
Event* of(cudaEvent_t event) { return reinterpret_cast<Event*>(event); }

}  // namespace
}  // namespace tally::ptx

using namespace tally::ptx;

extern "C" {

// ---- what nvcc's code calls ----

void** __cudaRegisterFatBinary(void* wrapper) {
    struct Wrapper {
        int magic, version;
        const void* data;
        void* unused;
    };
    Runtime::one().add_binary(static_cast<const Wrapper*>(wrapper)->data);
    return static_cast<void**>(wrapper);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
    Runtime::one().add_kernel(stub, name);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
    configurations.push_back({grid, block, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
    const Configuration latest = configurations.back();
    configurations.pop_back();
    *grid = latest.grid, *block = latest.block, *shared = latest.shared;
    std::memcpy(stream, &latest.stream, sizeof latest.stream);
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
    std::memcpy(kernel, &stub, sizeof stub);
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t) {
    return Runtime::one().launch(kernel, grid, block, arguments, shared);
}
cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                             cudaStream_t) {
    return Runtime::one().launch(stub, grid, block, arguments, shared);  // before CUDA 13
}

// ---- the CUDA runtime ----

cudaError_t cudaGetLastError() { return Runtime::one().latest(); }
const char* cudaGetErrorString(cudaError_t) { return Runtime::one().words(); }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
    *value = which == cudaDevAttrComputeCapabilityMajor   ? 99
             : which == cudaDevAttrComputeCapabilityMinor ? 0
                                                          : 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return *pool = nullptr, cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    return *stream = nullptr, cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return Runtime::one().wait(); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    return *event = reinterpret_cast<cudaEvent_t>(new Event), cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    return of(event)->after = Runtime::one().queued(), cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (Runtime::one().has_done(of(event)->after)) return cudaSuccess;
    return Runtime::one().fail(cudaErrorNotReady, "the device has not reached the event");
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return Runtime::one().wait(); }

cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t) {
    *data = Runtime::one().allocate(bytes, false);
    return *data != nullptr ? cudaSuccess : Runtime::one().fail(cudaErrorMemoryAllocation, "out of memory");
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t) {
    Runtime::one().later([=] { return Memory::one().free(data); });
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
    *data = Runtime::one().allocate(bytes, true);
    return *data != nullptr ? cudaSuccess : Runtime::one().fail(cudaErrorMemoryAllocation, "out of memory");
}
cudaError_t cudaMemsetAsync(void* data, int byte, std::size_t bytes, cudaStream_t) {
    Runtime::one().later([=] {
        if (std::string why = Memory::one().complaint(data, bytes); !why.empty())
            return "[ptx] cudaMemsetAsync: " + why;
        std::memset(data, byte, bytes);
        return std::string();
    });
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
    Runtime::one().later([=] {
        for (const void* data : {static_cast<const void*>(to), from})
            if (std::string why = Memory::one().complaint(data, bytes); !why.empty())
                return "[ptx] cudaMemcpyAsync: " + why;
        std::memcpy(to, from, bytes);
        return std::string();
    });
    return cudaSuccess;
}

// ---- cuBLAS ----

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) { return *handle = nullptr, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasGetStatusString(cublasStatus_t) { return "not reported by this module"; }
cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t first, cublasOperation_t second, int m, int n,
                              int k, const float* alpha, const float* a, int a_pitch, const float* b,
                              int b_pitch, const float* beta, float* c, int c_pitch) {
    return multiply(cblas_sgemm, first, second, m, n, k, *alpha, a, a_pitch, b, b_pitch, *beta, c, c_pitch);
}
cublasStatus_t cublasDgemm_v2(cublasHandle_t, cublasOperation_t first, cublasOperation_t second, int m, int n,
                              int k, const double* alpha, const double* a, int a_pitch, const double* b,
                              int b_pitch, const double* beta, double* c, int c_pitch) {
    return multiply(cblas_dgemm, first, second, m, n, k, *alpha, a, a_pitch, b, b_pitch, *beta, c, c_pitch);
}

}  // extern "C"
