// Executes one kernel of a PTX text.
#include "execute.hpp"

#include <algorithm>
#include <new>

#include "machine.hpp"
#include "memory.hpp"
#include "program.hpp"

namespace tally::ptx {

std::vector<std::string> execute(const std::string& ptx, const KernelCall& call) {
    Program program(ptx, "the PTX");
    const Kernel& kernel = program.kernel(call.kernel);
    std::vector<std::byte> parameters(sizeof(void*) * call.pointers.size());
    std::memcpy(parameters.data(), call.pointers.data(), parameters.size());
    Machine machine(program, kernel, call.blocks, call.threads, parameters, Schedule::from(call.order));
    machine.run();
    return machine.findings();
}

std::size_t barriers_in(const std::string& ptx, const std::string& kernel) {
    Program program(ptx, "the PTX");
    const std::vector<Instruction>& code = program.kernel(kernel).code;
    return static_cast<std::size_t>(std::count_if(
        code.begin(), code.end(), [](const Instruction& i) { return i.kind == Kind::barrier; }));
}

void* allocate_for_kernels(std::size_t bytes) {
    void* const data = Memory::one().pinned(bytes);
    if (data == nullptr) throw std::bad_alloc();
    return data;
}

}  // namespace tally::ptx
