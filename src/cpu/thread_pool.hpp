// The thread pool of the CPU kernels runs the parts of one computation at the same time.
#pragma once

#include <cstddef>

#include "tally/cpu/gemm_blocked.hpp"

namespace tally::cpu {

using RunPart = void (*)(const void* work, std::size_t part, const Workspace& workspace);

// Calls run(work, part, workspace) once for every part, and returns when all calls have returned. Up to
// threads() threads run the parts. If another caller uses the pool, the calling thread runs all parts.
void run_parts(std::size_t parts, const void* work, RunPart run);

template <class Body> void parallel_for(std::size_t parts, const Body& body) {
    run_parts(parts, &body, [](const void* work, std::size_t part, const Workspace& workspace) {
        (*static_cast<const Body*>(work))(part, workspace);
    });
}

}  // namespace tally::cpu
