// Declares the rows of the table in the order of the table, and functions that make a row of any size.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/table/problems.hpp"
#include "bench/table/row.hpp"

namespace tally::bench {

std::vector<Planned> teaching_rows();
std::vector<Planned> network_rows();  // updates of an MLP, on one thread and on two threads
std::vector<Planned> loss_rows();
std::vector<Planned> elementwise_rows();
std::vector<Planned> product_rows();
std::vector<Planned> memory_rows();

// These functions make rows without goals.
Row chain_row(const ElementwiseChain& chain);
Row mlp_row(const Mlp& mlp, int threads = 1);

}  // namespace tally::bench
