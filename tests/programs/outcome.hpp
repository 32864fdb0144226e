// What a program did, whoever ran it: by the engine in four ways, or by LibTorch.
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
    std::vector<std::optional<std::vector<double>>> values;  // by step; not of those inside a checkpoint
    std::vector<Extents> shapes;
    std::vector<Observed> gradients;
    std::int64_t nodes_left = 0, bytes_left = 0;
    std::string error;  // what was thrown
};

enum class Way { plain, moved, blocks, moved_blocks };
inline const char* name_of(Way way) {
    constexpr const char* names[] = {"plain", "moved", "checkpointed", "moved and checkpointed"};
    return names[static_cast<int>(way)];
}

Outcome run_engine(const Program& program, Way way);

// The seeds of all backward passes times what they are given to, summed; nothing is recorded.
double objective(const Program& program);

// LibTorch, where the tests were built with it. An error means that it does not do such a program.
bool peer_is_there();
Outcome run_peer(const Program& program);

}  // namespace programs
