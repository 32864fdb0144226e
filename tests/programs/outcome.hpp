// An Outcome holds the results of a program, which the engine runs in four ways and LibTorch in one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/program.hpp"

namespace programs {

struct Observed {
    int act, place;
    std::optional<std::vector<double>> gradient;
};

struct Outcome {
    std::vector<std::optional<std::vector<double>>> values;  // by step; absent for steps inside a checkpoint
    std::vector<Extents> shapes;
    std::vector<Observed> gradients;
    std::int64_t nodes_left = 0, bytes_left = 0;
    std::string error;  // message of the Error, or empty
};

enum class Way { plain, moved, blocks, moved_blocks };
inline const char* name_of(Way way) {
    constexpr const char* names[] = {"plain", "moved", "checkpointed", "moved and checkpointed"};
    return names[static_cast<int>(way)];
}

Outcome run_engine(const Program& program, Way way);

// Returns the sum of seed * result over all backward passes of the program. This function records no graph.
double objective(const Program& program);

// If peer_is_there(), run_peer() runs the program with LibTorch, and throws if LibTorch cannot run it.
bool peer_is_there();
Outcome run_peer(const Program& program);

}  // namespace programs
