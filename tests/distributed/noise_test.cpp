// Tests how a Window that several processes share estimates the noise of the gradient.
#include <cmath>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

struct Micro {
    std::vector<double> gradient;  // gradient of the sum of the losses
    double count;
};

double squared(const std::vector<double>& x, double divisor) {
    double sum = 0;
    for (const double each : x) sum += each / divisor * each / divisor;
    return sum;
}

}  // namespace

TEST_CASE("Window::noise: all processes have the same estimates, computed from all micro-batches") {
    Random r(common_seed("noise"));
    for (int i = 0; i < 30; ++i) {
        const std::int64_t d = r.whole(1, 30);
        std::vector<std::vector<Micro>> micros(ranks());
        for (auto& mine : micros)
            for (std::int64_t n = r.whole(0, 3); n-- > 0;) {
                const Array<double> drawn = r.array<double>({d});
                mine.push_back({drawn.to_vector(), static_cast<double>(r.whole(1, 5))});
            }
        for (std::size_t least = 0; least < 2; ++least)
            micros[0].push_back({std::vector<double>(static_cast<std::size_t>(d), r.between(1, 2)), 2});

        const Tensor64 w = parameter(Array<double>::zeros({d}));
        Sgd<double> sgd({w}, {.learning_rate = 0.1});
        DataParallel<double> across(world());
        Window<double> window(sgd, {.sum = r.coin() ? Sum::exact : Sum::running, .noise = true}, &across);
        for (const Micro& micro : micros[me()])
            window.add({sum(w * constant(Array<double>({d}, micro.gradient))),
                        constant(Array<double>::full({}, micro.count))});
        const auto found = window.finish().noise;
        CHECK(same_everywhere(Array<double>({2}, {found.traces, found.squares})));

        std::vector<double> all(static_cast<std::size_t>(d));
        double count = 0, firsts = 0, first = 0, first_share = 0;
        for (const auto& mine : micros) {
            for (const Micro& micro : mine) {
                for (std::size_t j = 0; j < all.size(); ++j) all[j] += micro.gradient[j];
                count += micro.count;
            }
            if (mine.empty()) continue;
            ++firsts;
            first += squared(mine[0].gradient, mine[0].count);
            first_share += 1 / mine[0].count;
        }
        first /= firsts, first_share /= firsts;
        const double trace = (first - squared(all, count)) / (first_share - 1 / count);
        const double bound = 1e-12 * (first + squared(all, count)) / (first_share - 1 / count);
        CHECK(found.windows == 1);
        CHECK(std::abs(found.trace() - trace) <= bound);
        CHECK(std::abs(found.square() - (squared(all, count) - trace / count)) <= bound);
    }
}

TEST_CASE("Window: measuring noise on only some processes throws an Error") {
    if (ranks() == 1) return;
    const Tensor64 w = parameter(Array<double>::zeros({2}));
    Sgd<double> sgd({w}, {.learning_rate = 0.1});
    DataParallel<double> across(world());
    const std::string error =
        message_of([&] { Window<double>(sgd, {.noise = me() + 1 == ranks()}, &across); });
    CHECK_THAT(error, contains("has option noise yes, rank 0 has no"));
}

}  // namespace tally::test
