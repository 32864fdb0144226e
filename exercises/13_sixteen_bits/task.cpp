// Repair a sum in bfloat16 that stops growing.
//
// A bfloat16 has 8 bits of precision, so 256 + 1 is rounded to 256. A sum of ones stops growing at 256, and
// a gradient that is accumulated in bfloat16 over many micro-batches stops in the same way.
//
// Kahan's method keeps a second number, to.lost: the amount that rounding has taken from the sum. Each call
// first adds the old to.lost to x. The sum should grow by the result of this addition, but rounding makes
// the sum grow by another amount. The new to.lost is the intended growth minus the real growth, so to.lost
// is positive if the sum is too small.
//
// Example: the sum is 256 and x is 1. The sum stays 256, and to.lost becomes 1. In the next call x is 1
// again. The sum should grow by 2, so it becomes 258, and to.lost becomes 0.
//
// Compute the new sum with bf16(...), which rounds to bfloat16. All other numbers may be floats. After each
// call, the check rounds to.sum and to.lost to bfloat16.
//
// The question: by how much does the sum really grow in one call of add()?
//
// Given:
//     struct Sum { float sum = 0, lost = 0; };
//     float bf16(float x);  // returns the bfloat16 nearest to x
#include "given.hpp"

void add(Sum& to, float x) { to.sum = bf16(to.sum + x); }
