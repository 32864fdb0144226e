// Compares the engine of lessons/00_by_hand.cpp with tally on random programs. The gradients of both engines
// must have equal bits.
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/tensor.hpp"

#define main by_hand_main
#include "../lessons/00_by_hand.cpp"
#undef main

using namespace tally;

namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

}  // namespace

TEST_CASE("00_by_hand: gradients have the same bits as those of tally") {
    const auto seed = std::random_device()();
    CAPTURE(seed);
    std::mt19937 draw(seed);
    const auto below = [&](std::size_t count) { return draw() % count; };
    std::uniform_real_distribution<double> value(-1.5, 1.5);
    int reached = 0;
    for (int program = 0; program < 500; ++program) {
        CAPTURE(program);
        const std::size_t parameters = 1 + below(4);
        std::vector<by_hand::Number> mine;
        std::vector<Scalar> theirs;
        for (std::size_t i = 0; i < parameters; ++i) {
            const double x = value(draw);
            mine.push_back(by_hand::number(x));
            theirs.push_back(parameter(x));
        }
        for (std::size_t steps = 1 + below(30); steps > 0; --steps) {
            const std::size_t a = below(mine.size()), b = below(mine.size());
            switch (below(3)) {
                case 0:
                    mine.push_back(mine[a] + mine[b]);
                    theirs.push_back(theirs[a] + theirs[b]);
                    break;
                case 1:
                    mine.push_back(mine[a] * mine[b]);
                    theirs.push_back(theirs[a] * theirs[b]);
                    break;
                default:
                    mine.push_back(tanh(mine[a]));
                    theirs.push_back(tanh(theirs[a]));
                    CHECK(std::abs(mine.back()->value - theirs.back().item()) < 1e-15);
                    mine.back()->value =
                        theirs.back().item();  // functions of the C library may differ in the last bits
            }
        }
        for (int pass = 0; pass < 2;
             ++pass) {  // the second gradient is added to the first, as with micro-batches
            by_hand::backward(mine.back() * by_hand::number(0.75));
            (theirs.back() * constant(0.75)).backward();
            if (pass == 0) {
                mine.push_back(mine[0] * mine[0]);
                theirs.push_back(theirs[0] * theirs[0]);
            }
        }
        for (std::size_t i = 0; i < parameters; ++i) {
            REQUIRE(mine[i]->arrived == theirs[i].has_grad());
            if (!mine[i]->arrived) continue;
            ++reached;
            REQUIRE(bits(mine[i]->gradient) == bits(theirs[i].grad()));
        }
    }
    CHECK(reached > 500);
}
