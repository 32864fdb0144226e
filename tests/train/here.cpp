// The device of this program's tests.
#include "here.hpp"

tally::Device tally::test::here() { return Device::cpu; }
