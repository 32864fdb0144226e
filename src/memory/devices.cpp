// The one dispatch point between devices: whose kernels compute, and what the engine asks about either of them.
#include <atomic>

#include "tally/kernels/device.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernels.hpp"
#include "tally/memory/peer.hpp"

namespace tally {

bool available(Device device) { return device == Device::cpu || peer::absent().empty(); }

bool capturing(Device device) { return device != Device::cpu && peer::capturing(); }

std::uint64_t waits(Device device) { return device == Device::cpu ? 0 : peer::waits(); }

template <class S> const Kernels<S>& find_kernels(Device device) {
    const Kernels<S>& found = device == Device::cpu ? cpu_kernels<S>() : peer::kernels<S>();
    found_kernels<S>[static_cast<std::size_t>(device)].store(&found, std::memory_order_release);
    return found;
}

template const Kernels<float>& find_kernels<float>(Device);
template const Kernels<double>& find_kernels<double>(Device);
template const Kernels<Dual<double>>& find_kernels<Dual<double>>(Device);

static std::atomic<bool> tf32{false};
void allow_tf32(bool allowed) { tf32.store(allowed, std::memory_order_relaxed); }
bool tf32_allowed() { return tf32.load(std::memory_order_relaxed); }

}  // namespace tally
