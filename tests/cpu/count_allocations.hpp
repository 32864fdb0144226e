// How often this program has allocated: what C++ containers and xtensor's aligned allocator end up in.
#pragma once

namespace tally::test {

long allocations();

}  // namespace tally::test
