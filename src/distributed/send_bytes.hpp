// send_parcel() sends bytes of any size from one process to another, between two all_gather().
#pragma once

#include <string>

#include "tally/distributed/processes.hpp"

namespace tally::detail {

// Begins to send `bytes` and returns. `what` identifies them: sender and receiver pass the same text, another
// one for each call. The receiver drops bytes of an earlier call, which a failure may have left.
void send_parcel(ProcessGroup& processes, int to, const std::string& what, std::string bytes);
// Returns the bytes that `from` sends under this text. Throws if they do not arrive within the timeout.
std::string receive_parcel(ProcessGroup& processes, int from, const std::string& what);

}  // namespace tally::detail
