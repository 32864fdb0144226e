// Declares functions that make the rows of the table.
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

// The following functions make a row of any size, without goals for tally.
Row chain_row(const ElementwiseChain& chain);
Row mlp_row(const Mlp& mlp, int threads = 1);

}  // namespace tally::bench
