// here() returns the device that the tests of this program use.
#include "here.hpp"

tally::Device tally::test::here() { return Device::cpu; }
