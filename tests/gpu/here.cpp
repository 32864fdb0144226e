// The tests of this program use the emulated device.
#include "here.hpp"

#include "tally/device/backend.hpp"

[[maybe_unused]] static const bool chosen = (tally::backend::select("simulated"), true);

tally::Device tally::test::here() { return Device::cuda; }
