// What a device must offer: one table of kernels per scalar type. src/cpu fills it; a GPU fills a second one.
//
// Contracts, for all of them:
//  - arrays are contiguous and row-major; sizes may be 0; operands never overlap the destination, but map,
//  zip, map_back, zip_back along a plain walk, and relu_bias_back may work in place (y == x, y == a, d ==
//  dy);
//  - a plain pointer destination is uninitialised memory, all of which is written;
//  - `Into` sets or adds. With `set` the destination is not read and wholly written, also when a summed
//  extent is 0;
//  - operands lie in buffers of whole lines (base/alignment.hpp): kernels may read on to the end of a line,
//  but never write there;
//  - the order of additions is fixed: the same call gives the same bits every time;
//  - where a sum is over samples (zip_back, scatter, rows_back, sum if in_order) it starts from the destination and
//    adds one after the other, so that adding in two calls equals adding in one, bit for bit. Neighbours in
//    memory that belong to one sample, and are more than `ordered_row`, are summed apart first, in an order
//    that depends on their number alone;
//  - an ordered product is defined, not approximated: each element is the chain c <- fma(a[p], b[p], c), p = 0,
//    1, ..., k-1, from what the destination holds (add) or from -0 (set; 0 when k is 0). Sizes, threads,
//    vector widths and devices change no bit of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include "tally/kernels/device.hpp"
#include "tally/kernels/functors.hpp"
#include "tally/kernels/into.hpp"
#include "tally/kernels/max_rank.hpp"
#include "tally/kernels/optimizer_steps.hpp"

namespace tally {

namespace detail {
// Axes around a reduction: x is (outer, reduced, inner), its result (outer, inner).
struct ReduceAxes {
    std::size_t outer, reduced, inner;
    bool in_order = false;  // samples are reduced: one after the other, however many are neighbours
};
}  // namespace detail

// ---- what the engine asks of a device ----

namespace detail {
inline constexpr std::size_t ordered_limit =
    4096;  // multiply-adds: up to here Products::blas keeps the order
inline constexpr std::size_t ordered_sum = 1024, ordered_row = 64;

constexpr bool sums_in_order(const ReduceAxes& fold) {
    return fold.in_order || fold.reduced <= (fold.inner != 1 ? ordered_sum : ordered_row);
}

// A row-major walk over `extent`, with the place of each operand given by its strides (0 repeats:
// broadcasting). Neighbouring axes are merged where every operand allows it, so a plain walk has rank 1
// and stride 1. The first axis, which may count samples, stays by itself where rows of more than `ordered_row`
// neighbours go into one number.
template <int Operands> struct StridedIndex {
    int rank = 0;
    std::size_t size = 1;                      // product of the extents
    std::array<std::size_t, max_rank> extent;  // outermost first; `rank` of them
    std::array<std::array<std::ptrdiff_t, max_rank>, Operands> stride;
    std::array<std::size_t, Operands> operand_size;  // elements of each operand's whole array
};

// Of neighbours that go into one number: a walk along one axis may be over samples.
template <int Operands> constexpr bool sums_in_order(const StridedIndex<Operands>& walk, std::size_t length) {
    return walk.rank == 1 || length <= ordered_row;
}

// C (m, n) = A (m, k) · B (k, n); a flag says that the operand is stored transposed.
struct Product {
    std::size_t m, n, k;
    bool transpose_a, transpose_b;
};

// What the labels of a cross-entropy mean: `ignore` counts for nothing, and of every other label a share of
// `smoothing` is spread over all classes.
struct Targets {
    std::int32_t ignore = -100;
    double smoothing = 0;
};

// Which elements dropout keeps: a pure function of (seed, stream, item, element), so that an item's mask is
// the same in whatever batch it comes. The first of the items here is number `first`.
struct DropoutMask {
    std::uint64_t seed, stream, first;
    std::uint64_t dropped;  // of the 2^32 values that the bits of an element may have

