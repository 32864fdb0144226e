// Replaces libtorch.cpp if LibTorch is not installed.
#include "programs/outcome.hpp"

namespace programs {

bool peer_is_there() { return false; }
Outcome run_peer(const Program&) { return {}; }

}  // namespace programs
