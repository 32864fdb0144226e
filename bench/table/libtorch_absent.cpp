// Replaces libtorch.cpp and libtorch_memory.cpp if LibTorch is not installed.
#include "bench/table/libtorch.hpp"

namespace tally::bench {

std::string libtorch_version() { return {}; }
void libtorch_threads(int) {}
void add_libtorch(Row&, const Toy&, std::int64_t) {}
void add_libtorch(Row&, const ElementwiseChain&) {}
void add_libtorch(Row&, const ScalarNetwork&) {}
void add_libtorch(Row&, const Mlp&) {}
void add_libtorch(Row&, const Logits&) {}
void add_libtorch(Row&, const Elementwise&) {}
void add_libtorch(Row&, const Deep&) {}

}  // namespace tally::bench
