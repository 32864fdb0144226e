// Tests that an inner checkpoint is not recorded if its results need no gradient.
#include "tally/checkpoint/checkpoint.hpp"

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

TEST_CASE("checkpoint: an inner checkpoint with constant results can read values that are not recomputed") {
    const Array<float> numbers({2, 2}, {0.5f, -1.25f, 0.75f, 2.f});
    const Tensor plain = parameter(numbers.clone()), x = parameter(numbers.clone());
    sum(cos(plain)).backward();
    const Tensor y = checkpoint(
        [](const Tensor& h) {
            // The backward function of cos reads only h, so cos is not recomputed.
            const Tensor wave = cos(h);
            checkpoint(
                [](const Tensor& w) {
                    const Tensor row = slice(w, 0, 1, 2);  // is recorded, but not used
                    return constant(Array<float>::zeros({}));
                },
                wave);
            return wave;
        },
        x);
    sum(y).backward();
    CHECK(same_bits(x.grad(), plain.grad()));
}
