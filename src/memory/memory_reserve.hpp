// Blocks set aside: while a captured graph exists, which holds addresses, nobody else may have its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tally/memory/memory_account.hpp"

namespace tally::memory {

// While a `Use` lives, this thread takes its buffers of the device from the reserve, which asks the device
// for what it lacks, and gives back to it. Between uses its blocks count as in use.
class Reserve {
public:
    explicit Reserve(Device device) : device_(device) {}
    Reserve(const Reserve&) = delete;
    Reserve& operator=(const Reserve&) = delete;
    ~Reserve();

    class Use {
    public:
        // With `hold` what is handed out and still there at the end stays in the reserve's hands, too: when
        // others let go of it nobody gets it.
        explicit Use(Reserve& reserve, bool hold = false);
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;
        ~Use();
        std::uint64_t fresh() const;  // blocks that were not there before

    private:
        Reserve& reserve_;
        detail::Account& account_;
        std::int64_t limit_;
        std::uint64_t fresh_;
        std::size_t held_;  // by the reserve before; what is noted comes after them
    };

private:
    void exchange(detail::Account& account);

    Device device_;
    detail::FreeLists waiting_;
    std::int64_t bytes_ = 0;  // of these
    std::vector<Storage*> held_;
};

}  // namespace tally::memory
