// The GPU in a build without CUDA: it is not there, and says so.
#include "autograd/dual.hpp"
#include "autograd/error.hpp"
#include "autograd/peer.hpp"

namespace tally::peer {

const std::string& absent() {
    static const std::string& words =
        *new std::string("this build has no CUDA; configure with -DTALLY_CUDA=ON");
    return words;
}

std::uint64_t waits() { return 0; }

const memory::Raw& raw() { throw Error("[memory] " + absent()); }

void copy(void*, Device, const void*, Device, std::size_t) { throw Error("[to] " + absent()); }

template <class S>
const Kernels<S>& kernels() {
    throw Error("[kernels] " + absent());
}

bool capturing() { return false; }
void begin_capture() { throw Error("[capture] " + absent()); }
Graph* end_capture() { return nullptr; }
void abandon_capture() noexcept {}
void replay(const Graph&) {}
void discard(Graph*) noexcept {}

template <class S>
void decide(const Conditions<S>&, Decisions<S>*) {}

template void decide(const Conditions<float>&, Decisions<float>*);
template void decide(const Conditions<double>&, Decisions<double>*);
template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();
template const Kernels<Dual<double>>& kernels<Dual<double>>();

}  // namespace tally::peer
