// Sixteen bits, and a sum that stays alive.
//
// A bfloat16 has 8 bits of precision, so 256 + 1 is 256: a sum of ones stops growing at 256, whatever comes after. So
// does a gradient that is accumulated in bfloat16, over many micro-batches.
//
// Kahan's remedy keeps a second number: what rounding has lost. Before x is added, what was lost the last time is given
// back to it; afterwards the difference between what should have been added and what the sum has really grown by is the
// new loss. Use bf16(...) for the new sum, so that you see what is lost; all the rest may be computed in float.
#include "given.hpp"

void add(Sum& to, float x) { to.sum = bf16(to.sum + x); }
