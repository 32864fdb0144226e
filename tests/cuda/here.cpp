// Defines the device on which the tests of this program run.
#include "here.hpp"

tally::Device tally::test::here() { return Device::cuda; }
