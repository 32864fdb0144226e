// Implements dropout. One block of the random generator contains the random bits of four elements.
#include <algorithm>

#include "tally/base/random.hpp"
#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/simd_loops.hpp"

namespace tally::cpu {

namespace {

template <class S> void dropout(const S* x, const DropoutMask& mask, S scale, Into<S[]> y, std::size_t items,
                                std::size_t width) {
    constexpr std::size_t chunk = 256;
    alignas(line) S factors[chunk];
    const std::uint64_t seed = mask.seed;
    for (std::size_t item = 0; item < items; ++item)
        for (std::size_t first = 0; first < width; first += chunk) {
            const std::size_t count = std::min(chunk, width - first), at = item * width + first;
            for (std::size_t j = 0; j < count; j += 4) {
                const std::uint64_t block = DropoutMask::index(mask.first + item, first + j) / 4;
                const random::detail::Words bits = random::detail::words(seed, mask.stream, block);
                for (std::size_t l = 0; l < 4; ++l) factors[j + l] = bits[l] >= mask.dropped ? scale : S(0);
            }
            simd_for_each(
                count, from(y, at), [](auto v, auto factor) { return v * factor; }, Contiguous<S>{x + at},
                Contiguous<S>{factors});
        }
}

}  // namespace

template <class S> void install_dropout(Kernels<S>& t) { t.dropout = dropout<S>; }

template void install_dropout(Kernels<float>&);
template void install_dropout(Kernels<double>&);

}  // namespace tally::cpu
