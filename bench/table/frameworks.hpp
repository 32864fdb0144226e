// Adds JAX and PyTorch to a row of the table. Each framework runs in its own process, with the Python that
// tools/bench-peers has installed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/table/problems.hpp"
#include "bench/table/row.hpp"

namespace tally::bench {

constexpr const char *jax = "JAX", *pytorch = "PyTorch";

void use_frameworks(const std::string& folder);  // throws if the folder has no Python
std::vector<std::pair<std::string, bool>>
frameworks();  // names with versions, and whether they are installed

// Describes a benchmark that a framework in Python runs.
struct Description {
    std::string kind;  // one of the kinds in bench/peers
    std::int64_t rows = 0, micro = 0;
    float rate = 0;
    struct Numbers {
        std::vector<std::int64_t> shape;
        std::vector<float> values;
    };
    std::vector<Numbers> arrays = {};
    std::vector<std::int32_t> labels = {};
    std::vector<std::size_t> answers = {};  // size of each compared vector
};
Description description(const Mlp& mlp);
Description description(const Deep& deep);  // without segments

// Adds the framework `name` to the row, and runs the framework on row.threads cores. If `with_memory` is set,
// also adds the memory that the framework reports.
void add_framework(Row& row, const char* name, const Description& work, bool with_memory = false);
inline void add_frameworks(Row& row, const Description& work) {
    for (const char* name : {jax, pytorch}) add_framework(row, name, work);
}

}  // namespace tally::bench
