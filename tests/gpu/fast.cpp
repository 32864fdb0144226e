// This program tests the code of the GPU's kernels, but runs the code on the host.
#include <new>

#include "tally/gpu/on_host.hpp"
#include "under_test.hpp"

namespace tally::test {

extern const bool is_on_gpu = false;

template <class S> const Kernels<S>& fast() { return gpu::host_table<S>(); }

void* grab(std::size_t bytes) { return ::operator new(bytes, std::align_val_t(64)); }
void give(void* memory) { ::operator delete(memory, std::align_val_t(64)); }

template const Kernels<float>& fast();
template const Kernels<double>& fast();

}  // namespace tally::test
