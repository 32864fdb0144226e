// Meanwhile: for as long as one lives, something has another value.
#pragma once

#include <utility>

namespace tally::detail {

template <class T> class Meanwhile {
public:
    Meanwhile(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
    ~Meanwhile() { place_ = std::move(before_); }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

private:
    T& place_;
    T before_;
};

}  // namespace tally::detail
