// The constructor of ScopedValue sets a variable, and the destructor restores the old value.
#pragma once

#include <utility>

namespace tally::detail {

template <class T> class ScopedValue {
public:
    ScopedValue(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
    ~ScopedValue() { place_ = std::move(before_); }
    ScopedValue(const ScopedValue&) = delete;
    ScopedValue& operator=(const ScopedValue&) = delete;

private:
    T& place_;
    T before_;
};

}  // namespace tally::detail
