// Selects the kernels of a device, and stores which implementation computes matrix products.
#include <atomic>
#include <cstdlib>
#include <string>

#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/device/backend.hpp"
#include "tally/kernels/device.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally {

bool available(Device device) { return device == Device::cpu || backend::unavailable_reason().empty(); }

std::uint64_t detail::waits(Device device) { return device == Device::cpu ? 0 : backend::waits(); }

template <class S> const detail::Kernels<S>& detail::find_kernels(Device device) {
    products();  // throws before any computation if the name in the environment is wrong
    const detail::Kernels<S>& found =
        device == Device::cpu ? detail::cpu_kernels<S>() : backend::kernels<S>();
    detail::found_kernels<S>[static_cast<std::size_t>(device)].store(&found, std::memory_order_release);
    return found;
}

template const detail::Kernels<float>& detail::find_kernels<float>(Device);
template const detail::Kernels<double>& detail::find_kernels<double>(Device);
template const detail::Kernels<Dual<double>>& detail::find_kernels<Dual<double>>(Device);

static constexpr int not_asked = -1;
static std::atomic<int> chosen_products{not_asked};

Products detail::products_named(std::string_view name) {
    if (name == "ordered") return Products::ordered;
    if (name == "blas") return Products::blas;
    throw Error("[products] unknown products '" + detail::clean_text(std::string(name), 40) +
                "'; use ordered or blas");
}

void set_products(Products products) {
    if (products != Products::ordered && products != Products::blas)
        throw Error("[set_products] unknown products " + std::to_string(static_cast<int>(products)) +
                    "; use Products::ordered or Products::blas");
    chosen_products.store(static_cast<int>(products), std::memory_order_relaxed);
}

Products products() {
    int chosen = chosen_products.load(std::memory_order_relaxed);
    if (chosen == not_asked) {
        const char* const name = std::getenv("TALLY_PRODUCTS");
        const Products first =
            name == nullptr || *name == '\0' ? Products::ordered : detail::products_named(name);
        if (chosen_products.compare_exchange_strong(chosen, static_cast<int>(first))) return first;
    }
    return static_cast<Products>(chosen);
}

}  // namespace tally
