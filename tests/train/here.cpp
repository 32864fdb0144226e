// here() returns the CPU for the tests of this program.
#include "here.hpp"

tally::Device tally::test::here() { return Device::cpu; }
