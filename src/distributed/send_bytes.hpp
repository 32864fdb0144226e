// Parcels: bytes of any size from one process to another, between two meetings of all.
#pragma once

#include <string>

#include "tally/distributed/processes.hpp"

namespace tally::detail {

// Begins to send; the bytes are on their way until the receiver has taken them. `what` names them to both, and is
// said once: what a call that failed has sent under another name is dropped.
void send_parcel(ProcessGroup& processes, int to, const std::string& what, std::string bytes);
// An Error if it does not come in time.
std::string receive_parcel(ProcessGroup& processes, int from, const std::string& what);

}  // namespace tally::detail
