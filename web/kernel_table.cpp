// Selects the reference kernels for classroom.html, because these kernels need neither xtensor nor BLAS.
#include "tally/base/error.hpp"
#include "tally/cpu/reference.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally {

template <class S> const detail::Kernels<S>& detail::cpu_kernels() {
    static const detail::Kernels<S> table = reference::table<S>();
    return table;
}

template const detail::Kernels<float>& detail::cpu_kernels<float>();
template const detail::Kernels<double>& detail::cpu_kernels<double>();
template const detail::Kernels<Dual<double>>& detail::cpu_kernels<Dual<double>>();

void set_threads(int threads) {
    if (threads != 1)
        throw Error("[set_threads] this build has one thread; " + std::to_string(threads) +
                    " were asked for");
}
int threads() { return 1; }

}  // namespace tally
