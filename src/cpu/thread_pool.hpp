// The thread pool of the CPU kernels runs the parts of one computation at the same time.
#pragma once

#include <algorithm>
#include <cstddef>

#include "tally/cpu/gemm_blocked.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

// Allocates this thread's Workspace. Call this before run_parts() if a part uses its workspace.
void allocate_workspace();

using RunPart = void (*)(const void* work, std::size_t part, const Workspace& workspace);

// Calls run(work, part, workspace) once for every part, and returns when all calls have returned. Up to
// threads() threads run the parts. If another caller uses the pool, the calling thread runs all parts.
void run_parts(std::size_t parts, const void* work, RunPart run);

template <class Body> void parallel_for(std::size_t parts, const Body& body) {
    run_parts(parts, &body, [](const void* work, std::size_t part, const Workspace& workspace) {
        (*static_cast<const Body*>(work))(part, workspace);
    });
}

// Divides [0, extent) into parts, and calls body(first, count, workspace) for each. Each part begins at a multiple of
// `unit`. All parts together take `work` operations. If there are several parts, their average is at least `least`.
template <class Body> void parallel_for_extent(std::size_t extent, std::size_t unit, std::size_t work,
                                               std::size_t least, const Body& body) {
    const auto max_parts = static_cast<std::size_t>(threads());
    const std::size_t parts = std::max<std::size_t>(1, std::min({max_parts, work / least, extent / unit}));
    const std::size_t units = (extent + unit - 1) / unit;
    parallel_for(parts, [&](std::size_t part, const Workspace& workspace) {
        const std::size_t first = units * part / parts * unit, end = units * (part + 1) / parts * unit;
        body(first, std::min(end, extent) - first, workspace);
    });
}

}  // namespace tally::cpu
