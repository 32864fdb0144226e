// The device of this program's tests is the emulated one.
#include "here.hpp"

#include "tally/device/backend.hpp"

[[maybe_unused]] static const bool chosen = (tally::backend::select("simulated"), true);

tally::Device tally::test::here() { return Device::cuda; }
