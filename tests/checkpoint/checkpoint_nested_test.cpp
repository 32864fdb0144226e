// A checkpoint inside another whose results carry no gradient: it is not noted, and runs while kernels rest.
#include "tally/checkpoint/checkpoint.hpp"

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

TEST_CASE("a checkpoint that gives only constants may look at what is not computed again") {
    const Array<float> numbers({2, 2}, {0.5f, -1.25f, 0.75f, 2.f});
    const Tensor plain = parameter(numbers.clone()), x = parameter(numbers.clone());
    sum(cos(plain)).backward();
    const Tensor y = checkpoint(
        [](const Tensor& h) {
            const Tensor wave = cos(h);  // whose rule reads h alone: it is not computed again
            checkpoint(
                [](const Tensor& w) {
                    const Tensor row = slice(w, 0, 1, 2);  // recorded, and of no use
                    return constant(Array<float>::zeros({}));
                },
                wave);
            return wave;
        },
        x);
    sum(y).backward();
    CHECK(same_bits(x.grad(), plain.grad()));
}
