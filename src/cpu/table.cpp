// Builds the table of CPU kernels for each scalar type, and sets the number of threads.
#include <atomic>
#include <string>

#include "tally/base/error.hpp"
#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/reference.hpp"
#include "tally/cpu/vectors.hpp"
#include "tally/kernels/blas.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernels.hpp"

extern "C" {
void openblas_set_num_threads(int);
char* openblas_get_corename();
}

namespace tally {

namespace cpu {
extern const Vectors compiled_vectors;
const Vectors compiled_vectors = vectors;
[[gnu::used]] void (*const at_start)() = require_vectors;  // makes the linker include vectors.cpp
}  // namespace cpu

namespace {

template <class S> detail::Kernels<S> assemble() {
    detail::Kernels<S> table{};
#define TALLY_INSTALL(family) cpu::install_##family(table);
    TALLY_KERNEL_FAMILIES(TALLY_INSTALL)
#undef TALLY_INSTALL
    return table;
}

template <> detail::Kernels<Dual<double>> assemble() { return reference::table<Dual<double>>(); }

[[maybe_unused]] const bool one_thread = (openblas_set_num_threads(1), true);

std::atomic<int> thread_count{1};

}  // namespace

template <class S> const detail::Kernels<S>& detail::cpu_kernels() {
    static const detail::Kernels<S> table = assemble<S>();
    return table;
}

template const detail::Kernels<float>& detail::cpu_kernels<float>();
template const detail::Kernels<double>& detail::cpu_kernels<double>();
template const detail::Kernels<Dual<double>>& detail::cpu_kernels<Dual<double>>();

void set_threads(int threads) {
    if (threads < 1)
        throw Error("[set_threads] at least one thread is needed; " + std::to_string(threads) +
                    " were asked for");
    if (threads > 1024)
        throw Error("[set_threads] use at most 1024 threads; " + std::to_string(threads) + " were asked for");
    openblas_set_num_threads(threads);
    thread_count.store(threads, std::memory_order_relaxed);
}

int threads() { return thread_count.load(std::memory_order_relaxed); }

std::string detail::blas_kernels() { return openblas_get_corename(); }

}  // namespace tally
