// Computes dropout. Each thread computes four elements of an item from one block of random bits.
#pragma once

#include <cstddef>

#include "tally/base/random.hpp"
#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class S> struct DropoutBody {
    const S* x;
    DropoutMask mask;
    S scale;
    Into<S[]> y;
    std::size_t width, blocks;  // elements and random blocks of an item
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const std::size_t item = i / blocks, first = i % blocks * 4;
        const random::detail::Words bits =
            random::detail::words(mask.seed, mask.stream, DropoutMask::index(mask.first + item, first) / 4);
        for (std::size_t l = 0; l < 4 && first + l < width; ++l) {
            const std::size_t at = item * width + first + l;
            store(y, at, x[at] * (bits[l] >= mask.dropped ? scale : S(0)));
        }
    }
};

template <class On, class S> void dropout(const S* x, const DropoutMask& mask, S scale, Into<S[]> y,
                                          std::size_t items, std::size_t width) {
    const std::size_t blocks = (width + 3) / 4;
    On::each("dropout", items * blocks, DropoutBody<S>{x, mask, scale, y, width, blocks});
}

template <class On, class S> void install_dropout(Kernels<S>& t) { t.dropout = dropout<On, S>; }

}  // namespace tally::gpu
