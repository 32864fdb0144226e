// Returns the number of this program's allocations by C++ containers and xtensor's aligned allocator.
#pragma once

namespace tally::test {

long allocations();

}  // namespace tally::test
