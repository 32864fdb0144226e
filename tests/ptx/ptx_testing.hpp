// Runs short PTX programs for the tests of the executor.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "machine.hpp"
#include "memory.hpp"
#include "program.hpp"

namespace tally::test {

inline const std::string ptx_head = ".version 8.0\n.target sm_80\n.address_size 64\n";

// Memory that kernels may access. It is never released, so an address has one meaning.
template <class T> T* in_global_memory(const std::vector<T>& values) {
    void* const data = ptx::Memory::one().pinned(sizeof(T) * values.size());
    std::memcpy(data, values.data(), sizeof(T) * values.size());
    return static_cast<T*>(data);
}

// Runs the kernel "k", whose parameters are pointers, and returns the findings.
inline std::vector<std::string> run_ptx(const std::string& text, unsigned blocks, unsigned threads,
                                        const std::vector<const void*>& pointers,
                                        const std::string& order = "forward") {
    ptx::Program program(text, "test.ptx");
    const ptx::Kernel& kernel = program.kernel("k");
    std::vector<std::byte> parameters(8 * pointers.size());
    std::memcpy(parameters.data(), pointers.data(), parameters.size());
    ptx::Machine machine(program, kernel, blocks, threads, parameters, ptx::Schedule::from(order));
    machine.run();
    return machine.findings();
}

}  // namespace tally::test
