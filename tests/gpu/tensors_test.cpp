// Tests that gpu::in_launches() processes many tensors with few kernel launches. Also tests that each element
// is processed once, and that each launch has a limited size.
#include "kernel_testing.hpp"
#include "tally/gpu/on_host.hpp"

namespace tally::test {
namespace {

template <class S> std::vector<Update<S>> tensors_of(Dice& dice, const Buffer<S>& numbers, std::size_t most) {
    std::vector<Update<S>> list;
    for (std::size_t from = 0; from < numbers.size();) {
        Update<S> u;
        u.size = std::min(dice.upto(2) == 0 ? 0 : 1 + dice.upto(most), numbers.size() - from);
        u.gradient = u.value = numbers.data() + from;
        from += u.size;
        list.push_back(u);
    }
    return list;
}

}  // namespace

TEST_CASE("in_launches: finds every element of every tensor once and in order") {
    for (unsigned seed = 0; seed < 100; ++seed) {
        Dice dice(seed);
        INFO(dice.text());
        const Buffer<double> numbers(1 + dice.upto(2000));
        const auto list = tensors_of(dice, numbers, 20);
        std::vector<const double*> found;
        gpu::in_launches(std::span<const Update<double>>(list), [&](const gpu::Tensors<double>& some) {
            REQUIRE((some.count <= gpu::tensors_at_once && some.size > 0));
            for (std::size_t i = 0; i < some.size; ++i) {
                const auto [tensor, element] = some.find(i);
                REQUIRE(tensor < some.count);
                REQUIRE(element < some.list[tensor].size);
                found.push_back(some.list[tensor].gradient + element);
            }
        });
        REQUIRE(found.size() == numbers.size());
        for (std::size_t i = 0; i < found.size(); ++i) REQUIRE(found[i] == numbers.data() + i);
    }
}

TEST_CASE("measure: one tensor and many tensors have the same exact sums") {
    for (std::size_t n : {1u, 8191u, 8192u, 8193u, 50000u}) {
        Dice dice(static_cast<unsigned>(n));
        INFO(dice.text() << ", " << n << " numbers");
        const auto numbers = dice.numbers<float>(n);
        double squares = 0;
        for (float& x : numbers) {
            x = std::round(x * 8) / 8;
            squares += static_cast<double>(x) * static_cast<double>(x);
        }
        for (std::size_t most : {200u, 20000u}) {
            const auto list = tensors_of(dice, numbers, most);
            const Buffer<double> found(2);
            fast<float>().measure(list, true, found.data());
            CHECK(found[0] == squares);
            CHECK(found[1] == 0);
            fast<float>().limit(list, LimitStep<float>{1, 0.5f});
            fast<float>().measure(list, true, found.data());
            double limited = 0;
            for (float x : numbers) limited += static_cast<double>(x) * static_cast<double>(x);
            CHECK(found[0] == limited);
            squares = limited;
        }
        for (float x : numbers) REQUIRE(std::abs(x) <= 0.5f);
    }
}

}  // namespace tally::test