    static constexpr std::uint64_t index(std::uint64_t item, std::uint64_t element) {
        return item << 32 | element;
    }
};

// A window of (tall, wide) that moves over (height, width) by `stride`, from `padding` before the first pixel
// on, to `down` times `across` places.
struct SlidingWindow {
    std::size_t height, width, tall, wide, stride, padding, down, across;
};

template <class S> struct Kernels {
    // ---- elementwise; `f` points to the functor, which may hold numbers ----
    using Map = void (*)(const void* f, const S* x, S* y, std::size_t n);
    using MapBack = void (*)(const void* f, const S* dy, const S* kept, Into<S[]> dx, std::size_t n);
    using Zip = void (*)(const void* f, const StridedIndex<2>&, const S* a, const S* b, S* y);
    // For one operand: computes its gradient and sums it over the axes in which that operand repeats, in one
    // pass. What the functor does not keep for this operand is null. y and dy follow the walk contiguously.
    using ZipBack = void (*)(const void* f, const StridedIndex<2>&, const S* dy, const S* a, const S* b,
                             const S* y, Into<S[]> d);

    std::array<Map, std::tuple_size_v<UnaryOps>> map;
    std::array<MapBack, std::tuple_size_v<UnaryOps>> map_back;
    std::array<Zip, std::tuple_size_v<BinaryOps>> zip;
    std::array<ZipBack, std::tuple_size_v<BinaryOps>> zip_back_a, zip_back_b;

    // y = c ? a : b; walk operands: c, a, b.   d of the operand chosen where c is nonzero (or zero), else 0,
    // summed as above; `place` is that operand's number in the walk (1 for a, 2 for b).
    void (*where)(const StridedIndex<3>&, const std::int32_t* c, const S* a, const S* b, S* y);
    void (*where_back)(const StridedIndex<3>&, const std::int32_t* c, const S* dy, int place, Into<S[]> d);

    // ---- memory ----
    void (*fill)(S value, S* y, std::size_t n);
    void (*add_scaled)(S factor, const S* x, Into<S[]> y,
                       std::size_t n);  // y (+)= factor * x; exact copy when factor is 1
    void (*gather)(const StridedIndex<1>&, const S* x,
                   Into<S[]> y);  // y (+)= x read along the walk; y contiguous
    void (*scatter)(const StridedIndex<1>&, const S* dy,
                    Into<S[]> x);  // the mirror image: x[walk] (+)= dy, all other x set to 0 by `set`
    // A block of a matrix to a block of another: y[r * y_pitch + i] (+)= x[r * x_pitch + i], i < width;
    // nothing else is written.
    void (*block)(const S* x, std::size_t x_pitch, Into<S[]> y, std::size_t y_pitch, std::size_t count,
                  std::size_t width);
    void (*rows)(const S* x, const std::int32_t* index, S* y, std::size_t count,
                 std::size_t width);  // y[i] = x[index[i]]
    // dx[index[i]] (+)= dy[i]; a row whose index is negative counts for nothing.
    void (*rows_back)(const S* dy, const std::int32_t* index, Into<S[]> dx, std::size_t count,
                      std::size_t height, std::size_t width);

    // ---- reductions ----
    void (*sum)(const S* x, Into<S[]> y, const ReduceAxes&);
    void (*mean)(const S* x, S* y, const ReduceAxes&);  // the sum / reduced; NaN when reduced is 0
    void (*spread)(const S* dy, S divisor, Into<S[]> dx,
                   const ReduceAxes&);                 // dx[o, r, i] (+)= dy[o, i] / divisor
    void (*max)(const S* x, S* y, const ReduceAxes&);  // NaN wins; reduced is at least 1
    void (*max_back)(const S* dy, const S* x, const S* y, Into<S[]> dx,
                     const ReduceAxes&);  // ties share equally
    void (*logsumexp)(const S* x, S* y,
                      const ReduceAxes&);  // -inf where all are -inf, +inf where one is; reduced 0 gives -inf
    void (*logsumexp_back)(const S* dy, const S* x, const S* y, Into<S[]> dx,
                           const ReduceAxes&);  // dy * exp(x - y)
    void (*softmax)(const S* x, S* y, const ReduceAxes&);
    void (*softmax_back)(const S* dy, const S* y, Into<S[]> dx, const ReduceAxes&);  // y * (dy - sum(dy * y))
    void (*log_softmax)(const S* x, S* y, const ReduceAxes&);
    void (*log_softmax_back)(const S* dy, const S* y, Into<S[]> dx,
                             const ReduceAxes&);  // dy - exp(y) * sum(dy)

    // Running sums along the middle axis, one after the other, from its front or from its end.
    void (*cumsum)(const S* x, Into<S[]> y, const ReduceAxes&, bool from_the_end);
    void (*prod)(const S* x, S* y, const ReduceAxes&);  // 1 when reduced is 0
    // dx = dy * the product of all others: those before it, times those after it, so nothing is divided.
    void (*prod_back)(const S* dy, const S* x, S* dx, const ReduceAxes&);
    void (*argmax)(const S* x, std::int32_t* y,
                   const ReduceAxes&);  // the first of the largest, or of the NaNs; reduced is at least 1

    // ---- linear algebra ----
    void (*matmul)(const Product&, const S* a, const S* b, Into<S[]> c);
    void (*linear)(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n,
                   std::size_t k);  // bias may be null
    // relu of it; and the way back to what relu was taken of: dz = dy where y > 0, else 0, and in the same
    // pass dbias (+)= its rows, one after the other. dbias.dst may be null.
    void (*linear_relu)(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n,
                        std::size_t k);
    void (*relu_bias_back)(const S* dy, const S* y, S* dz, Into<S[]> dbias, std::size_t rows,
                           std::size_t width);

    // ---- losses and norms ----
    // Rows whose label is `ignore` count for nothing. Writes softmax(logits) (rows, classes), the loss summed
    // over the counted rows, and their number. A label outside 0..classes-1 is an Error naming the label, its
    // row and the classes.
    void (*cross_entropy)(const S* logits, const std::int32_t* labels, const Targets&, S* probabilities,
                          S* total, S* count, std::size_t rows, std::size_t classes);
    void (*cross_entropy_back)(const S* dtotal, const S* probabilities, const std::int32_t* labels,
                               const Targets&, Into<S[]> dlogits, std::size_t rows, std::size_t classes);
    // y = (x - mean) * rstd * gain + bias over each row; mean and rstd (one a row) are written for the way
    // back. gain, bias may be null.
    void (*layer_norm)(const S* x, const S* gain, const S* bias, S eps, S* y, S* mean, S* rstd,
                       std::size_t rows, std::size_t width);
    void (*layer_norm_back)(const S* dy, const S* x, const S* gain, const S* mean, const S* rstd,
                            Into<S[]> dx, std::size_t rows, std::size_t width);
    void (*layer_norm_back_gain)(const S* dy, const S* x, const S* mean, const S* rstd, Into<S[]> dgain,
                                 std::size_t rows, std::size_t width);

    // ---- optimizers: one call for a list of tensors, element by element; the formulas are in updates.hpp ----
    template <class Step> using UpdateAll = void (*)(std::span<const Update<S>>, const Step&);

    UpdateAll<SgdStep<S>> sgd;
    UpdateAll<AdamStep<S>> adam;
    UpdateAll<AverageStep<S>> average;
    UpdateAll<LimitStep<S>> limit;
    // found[0]: the squares of all gradients, computed and summed in double, or 0 where they are not asked
    // for; found[1]: how many elements are not finite.
    void (*measure)(std::span<const Update<S>>, bool squares, double* found);
    // Of x (items, features, space), over items and space: the mean and the variance (divided
    // by their number).
    void (*batch_moments)(const S* x, S* mean, S* variance, const ReduceAxes&);
    // y = (x - mean) * rstd * gain + bias, with one of each a feature.
    void (*batch_norm)(const S* x, const S* mean, const S* rstd, const S* gain, const S* bias, S* y,
                       const ReduceAxes&);
    // One a feature: the sum of dy, and that of dy * (x - mean) * rstd.
    void (*batch_norm_back_sums)(const S* dy, const S* x, const S* mean, const S* rstd, S* total, S* along,
                                 const ReduceAxes&);
    // dx (+)= gain * rstd * (dy - (total + (x - mean) * rstd * along) / (items * space)). Where the batch did
    // not make its own statistics x, mean, total and along are null: gain * rstd * dy.
    void (*batch_norm_back)(const S* dy, const S* x, const S* mean, const S* rstd, const S* gain,
                            const S* total, const S* along, Into<S[]> dx, const ReduceAxes&);
    // y (+)= x * scale where the mask keeps, x * 0 elsewhere; x is (items, width).
    void (*dropout)(const S* x, const DropoutMask&, S scale, Into<S[]> y, std::size_t items,
                    std::size_t width);

    // ---- windows over images ----
    // columns (channels, tall, wide, images, down, across): what each place of the window sees of x (images,
    // channels, height, width); 0 beyond its edges.
    void (*im2col)(const S* x, S* columns, const SlidingWindow&, std::size_t images, std::size_t channels);
    // The mirror image: every pixel (+)= its places in the columns, from the first place of the window to the
    // last; with `set` the sum starts from 0.
    void (*col2im)(const S* columns, Into<S[]> x, const SlidingWindow&, std::size_t images,
                   std::size_t channels);
    // The largest of each window of x (planes, height, width), and where in its plane it lies: the first of
    // equals, the last NaN if there is one. Windows lie within the plane.
    void (*max_pool)(const S* x, S* y, std::int32_t* place, const SlidingWindow&, std::size_t planes);
    // Every pixel (+)= dy of the windows that chose it, in their order; with `set` the sum starts from 0.
    void (*max_pool_back)(const S* dy, const std::int32_t* place, Into<S[]> dx, const SlidingWindow&,
                          std::size_t planes);
};

// The one dispatch point. Kernels exist for float, double and Dual<double>. An unavailable device
// is an Error.
template <class S> const Kernels<S>& find_kernels(Device device);
template <class S> const Kernels<S>& cpu_kernels();

template <class S> inline constinit std::atomic<const Kernels<S>*> found_kernels[2] =
    {};  // by device, once they have been asked for

// While true, this thread's operations are merely recorded: nobody will read what they would compute.
inline constinit thread_local bool skip_compute = false;
template <class S> const Kernels<S>& noop_kernels();  // each of them does nothing

template <class S> [[gnu::always_inline]] inline const Kernels<S>& real_kernels(Device device) {
    const Kernels<S>* found =
        found_kernels<S>[static_cast<std::size_t>(device)].load(std::memory_order_acquire);
    return found ? *found : find_kernels<S>(device);
}

template <class S> [[gnu::always_inline]] inline const Kernels<S>& kernels(Device device) {
    if (skip_compute) [[unlikely]]
        return noop_kernels<S>();
    return real_kernels<S>(device);
}
}  // namespace detail

// Who fills the table speaks of it without saying where it stands.
namespace cpu {
using namespace detail;
}
namespace gpu {
using namespace detail;
}
namespace reference {
using namespace detail;
}

// ---- what a program may choose ----

// Who computes large products: our kernels, in the order above, or the device's library, in one of its own.
// TALLY_PRODUCTS in the environment says how a program begins; a change holds from the next product on, also
// where a graph is open.
enum class Products { ordered, blas };
void set_products(Products products);
Products products();
namespace detail {
Products products_named(std::string_view name);  // "ordered", "blas"; others are an Error
}  // namespace detail

void set_threads(int threads);  // for large products on the CPU; one unless said otherwise, at most 1024
int threads();

}  // namespace tally
