// A Kernels table lists the functions of a device for one scalar type. Each device fills its own tables.
//
// Rules for all kernels. Arrays are contiguous and row-major. Sizes may be 0. Operands do not overlap the
// destination. Only map, zip, map_back, zip_back along a contiguous index, and relu_bias_back may work in
// place (y == x, y == a, d == dy). A destination that is a plain pointer is uninitialised, and the kernel
// writes all elements. A kernel sets a destination of type `Into`, or adds to this destination. With `set`,
// the kernel does not read the destination and writes all elements, even if it sums over an axis of extent 0.
// Buffers consist of whole cache lines (base/alignment.hpp). Kernels may read to the end of a cache line, but
// do not write beyond the last element.
//
// The order of additions is fixed, so that the same call gives the same bits every time. The kernels
// zip_back, scatter, rows_back, and sum with in_order add samples sequentially, starting from the
// destination. Two calls for two micro-batches thus give the same bits as one call for the whole batch. If a
// sample has more than `longest_sequential_row` adjacent elements, the kernel first adds the elements of this
// sample, in an order that depends only on the number of elements.
//
// An ordered product updates each element by c = fma(a[p], b[p], c) for p = 0, 1, ..., k-1. If `how` is
// `add`, the first c is the old element. If `how` is `set`, the first c is -0, or 0 if k is 0. The bits of an
// element therefore do not depend on the number of threads, the vector width, the device, m or n.
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
// ReduceDims contains the extents of a reduction from x (outer, reduced, inner) to a result (outer, inner).
struct ReduceDims {
    std::size_t outer, reduced, inner;
    bool in_order = false;  // the reduced axis counts samples, so the sum is sequential
};
struct BatchNormDims {
    std::size_t items, features, space;  // of x (items, features, space)
};
inline constexpr std::size_t ordered_limit = 4096;  // with Products::blas, up to this many fma are in order
inline constexpr std::size_t longest_sequential_sum = 1024, longest_sequential_row = 64;

constexpr bool sums_in_order(const ReduceDims& dims) {
    return dims.in_order ||
           dims.reduced <= (dims.inner != 1 ? longest_sequential_sum : longest_sequential_row);
}

// A StridedIndex describes a row-major loop over `extent` with the strides of each operand. A stride of 0
// repeats an element along the axis. Adjacent axes are merged if the strides of all operands permit a merge,
// so a contiguous index has rank 1 and stride 1. If more than `longest_sequential_row` adjacent elements are
// summed, the first axis is not merged, because it may be the axis of the items.
template <int Operands> struct StridedIndex {
    int rank = 0;
    std::size_t size = 1;                      // product of the extents
    std::array<std::size_t, max_rank> extent;  // the outermost first; only `rank` of these are set
    std::array<std::array<std::ptrdiff_t, max_rank>, Operands> stride;
    std::array<std::size_t, Operands> operand_size;  // elements of each operand's array
};

// Returns whether a kernel sums `length` adjacent elements sequentially. A single axis is always summed
// sequentially, because it may be the axis of the items.
template <int Operands> constexpr bool sums_in_order(const StridedIndex<Operands>& walk, std::size_t length) {
    return walk.rank == 1 || length <= longest_sequential_row;
}

// Describes the matrix product C (m, n) = A (m, k) · B (k, n). The flags mark transposed operands.
struct Product {
    std::size_t m, n, k;
    bool transpose_a, transpose_b;
};

// Options of a cross-entropy. Rows with the label `ignore` are skipped. For all other rows, the fraction
// `smoothing` of the target probability is distributed over all classes.
struct LabelOptions {
    std::int32_t ignore = -100;
    double smoothing = 0;
};

// The mask of a dropout depends only on (seed, stream, item, element), so that an item has the same mask in
// every batch. `first` is the index of the batch's first item.
struct DropoutMask {
    std::uint64_t seed, stream, first;
    std::uint64_t dropped;  // how many of the 2^32 values of an element's random bits drop it

    static constexpr std::uint64_t index(std::uint64_t item, std::uint64_t element) {
        return item << 32 | element;
    }
};

// Describes a window of window_h x window_w pixels, which moves over an image (height, width) in steps of
// `stride`. The window starts `padding` pixels outside the image, and has out_h * out_w positions.
struct SlidingWindow {
    std::size_t height, width, window_h, window_w, stride, padding, out_h, out_w;
};

