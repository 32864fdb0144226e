// The CPU's table where neither xtensor nor BLAS is: the reference kernels, which every device is tested against.
#include "tally/kernels/kernels.hpp"
#include "tally/base/error.hpp"
#include "tally/cpu/reference.hpp"
#include "tally/kernels/dual.hpp"

namespace tally {

template <class S> const Kernels<S>& cpu_kernels() {
    static const Kernels<S> table = reference::table<S>();
    return table;
}

template const Kernels<float>& cpu_kernels<float>();
template const Kernels<double>& cpu_kernels<double>();
template const Kernels<Dual<double>>& cpu_kernels<Dual<double>>();

void set_threads(int threads) {
    if (threads != 1)
        throw Error("[set_threads] this build has one thread; " + std::to_string(threads) +
                    " were asked for");
}
int threads() { return 1; }

}  // namespace tally
