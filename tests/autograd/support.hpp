// Functions for tests of autograd, for example to make random arrays and to fill new memory with NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "here.hpp"
#include "tally/array/array.hpp"
#include "tally/memory/memory.hpp"

namespace tally::test {

class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    double between(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(engine_);
    }
    std::int64_t whole(std::int64_t low, std::int64_t high) {  // bounds are included
        return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
    }
    bool coin() { return whole(0, 1) == 1; }

    Shape shape(int max_axes, std::int64_t max_extent = 4) {  // one in eight shapes has an extent of 0
        std::vector<std::int64_t> extents(static_cast<std::size_t>(whole(0, max_axes)));
        for (auto& extent : extents) extent = whole(1, max_extent);
        if (!extents.empty() && whole(0, 5) == 0) extents.back() = whole(5, 70);  // exceeds a SIMD batch
        if (!extents.empty() && whole(0, 7) == 0)
            extents[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(extents.size()) - 1))] = 0;
        return Shape(extents);
    }
    // Returns a random shape that broadcasts to `out`, with fewer axes or with axes of extent 1.
    Shape within(const Shape& out) {
        const std::int64_t dropped = whole(0, 2) == 0 ? whole(0, out.rank()) : 0;
        std::vector<std::int64_t> extents(out.begin() + dropped, out.end());
        for (auto& extent : extents)
            if (whole(0, 2) == 0) extent = 1;
        return Shape(extents);
    }
    template <class S> Array<S> array(const Shape& shape, double low = -2, double high = 2) {
        std::vector<S> values;
        for (std::size_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<S>(between(low, high)));
        return Array<S>(shape, values, here());
    }
    Array<std::int32_t> integers(const Shape& shape, std::int64_t low, std::int64_t high) {
        std::vector<std::int32_t> values;
        for (std::size_t i = 0; i < shape.size(); ++i)
            values.push_back(static_cast<std::int32_t>(whole(low, high)));
        return Array<std::int32_t>(shape, values, here());
    }

private:
    std::mt19937_64 engine_;
};

// While a Poison exists, new buffers are filled with NaN.
struct Poison {
    Poison() { memory::detail::set_poison(true); }
    ~Poison() {
#ifdef NDEBUG
        memory::detail::set_poison(false);
#endif
    }
    Poison(const Poison&) = delete;
    Poison& operator=(const Poison&) = delete;
};

template <class S> bool same_bits(const Array<S>& a, const Array<S>& b) {
    if (!(a.shape() == b.shape())) return false;
    const Array<S> at_a = a.to(Device::cpu), at_b = b.to(Device::cpu);
    return a.size() == 0 || std::memcmp(at_a.data(), at_b.data(), a.size() * sizeof(S)) == 0;
}

template <class S> bool any_nan(const Array<S>& x) {
    for (S value : x.to_vector())
        if (std::isnan(value)) return true;
    return false;
}

template <class F> std::string message_of(F f) {
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

inline std::size_t in_use(MemoryClass memory_class) {
    return memory::report().in_use_by[static_cast<std::size_t>(memory_class)];
}

}  // namespace tally::test
