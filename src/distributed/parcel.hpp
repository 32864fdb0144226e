// send_parcel() sends bytes of any size from one process to another, between two calls of all_gather().
#pragma once

#include <string>

#include "tally/distributed/processes.hpp"

namespace tally::detail {

// Begins to send `bytes`, and returns without waiting. The sender and the receiver pass the same `id`. Pass a
// different `id` in each call, so that the receiver can discard the bytes of a failed call.
void send_parcel(ProcessGroup& processes, int to, const std::string& id, std::string bytes);
// Returns the bytes that the rank `from` sends with this `id`. Throws if no bytes arrive within the timeout.
std::string receive_parcel(ProcessGroup& processes, int from, const std::string& id);

}  // namespace tally::detail
