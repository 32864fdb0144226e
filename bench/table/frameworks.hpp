// JAX's and PyTorch's sides of a row: processes of the Python in a folder that tools/bench-peers has filled.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/table/problems.hpp"
#include "bench/table/row.hpp"

namespace tally::bench {

constexpr const char *jax = "JAX", *pytorch = "PyTorch";

void use_frameworks(const std::string& folder);          // an Error where no Python is in there
std::vector<std::pair<std::string, bool>> frameworks();  // with their versions, and whether they are here

// A piece of work as a side in Python is told of it.
struct Told {
    std::string kind;  // as the sides name it
    std::int64_t rows = 0, micro = 0;
    float rate = 0;
    struct Numbers {
        std::vector<std::int64_t> shape;
        std::vector<float> values;
    };
    std::vector<Numbers> arrays = {};
    std::vector<std::int32_t> labels = {};
    std::vector<std::size_t> answers = {};  // how many numbers each vector has that is compared
};
Told told(const Mlp& mlp);
Told told(const Deep& deep);  // without segments

// On row.threads cores; with the memory that it says it needs, if it is asked for.
void add_framework(Row& row, const char* name, const Told& work, bool with_memory = false);
inline void add_frameworks(Row& row, const Told& work) {
    for (const char* name : {jax, pytorch}) add_framework(row, name, work);
}

}  // namespace tally::bench
