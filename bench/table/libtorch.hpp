// Adds LibTorch to the rows of the table. These functions do nothing if LibTorch is not installed.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/table/problems.hpp"
#include "bench/table/row.hpp"

namespace tally::bench {

constexpr const char* libtorch = "LibTorch";
std::string libtorch_version();  // empty without LibTorch
void libtorch_threads(int threads);

void add_libtorch(Row& row, const Toy& toy, std::int64_t micro);
void add_libtorch(Row& row, const ElementwiseChain& chain);
void add_libtorch(Row& row, const ScalarNetwork& network);
void add_libtorch(Row& row, const Mlp& mlp);
void add_libtorch(Row& row, const Logits& logits);
void add_libtorch(Row& row, const Elementwise& work);
void add_libtorch(Row& row, const Deep& deep);  // also adds LibTorch's memory

}  // namespace tally::bench
