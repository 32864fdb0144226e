// Reads the number of threads, memory budgets, memory in use, and the modes of the thread and the program.
#include "surroundings.hpp"

#include "tally/array/transpose_cache.hpp"
#include "tally/autograd/backward_check.hpp"
#include "tally/autograd/node.hpp"
#include "tally/base/text.hpp"
#include "tally/checkpoint/trace.hpp"
#include "tally/kernels/device.hpp"
#include "tally/kernels/kernels.hpp"
#include "tally/memory/memory.hpp"
#include "tally/tools/scope_name.hpp"

tally::test::Surroundings tally::test::surroundings() {
    const auto flag = [](bool on) { return std::string(on ? "on" : "off"); };
    const bool poison = memory::detail::set_poison(false);
    memory::detail::set_poison(poison);
    Surroundings found{
        {"the number of threads", std::to_string(threads())},
        {"the products", products() == Products::ordered ? "ordered" : "blas"},
        {"NaN in fresh buffers", flag(poison)},
        {"recording", flag(detail::context.recording)},
        {"keeping values", flag(detail::context.keeps_values)},
        {"verifying", flag(detail::verifying)},
        {"checks of backward functions", flag(instrumentation::checks)},
        {"the number of running backward passes", std::to_string(detail::context.backward_passes)},
        {"the unlocked flags", std::to_string(detail::ignored_flags)},
        {"an interceptor", flag(detail::context.interceptor != nullptr)},
        {"an observer", flag(instrumentation::detail::observer != nullptr)},
        {"skipped kernels", flag(detail::skip_compute)},
        {"a transpose cache", flag(detail::transpose_cache<float> || detail::transpose_cache<double>)},
        {"the scope's name", ScopeName::place()},
    };
    for (const Device device : {Device::cpu, Device::cuda}) {
        found[std::string("the budget of ") + to_string(device)] =
            detail::format_bytes(memory::detail::budget(device));
        found[std::string("the memory in use of ") + to_string(device)] =
            std::to_string(memory::in_use(device)) + " bytes";
    }
    return found;
}
