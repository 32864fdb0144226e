// execute() runs one kernel of a PTX text on memory that the caller has filled.
#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace tally::ptx {

struct KernelCall {
    std::string kernel;
    unsigned blocks = 1, threads = 1;
    std::vector<const void*> pointers = {};  // the parameters of the kernel
    std::string order = "forward";           // of the threads; or "reverse", or "random:SEED"
};

// Returns a message for each race and each wrong access. Throws Unreadable.
std::vector<std::string> execute(const std::string& ptx, const KernelCall& call);

std::size_t barriers_in(const std::string& ptx, const std::string& kernel);  // barrier instructions

// Allocates memory that kernels and the host may access. It is never released, so no two allocations share an address.
void* allocate_for_kernels(std::size_t bytes);

template <class T> T* in_global_memory(const std::vector<T>& values) {
    void* const data = allocate_for_kernels(sizeof(T) * values.size());
    std::memcpy(data, values.data(), sizeof(T) * values.size());
    return static_cast<T*>(data);
}

}  // namespace tally::ptx