template <class S> struct Kernels {
    // ---- elementwise; `f` points to the functor ----
    using Map = void (*)(const void* f, const S* x, S* y, std::size_t n);
    using MapBack = void (*)(const void* f, const S* dy, const S* kept, Into<S[]> dx, std::size_t n);
    using Zip = void (*)(const void* f, const StridedIndex<2>&, const S* a, const S* b, S* y);
    // Computes the gradient of one operand, and sums the gradient over the axes that broadcast this operand.
    // Arguments that the derivative does not read are null. The arrays y and dy are contiguous.
    using ZipBack = void (*)(const void* f, const StridedIndex<2>&, const S* dy, const S* a, const S* b,
                             const S* y, Into<S[]> d);

    std::array<Map, std::tuple_size_v<UnaryOps>> map;
    std::array<MapBack, std::tuple_size_v<UnaryOps>> map_back;
    std::array<Zip, std::tuple_size_v<BinaryOps>> zip;
    std::array<ZipBack, std::tuple_size_v<BinaryOps>> zip_back_a, zip_back_b;

    // Computes y = c ? a : b. The operands of the index are c, a and b. where_back() computes the gradient of
    // a if `place` is 1, of b if `place` is 2: dy where c selects the operand, else 0, summed as in ZipBack.
    void (*where)(const StridedIndex<3>&, const std::int32_t* c, const S* a, const S* b, S* y);
    void (*where_back)(const StridedIndex<3>&, const std::int32_t* c, const S* dy, int place, Into<S[]> d);

    void (*fill)(S value, S* y, std::size_t n);
    // y (+)= factor * x. If the factor is 1, add_scaled() copies or adds the exact values of x.
    void (*add_scaled)(S factor, const S* x, Into<S[]> y, std::size_t n);
    // y (+)= x[index], with y contiguous.
    void (*gather)(const StridedIndex<1>&, const S* x, Into<S[]> y);
    // x[index] (+)= dy, with dy contiguous. With `set`, elements of x that are not in the index become 0.
    void (*scatter)(const StridedIndex<1>&, const S* dy, Into<S[]> x);
    // Copies or adds a block with `count` rows and `width` columns. A pitch is the distance between two rows.
    void (*block)(const S* x, std::size_t x_pitch, Into<S[]> y, std::size_t y_pitch, std::size_t count,
                  std::size_t width);
    // y[i] = x[index[i]]
    void (*rows)(const S* x, const std::int32_t* index, S* y, std::size_t count, std::size_t width);
    // dx[index[i]] (+)= dy[i]. Rows with a negative index are skipped.
    void (*rows_back)(const S* dy, const std::int32_t* index, Into<S[]> dx, std::size_t count,
                      std::size_t height, std::size_t width);

    void (*sum)(const S* x, Into<S[]> y, const ReduceDims&);
    void (*mean)(const S* x, S* y, const ReduceDims&);  // NaN if reduced is 0
    // dx[o, r, i] (+)= dy[o, i] / divisor
    void (*spread)(const S* dy, S divisor, Into<S[]> dx, const ReduceDims&);
    void (*max)(const S* x, S* y, const ReduceDims&);  // NaN counts as the largest; reduced is at least 1
    // max_back() divides the gradient equally among equal largest elements.
    void (*max_back)(const S* dy, const S* x, const S* y, Into<S[]> dx, const ReduceDims&);
    // logsumexp() returns -inf if all elements are -inf or if there are none, and +inf if an element is +inf.
    void (*logsumexp)(const S* x, S* y, const ReduceDims&);
    // dx (+)= dy * exp(x - y)
    void (*logsumexp_back)(const S* dy, const S* x, const S* y, Into<S[]> dx, const ReduceDims&);
    void (*softmax)(const S* x, S* y, const ReduceDims&);
    void (*softmax_back)(const S* dy, const S* y, Into<S[]> dx, const ReduceDims&);  // y * (dy - sum(dy * y))
    void (*log_softmax)(const S* x, S* y, const ReduceDims&);
    // dx (+)= dy - exp(y) * sum(dy)
    void (*log_softmax_back)(const S* dy, const S* y, Into<S[]> dx, const ReduceDims&);

    // Computes running sums along the reduced axis, from the first element or from the last element.
    void (*cumsum)(const S* x, Into<S[]> y, const ReduceDims&, bool from_the_end);
    void (*prod)(const S* x, S* y, const ReduceDims&);  // 1 if reduced is 0
    // dx = dy * (product of the elements before) * (product of the elements behind), without a division.
    void (*prod_back)(const S* dy, const S* x, S* dx, const ReduceDims&);
    // Finds the index of the first largest element, or of the first NaN. reduced is at least 1.
    void (*argmax)(const S* x, std::int32_t* y, const ReduceDims&);

    void (*matmul)(const Product&, const S* a, const S* b, Into<S[]> c);
    // linear() computes y = x · w + bias, linear_relu() y = relu(x · w + bias). bias may be null.
    void (*linear)(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k);
    void (*linear_relu)(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n,
                        std::size_t k);
    // Computes dz = dy where y > 0, and dz = 0 elsewhere. Also adds the rows of dz to dbias sequentially,
    // unless dbias.dst is null.
    void (*relu_bias_back)(const S* dy, const S* y, S* dz, Into<S[]> dbias, std::size_t rows,
                           std::size_t width);

    // Writes softmax(logits) (rows, classes), the loss summed over the rows whose label is not `ignore`, and
    // the number of these rows. Throws Error if a label is outside 0..classes-1.
    void (*cross_entropy)(const S* logits, const std::int32_t* labels, const LabelOptions&, S* probabilities,
                          S* total, S* count, std::size_t rows, std::size_t classes);
    void (*cross_entropy_back)(const S* dtotal, const S* probabilities, const std::int32_t* labels,
                               const LabelOptions&, Into<S[]> dlogits, std::size_t rows, std::size_t classes);
    // y = (x - mean) * rstd * gain + bias for each row. Writes the mean and rstd of each row for the backward
    // function. gain and bias may be null.
    void (*layer_norm)(const S* x, const S* gain, const S* bias, S eps, S* y, S* mean, S* rstd,
                       std::size_t rows, std::size_t width);
    void (*layer_norm_back)(const S* dy, const S* x, const S* gain, const S* mean, const S* rstd,
                            Into<S[]> dx, std::size_t rows, std::size_t width);
    void (*layer_norm_back_gain)(const S* dy, const S* x, const S* mean, const S* rstd, Into<S[]> dgain,
                                 std::size_t rows, std::size_t width);

    // ---- optimizers: one call for a list of tensors; the formulas are in optimizer_steps.hpp ----
    template <class Step> using UpdateAll = void (*)(std::span<const Update<S>>, const Step&);

    UpdateAll<SgdStep<S>> sgd;
    UpdateAll<AdamStep<S>> adam;
    UpdateAll<AverageStep<S>> average;
    UpdateAll<LimitStep<S>> limit;
    // found[0] is the sum of the squares of all gradients, computed in double, or 0 without `squares`.
    // found[1] is the number of elements that are not finite.
    void (*measure)(std::span<const Update<S>>, bool squares, double* found);

    // Computes the mean and the biased variance of each feature of x (items, features, space).
    void (*batch_moments)(const S* x, S* mean, S* variance, const BatchNormDims&);
    // y = (x - mean) * rstd * gain + bias for each feature.
    void (*batch_norm)(const S* x, const S* mean, const S* rstd, const S* gain, const S* bias, S* y,
                       const BatchNormDims&);
    // For each feature, `total` is the sum of dy, and `along` is the sum of dy * (x - mean) * rstd.
    void (*batch_norm_back_sums)(const S* dy, const S* x, const S* mean, const S* rstd, S* total, S* along,
                                 const BatchNormDims&);
    // dx (+)= gain * rstd * (dy - (total + (x - mean) * rstd * along) / (items * space)). With running
    // statistics, x, mean, total and along are null, and dx (+)= gain * rstd * dy.
    void (*batch_norm_back)(const S* dy, const S* x, const S* mean, const S* rstd, const S* gain,
                            const S* total, const S* along, Into<S[]> dx, const BatchNormDims&);
    // y (+)= x * scale where the mask keeps an element, x * 0 elsewhere; x is (items, width).
    void (*dropout)(const S* x, const DropoutMask&, S scale, Into<S[]> y, std::size_t items,
                    std::size_t width);

    // Copies the pixels under each position of the window from x (images, channels, height, width) to columns
    // (channels, window_h, window_w, images, out_h, out_w). Pixels outside the image are 0.
    void (*im2col)(const S* x, S* columns, const SlidingWindow&, std::size_t images, std::size_t channels);
    // Reverses im2col() by adding all copies of a pixel to this pixel of x, in the order of the window's
    // elements. With `set` the sum starts from 0.
    void (*col2im)(const S* columns, Into<S[]> x, const SlidingWindow&, std::size_t images,
                   std::size_t channels);
    // Finds the largest element of each window of x (planes, height, width), and its index in the plane.
    // max_pool() returns the first of equal elements, but the last of several NaN. No window leaves its plane.
    void (*max_pool)(const S* x, S* y, std::int32_t* place, const SlidingWindow&, std::size_t planes);
    // Adds the dy of each window, in order, to the window's largest pixel. With `set` the sum starts from 0.
    void (*max_pool_back)(const S* dy, const std::int32_t* place, Into<S[]> dx, const SlidingWindow&,
                          std::size_t planes);
};

// Returns the kernels of a device for float, double or Dual<double>. Throws Error if the device is missing.
template <class S> const Kernels<S>& find_kernels(Device device);
template <class S> const Kernels<S>& cpu_kernels();

template <class S> inline constinit std::atomic<const Kernels<S>*> found_kernels[2] = {};

// If `skip_compute` is true, this thread records operations, but the kernels compute nothing.
inline constinit thread_local bool skip_compute = false;
template <class S> const Kernels<S>& noop_kernels();

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

// The kernels in these namespaces use the names of the namespace detail.
namespace cpu {
using namespace detail;
}
namespace gpu {
using namespace detail;
}
namespace reference {
using namespace detail;
}

// Chooses the implementation of large matrix products. tally's kernels add in the order that this header
// defines, but the device's BLAS library adds in a different order. The environment variable TALLY_PRODUCTS
// sets the initial choice. A change applies to all later products, also in backward().
enum class Products { ordered, blas };
void set_products(Products products);
Products products();
namespace detail {
Products products_named(std::string_view name);  // throws Error unless "ordered" or "blas"
}  // namespace detail

void set_threads(int threads);  // for large products and weights on the CPU; 1 by default, at most 1024
int threads();

}  // namespace tally
