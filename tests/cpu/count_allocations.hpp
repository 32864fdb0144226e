// Returns how many allocations this program has made by operator new or posix_memalign.
#pragma once

namespace tally::test {

long allocations();

}  // namespace tally::test
