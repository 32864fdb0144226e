// Compares kernels that move a window over images (im2col, col2im, max_pool) with plain loops.
#include "kernel_testing.hpp"

namespace tally::test {

namespace {

std::string text(const SlidingWindow& w) {
    std::ostringstream words;
    words << w.height << " x " << w.width << " under " << w.window_h << " x " << w.window_w << ", stride "
          << w.stride << ", padding " << w.padding;
    return words.str();
}

SlidingWindow random_windows(Dice& dice, std::size_t most_padding) {
    SlidingWindow w{};
    w.height = 1 + dice.upto(11);
    w.width = dice.pick<std::size_t>({1, 2, 3, 8, 15, 16, 17, 33});
    w.padding = dice.upto(most_padding);
    w.window_h = 1 + dice.upto(std::min<std::size_t>(w.height + 2 * w.padding, 5) - 1);
    w.window_w = 1 + dice.upto(std::min<std::size_t>(w.width + 2 * w.padding, 5) - 1);
    w.stride = 1 + dice.upto(3);
    w.out_h = (w.height + 2 * w.padding - w.window_h) / w.stride + 1;
    w.out_w = (w.width + 2 * w.padding - w.window_w) / w.stride + 1;
    return w;
}

}  // namespace

TEMPLATE_TEST_CASE("im2col, col2im: have the bits of the plain loop", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 400; ++seed) {
        Dice dice(seed);
        const SlidingWindow w = random_windows(dice, 3);
        const std::size_t images = dice.upto(3), channels = dice.upto(3);
        const Write how = dice.how();
        INFO(dice.text() << ", " << images << " x " << channels << " x " << text(w) << ", "
                         << write_names[static_cast<int>(how)]);
        const std::size_t pixels = images * channels * w.height * w.width,
                          size = channels * w.window_h * w.window_w * images * w.out_h * w.out_w;
        const auto x = dice.numbers<S>(pixels), slopes = dice.numbers<S>(size);
        const Buffer<S> columns(size, dice.upto(3)), want(size);
        fast<S>().im2col(x.data(), columns.data(), w, images, channels);
        plain<S>().im2col(x.data(), want.data(), w, images, channels);
        CHECK(bit_difference(columns, want) == "");
        const auto dx = dice.destination<S>(pixels, how);
        const Buffer<S> want_dx = dx;
        fast<S>().col2im(slopes.data(), into(dx, how), w, images, channels);
        plain<S>().col2im(slopes.data(), into(want_dx, how), w, images, channels);
        CHECK(bit_difference(dx, want_dx) == "");
    }
}

TEMPLATE_TEST_CASE("max_pool: has the bits of the plain loop, forward and backward", "", float, double) {
    using S = TestType;
    const S inf = std::numeric_limits<S>::infinity(), nan = std::numeric_limits<S>::quiet_NaN();
    for (unsigned seed = 0; seed < 400; ++seed) {
        Dice dice(seed);
        const SlidingWindow w = random_windows(dice, 0);
        const std::size_t planes = dice.upto(4);
        const Write how = dice.how();
        INFO(dice.text() << ", " << planes << " planes of " << text(w) << ", "
                         << write_names[static_cast<int>(how)]);
        const std::size_t pixels = planes * w.height * w.width, size = planes * w.out_h * w.out_w;
        const auto x = dice.numbers<S>(pixels), dy = dice.numbers<S>(size);
        for (S& pixel : x) {
            pixel = std::round(pixel);  // makes equal numbers
            if (dice.upto(20) == 0) pixel = dice.pick<S>({inf, -inf, nan, S(-0.0)});
        }
        const Buffer<S> y(size, dice.upto(3)), want(size);
        const Buffer<std::int32_t> place(size, dice.upto(3)), want_place(size);
        fast<S>().max_pool(x.data(), y.data(), place.data(), w, planes);
        plain<S>().max_pool(x.data(), want.data(), want_place.data(), w, planes);
        CHECK(bit_difference(y, want) == "");
        CHECK(std::equal(place.begin(), place.end(), want_place.begin()));
        CHECK(place.guards_hold());
        const auto dx = dice.destination<S>(pixels, how);
        const Buffer<S> want_dx = dx;
        fast<S>().max_pool_back(dy.data(), want_place.data(), into(dx, how), w, planes);
        plain<S>().max_pool_back(dy.data(), want_place.data(), into(want_dx, how), w, planes);
        CHECK(bit_difference(dx, want_dx) == "");
    }
}

}  // namespace tally::test
