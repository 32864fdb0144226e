// The CPU's table of kernels for each scalar type, and the one dispatch point between devices.
#include <atomic>

#include "autograd/device.hpp"
#include "autograd/dual.hpp"
#include "autograd/error.hpp"
#include "autograd/kernels.hpp"
#include "autograd/peer.hpp"
#include "cpu/families.hpp"
#include "cpu/reference.hpp"

extern "C" void openblas_set_num_threads(int);
extern "C" int openblas_get_num_threads(void);

namespace tally {

namespace {

template <class S> Kernels<S> assemble() {
    Kernels<S> table{};
    cpu::install_elementwise(table);
    cpu::install_memory(table);
    cpu::install_reduce(table);
    cpu::install_softmax(table);
    cpu::install_matmul(table);
    cpu::install_loss(table);
    cpu::install_norm(table);
    cpu::install_update(table);
    cpu::install_batch_norm(table);
    cpu::install_dropout(table);
    cpu::install_windows(table);
    return table;
}

template <> Kernels<Dual<double>> assemble() { return reference::table<Dual<double>>(); }

[[maybe_unused]] const bool one_thread = (openblas_set_num_threads(1), true);

}  // namespace

bool available(Device device) { return device == Device::cpu || peer::absent().empty(); }

bool capturing(Device device) { return device != Device::cpu && peer::capturing(); }

std::uint64_t waits(Device device) { return device == Device::cpu ? 0 : peer::waits(); }

template <class S> const Kernels<S>& find_kernels(Device device) {
    static const Kernels<S> cpu = assemble<S>();
    const Kernels<S>& found = device == Device::cpu ? cpu : peer::kernels<S>();
    found_kernels<S>[static_cast<std::size_t>(device)].store(&found, std::memory_order_release);
    return found;
}

template const Kernels<float>& find_kernels<float>(Device);
template const Kernels<double>& find_kernels<double>(Device);
template const Kernels<Dual<double>>& find_kernels<Dual<double>>(Device);

void set_threads(int threads) {
    if (threads < 1)
        throw Error("[set_threads] at least one thread is needed; " + std::to_string(threads) +
                    " were asked for");
    openblas_set_num_threads(threads);
}

int threads() { return openblas_get_num_threads(); }

static std::atomic<bool> tf32{false};
void allow_tf32(bool allowed) { tf32.store(allowed, std::memory_order_relaxed); }
bool tf32_allowed() { return tf32.load(std::memory_order_relaxed); }

}  // namespace tally
