// Tests that exact sums of gradients on a GPU have the same bits as on the CPU, and use host memory.
#include <cstdint>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/train.hpp"

namespace tally::test {

TEST_CASE("Window: exact sums have the same bits on every device and in any order") {
    Random random(8);
    const Array<float> x = random.array<float>({12, 5}), dy = random.array<float>({12, 3});
    std::vector<std::vector<float>> gradients;
    for (const Device device : {Device::cpu, here()})
        for (const std::vector<std::int64_t>& order :
             std::vector<std::vector<std::int64_t>>{{0, 1, 2, 3, 4, 5}, {5, 2, 0, 4, 1, 3}}) {
            const Tensor w = parameter(Array<float>::full({5, 3}, 0.5f).to(device));
            Sgd<float> sgd({w}, {.learning_rate = 0.1});
            Window window(sgd, {.sum = Sum::exact, .max_norm = 1e6});
            for (const std::int64_t i : order)
                window.add(Loss(matmul(constant(x.slice_rows(2 * i, 2 * i + 2).to(device)), w) *
                                constant(dy.slice_rows(2 * i, 2 * i + 2).to(device))));
            CHECK(window.finish().stepped);
            CHECK(w.value().device() == device);
            gradients.push_back(w.node()->gradient.to_vector());
        }
    for (const auto& gradient : gradients) CHECK(gradient == gradients[0]);
}

}  // namespace tally::test
