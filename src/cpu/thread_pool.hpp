// Thread pool of the CPU kernels. Parts of one work run at the same time, each with a workspace.
#pragma once

#include <cstddef>

#include "tally/cpu/gemm_blocked.hpp"

namespace tally::cpu {

using RunPart = void (*)(const void* work, std::size_t part, const Workspace& workspace);

// Calls run(work, part, workspace) once for every part, and returns when all calls have returned. The parts
// run on this thread and others, threads() in all; only on this thread while another caller uses the pool.
void run_parts(std::size_t parts, const void* work, RunPart run);

// Calls body(part, workspace) for every part.
template <class Body> void parallel_for(std::size_t parts, const Body& body) {
    run_parts(parts, &body, [](const void* work, std::size_t part, const Workspace& workspace) {
        (*static_cast<const Body*>(work))(part, workspace);
    });
}

}  // namespace tally::cpu
