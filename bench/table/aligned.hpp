// Provides arrays for the programs without autograd. The arrays are aligned like tally's arrays, so that the
// alignment does not make these programs slower.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace tally::bench {

class Aligned {
public:
    explicit Aligned(auto size)
        : size_(static_cast<std::size_t>(size)),
          data_(static_cast<float*>(
              ::operator new[]((size_ * sizeof(float) + 63) / 64 * 64, std::align_val_t(64)))) {
        std::fill_n(data_.get(), size_, 0.f);
    }
    Aligned(const std::vector<float>& values) : Aligned(values.size()) {
        std::copy(values.begin(), values.end(), data_.get());
    }
    operator float*() const { return data_.get(); }
    std::size_t size() const { return size_; }
    std::vector<double> doubles() const { return {data_.get(), data_.get() + size_}; }

private:
    struct Freed {
        void operator()(float* p) const { ::operator delete[](p, std::align_val_t(64)); }
    };
    std::size_t size_;
    std::unique_ptr<float[], Freed> data_;
};

}  // namespace tally::bench
