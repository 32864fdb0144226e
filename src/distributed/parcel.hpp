// send_parcel() sends bytes of any size from one process to another, between two all_gather().
#pragma once

#include <string>

#include "tally/distributed/processes.hpp"

namespace tally::detail {

// Begins to send `bytes` and returns. `id` is the same text on both sides and different in each call, so
// that the receiver can drop the bytes that a failed call has left.
void send_parcel(ProcessGroup& processes, int to, const std::string& id, std::string bytes);
// Returns the bytes that `from` sends under this text. Throws if they do not arrive within the timeout.
std::string receive_parcel(ProcessGroup& processes, int from, const std::string& id);

}  // namespace tally::detail
