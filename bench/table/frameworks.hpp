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
void add_frameworks(Row& row, const Mlp& mlp);           // on row.threads cores

}  // namespace tally::bench
