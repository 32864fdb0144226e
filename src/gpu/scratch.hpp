// A `Scratch` owns temporary device memory, which is freed in the order of the stream.
#pragma once

#include <cstddef>

#include "tally/gpu/backend_entry.hpp"
#include "tally/memory/memory.hpp"

namespace tally::gpu {

template <class S> class LedgerScratch {
public:
    explicit LedgerScratch(std::size_t n) : storage_(host().allocate(n * sizeof(S))) {
        if (storage_ == nullptr) throw HostError();
    }
    LedgerScratch(const LedgerScratch&) = delete;
    LedgerScratch& operator=(const LedgerScratch&) = delete;
    ~LedgerScratch() { host().unref(storage_); }
    S* data() const { return static_cast<S*>(storage_->data); }

private:
    memory::detail::Storage* storage_;
};

}  // namespace tally::gpu
