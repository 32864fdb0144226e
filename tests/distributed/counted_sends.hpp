// What this process has handed to MPI to send, as MPI itself is called: tally's own counters do not count here.
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

CountedSends counted_sends();  // since the program began

}  // namespace tally::test
