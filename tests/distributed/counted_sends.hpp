// counted_sends() counts the messages and bytes that this process passes to MPI_Isend.
#pragma once

#include <cstdint>

namespace tally::test {

struct CountedSends {
    std::uint64_t messages = 0, bytes = 0;
    CountedSends operator-(const CountedSends& before) const {
        return {messages - before.messages, bytes - before.bytes};
    }
    bool operator==(const CountedSends&) const = default;
};

CountedSends counted_sends();  // since the start of the program

}  // namespace tally::test
