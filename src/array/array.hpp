// Array<S>: numbers of one type in a shape, on a device. A handle: copies share one buffer, and whoever is
// about to write to a shared buffer copies it first, so that an array never changes behind your back. What a
// rule keeps is a reader like any other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/axes.hpp"
#include "tally/array/scalar.hpp"
#include "tally/array/shape.hpp"
#include "tally/base/alignment.hpp"
#include "tally/base/checksum.hpp"
#include "tally/base/error.hpp"
#include "tally/kernels/device.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernels.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

namespace detail::device_copy {
// From anywhere to anywhere.
void bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t count);
}  // namespace detail::device_copy

template <class S> class [[nodiscard]] Array {
public:
    using scalar = S;

    Array() = default;  // no memory yet
    Array(Shape shape, std::span<const S> values, Device device = Device::cpu);
    Array(Shape shape, std::initializer_list<S> values, Device device = Device::cpu)
        : Array(std::move(shape), std::span<const S>(values.begin(), values.size()), device) {}
    Array(Shape shape, const std::vector<S>& values, Device device = Device::cpu)
        : Array(std::move(shape), std::span<const S>(values), device) {}
    Array(std::initializer_list<S> vector) : Array(Shape{static_cast<std::int64_t>(vector.size())}, vector) {}

    [[gnu::always_inline]] static Array empty(const Shape& shape, Device device = Device::cpu) {
        return Array(shape, device);
    }  // uninitialised
    static Array full(const Shape& shape, S value, Device device = Device::cpu);
    static Array zeros(const Shape& shape, Device device = Device::cpu) { return full(shape, S(0), device); }

    Array(const Array& other)
        : data_(other.data_), shape_(other.shape_), device_(other.device_), storage_(other.storage_) {
        if (storage_) memory::detail::ref(storage_);
    }
    [[gnu::always_inline]] Array(Array&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          shape_(other.shape_),
          device_(other.device_),
          storage_(std::exchange(other.storage_, nullptr)) {}
    Array& operator=(const Array& other) {
        memory::detail::Storage* const before = storage_;
        if (other.storage_) memory::detail::ref(other.storage_);  // first: it may be the same
        shape_ = other.shape_;
        device_ = other.device_;
        data_ = other.data_;
        storage_ = other.storage_;
        if (before) memory::detail::unref(before);
        return *this;
    }
    // What was moved from has no memory, but still its shape.
    Array& operator=(Array&& other) noexcept {
        shape_ = other.shape_;
        device_ = other.device_;
        data_ = std::exchange(other.data_, nullptr);
        memory::detail::Storage* const before =
            std::exchange(storage_, std::exchange(other.storage_, nullptr));
        if (before) memory::detail::unref(before);
        return *this;
    }
    [[gnu::always_inline]] ~Array() {
        if (storage_) memory::detail::unref(storage_);
    }

    const Shape& shape() const& { return shape_; }
    Shape shape() const&& { return shape_; }
    std::size_t size() const { return shape_.size(); }
    Device device() const { return device_; }
    memory::detail::Storage* storage() const { return storage_; }

    // Reading. span() and item() look at the numbers, so they want the CPU; data() is a pointer
    // of the device.
    const S* data() const& { return data_; }
    const S* data() const&& = delete;  // would outlive the array: give it a name first
    std::span<const S> span() const&;
    std::span<const S> span() const&& = delete;
    std::vector<S> to_vector() const;  // from any device
    S item() const;

    // Writing, by whoever owns the array: the buffer is copied first if others hold it, arrays or rules, and
    // its version is raised.
    S* writable() &;
    S* writable() && = delete;

    Array to(Device device) const;
    Array clone() const;
    Array reshaped(const Shape& shape) const;  // shares the buffer
    Array slice_rows(std::int64_t from,
                     std::int64_t to) const;  // rows [from, to) of the first axis; shares the buffer

    // ---- for the engine ----
    void allocate() {  // memory for the shape, uninitialised
        storage_ = memory::detail::allocate(size() * sizeof(S), device_);
        data_ = static_cast<S*>(storage_->data);
    }
    void allocate_zeros();
    S* raw() { return data_; }        // of a buffer just made, or destined to be written
    void unshare();                   // from all who share its buffer: a copy that counts as what it was
    void share(const Array& other) {  // the buffer; the form is known already
        memory::detail::ref(other.storage_);
        reset();
        data_ = other.data_;
        storage_ = other.storage_;
    }
    [[gnu::always_inline]] void reset() {
        data_ = nullptr;
        if (storage_) memory::detail::unref(std::exchange(storage_, nullptr));
    }
    void take_over(Array& other) {  // the same, of one that needs it no more and keeps its form only
        reset();
        data_ = std::exchange(other.data_, nullptr);
        storage_ = std::exchange(other.storage_, nullptr);
    }
    static Array without_memory(const Shape& shape, Device device) {  // memory comes with allocate()
        return Array(WithoutMemory(), shape, device);
    }

private:
    friend class detail::Saved<Array>;
    struct Uncounted {};
    Array(Uncounted, const Array& other)
        : data_(other.data_), shape_(other.shape_), device_(other.device_), storage_(other.storage_) {}
    [[gnu::always_inline]] Array(const Shape& shape, Device device) : shape_(shape), device_(device) {
        allocate();
    }
    struct WithoutMemory {};
    Array(WithoutMemory, const Shape& shape, Device device) : shape_(shape), device_(device) {}

    // The pointers are kept apart: as neighbours they would be written one by one and read as a pair, for
    // which a processor waits.
    S* data_ = nullptr;  // of the first element in the buffer
    Shape shape_;
    Device device_ = Device::cpu;
    memory::detail::Storage* storage_ = nullptr;
};

// "[-0.3536  0.0207 -0.6125]"; more axes nest, long arrays are shortened.
template <class S> std::string to_string(const Array<S>& array, int digits = 4);
template <class S> std::ostream& operator<<(std::ostream& out, const Array<S>& array);

namespace detail {
// An Error when what was saved in this version was changed in place, and not left to who saved it.
[[gnu::cold]] void require_not_modified(const char* op, const memory::detail::Storage* saved,
                                        std::uint32_t version, const Shape& shape);

// A value kept for the backward pass, and the version it had: stepping an optimizer in between is noticed.
template <class S> class Saved<Array<S>> {
public:
    [[gnu::always_inline]] explicit Saved(const Array<S>* value)
        : value_(value ? Array<S>(typename Array<S>::Uncounted(), *value) : Array<S>()) {
        if (!value_.storage()) return;
        memory::detail::ref_saved(value_.storage());
        version_ = value_.storage()->version.load(std::memory_order_relaxed);
    }
    Saved(Saved&& other) noexcept : value_(std::move(other.value_)), version_(other.version_) {}
    Saved& operator=(Saved&& other) noexcept {
        drop();
        value_ = std::move(other.value_);
        version_ = other.version_;
        return *this;
    }
    [[gnu::always_inline]] ~Saved() { drop(); }

    [[gnu::always_inline]] const Array<S>& get(const char* op) const {
        if (value_.storage() && value_.storage()->version.load(std::memory_order_relaxed) != version_)
            require_not_modified(op, value_.storage(), version_, value_.shape());
        return value_;
    }

    [[gnu::always_inline]] void drop() {
        value_.data_ = nullptr;
        if (value_.storage_) memory::detail::unref_saved(std::exchange(value_.storage_, nullptr));
    }

private:
    Array<S> value_;
    std::uint32_t version_ = 0;
};

[[noreturn]] void fail_devices(const char* op, Device a, Device b);
[[noreturn]] void fail_without_memory(const char* op);

template <class S> [[gnu::always_inline]] inline bool is_unique(const Array<S>& x) {
    const memory::detail::Storage* const storage = x.storage();
    return storage && memory::detail::is_unique_temporary(storage) &&
           storage->bytes - x.size() * sizeof(S) < memory::line;
}

// ---- what the engine asks of a value (value.hpp) ----

template <class S> Array<S> like_without_memory(const Array<S>& x) {
    return Array<S>::without_memory(x.shape(), x.device());
}

template <class S> Array<S> ones_like(const Array<S>& x) {
    return Array<S>::full(x.shape(), S(1), x.device());
}

template <class S> Array<S> nans_like(const Array<S>& x) {
    return Array<S>::full(x.shape(), S(std::numeric_limits<double>::quiet_NaN()), x.device());
}
template <class S> Array<S> zeros_like(const Array<S>& x) { return Array<S>::zeros(x.shape(), x.device()); }

template <class S> bool has_memory(const Array<S>& x) { return x.storage() != nullptr; }

template <class S> [[gnu::always_inline]] inline void reset(Array<S>& x) { x.reset(); }

template <class S> [[gnu::noinline]] void replace_by_copy(Array<S>& x) { x = x.clone(); }

template <class S> [[gnu::always_inline]] inline void make_unique_buffer(Array<S>& x) {
    if (x.storage() && memory::detail::ref_count(x.storage()) > 1) [[unlikely]]
        replace_by_copy(x);
}

// On purpose, as an optimizer steps: rules keep what they have, but whoever saved this value must be told.
template <class S> void before_in_place_update(Array<S>& x) {
    if (!x.storage() || memory::detail::saved_count(x.storage()) == 0) return;
    const Array<S> saved = x;
    x.unshare();
    memory::detail::mark_replaced(saved.storage());
}

template <class S> void account_as(Array<S>& x, MemoryClass memory_class) {
    if (!x.storage()) return;
    if (memory_class == MemoryClass::gradient) make_unique_buffer(x);
    if (memory::detail::memory_class(x.storage()) != memory_class)
        memory::detail::reclassify(x.storage(), memory_class);
}

template <class S> bool same_shape_and_device(const Array<S>& a, const Array<S>& b) {
    return a.shape() == b.shape() && a.device() == b.device();
}

std::string describe(const Shape& shape, Device device);
template <class S> std::string describe(const Array<S>& x) { return describe(x.shape(), x.device()); }

template <class S> bool is_scalar(const Array<S>& x) { return x.size() == 1; }

template <class S> const Shape& shape_of(const Array<S>& x) { return x.shape(); }

template <class S> S item(const Array<S>& x) { return x.item(); }

template <class S> std::uint64_t checksum(const Array<S>& x) {
    if (x.device() != Device::cpu) return checksum(x.to(Device::cpu));
    return checksum_of(x.data(), x.size() * sizeof(S));
}

template <class S> std::uint32_t version_of(const Array<S>& x) {
    return x.storage() ? x.storage()->version.load(std::memory_order_relaxed) : 0;
}
}  // namespace detail

// ---- for whoever writes an operation ----

// The kernels of the device on which the operands are; on different devices there are none.
template <class S, class... Others>
const detail::Kernels<S>& kernels_for(const char* op, const Array<S>& a, const Others&... others) {
    if (!a.storage() || !(others.storage() && ...)) [[unlikely]] {
        if (!detail::skip_compute) detail::fail_without_memory(op);
    }
    ((others.device() == a.device() ? void() : detail::fail_devices(op, a.device(), others.device())), ...);
    return detail::kernels<S>(a.device());
}

namespace detail {
// While a custom operation's backward function runs, which may add where it should set.
inline constinit thread_local bool zero_output_buffers = false;
}  // namespace detail

// The memory to write a gradient to. The gradient already has the form of its value.
template <class S> [[gnu::always_inline]] inline Into<S[]> output_buffer(Into<Array<S>> into) {
    if (into.how == Write::set &&
        (!into.dst.storage() || memory::detail::ref_count(into.dst.storage()) > 1)) {
        into.dst.reset();
        if (detail::zero_output_buffers) [[unlikely]]
            into.dst.allocate_zeros();
        else
            into.dst.allocate();
    }
    return {into.dst.raw(), into.how};
}

// dx = dy, or dx += dy. The first shares its buffer.
template <class S>
[[gnu::always_inline]] inline void accumulate_into(Into<Array<S>> into, const Array<S>& gradient) {
    if (into.how == Write::set && !into.dst.storage() && gradient.storage())
        into.dst.share(gradient);
    else
        kernels_for<S>("accumulate", gradient)
            .add_scaled(S(1), gradient.data(), output_buffer(into), gradient.size());
}

// Uninitialised, of the form of x.
template <class S> Array<S> empty_like(const Array<S>& x) { return Array<S>::empty(x.shape(), x.device()); }

// x += factor * y, in place.
template <class S> void add_scaled(Array<S>& x, double factor, const Array<S>& y) {
    if (!detail::same_shape_and_device(x, y))
        detail::fail_gradient_form(detail::describe(x), detail::describe(y));
    S* place = x.writable();
    kernels_for("add_scaled", x, y)
        .add_scaled(static_cast<S>(factor), y.data(), {place, Write::add}, x.size());
}

// Where a gradient of as many elements as dy is written to. With `can_reuse_dy` nobody will read dy any more: if
// nobody else holds its buffer either, and this is the first contribution, it is that buffer, and dy has
// none: where it lies is asked before.
template <class S> [[gnu::always_inline]] inline Into<S[]> output_buffer(Into<Array<S>> dx,
                                                                         const Array<S>& dy,
                                                                         bool can_reuse_dy) {
    if (!can_reuse_dy || dx.how == Write::add || dx.dst.storage() || !detail::is_unique(dy))
        return output_buffer(dx);
    dx.dst.take_over(const_cast<Array<S>&>(dy));  // of a node whose last rule has read it
    return {dx.dst.raw(), Write::set};
}

namespace detail {
constexpr void make_contiguous(StridedIndex<2>& walk, std::size_t size) {
    walk.rank = 1;
    walk.size = walk.extent[0] = walk.operand_size[0] = walk.operand_size[1] = size;
    walk.stride[0][0] = walk.stride[1][0] = 1;
}
inline constexpr auto small_contiguous = [] {
    std::array<StridedIndex<2>, 17> walks{};
    for (std::size_t size = 0; size < walks.size(); ++size) make_contiguous(walks[size], size);
    return walks;
}();
// Of operands that have the output's shape. For few elements it is there already, because a kernel waits when
// it reads what has only just been written; for more it is made in `scratch`.
[[gnu::always_inline]] inline const StridedIndex<2>& contiguous_index(std::size_t size,
                                                                      StridedIndex<2>& scratch) {
    if (size < small_contiguous.size()) return small_contiguous[size];
    make_contiguous(scratch, size);
    return scratch;
}
inline bool is_contiguous(const StridedIndex<2>& walk) {
    return walk.rank == 1 && walk.stride[0][0] == 1 && walk.stride[1][0] == 1;
}
[[gnu::always_inline]] inline const StridedIndex<2>& walk(const Shape& out, const Shape& a, const Shape& b,
                                                          StridedIndex<2>& scratch) {
    if (a == out && b == out) return contiguous_index(out.size(), scratch);
    return scratch = broadcast_walk(out, a, b);
}
}  // namespace detail

// ---- the elementwise formulas on arrays, for the engine ----

namespace functor {  // where they are found: the first argument is one

template <detail::UnaryFunctor F, class S> Array<S> map(const F& f, const Array<S>& x) {
    Array<S> y = empty_like(x);
    detail::kernels<S>(x.device()).map[detail::slot<F, detail::UnaryOps>](&f, x.data(), y.raw(), x.size());
    return y;
}

// The same over the buffer of x, if nobody else holds it.
template <detail::UnaryFunctor F, class S> Array<S> map_in_place(const F& f, Array<S>& x) {
    if (!detail::is_unique(x)) return map(f, x);
    detail::kernels<S>(x.device()).map[detail::slot<F, detail::UnaryOps>](&f, x.data(), x.raw(), x.size());
    return std::move(x);
}

template <detail::UnaryFunctor F, class S> void map_back(const F& f, const Array<S>& dy, const Array<S>& kept,
                                                         Into<Array<S>> dx, bool can_reuse_dy = false) {
    const S *const arrived = dy.data(), *const read = kept.data();
    detail::kernels<S>(dy.device())
        .map_back[detail::slot<F, detail::UnaryOps>](&f, arrived, read, output_buffer(dx, dy, can_reuse_dy),
                                                     dy.size());
}

template <detail::BinaryFunctor F, class S> Array<S> zip(const F& f, const Array<S>& a, const Array<S>& b) {
    const auto kernel = kernels_for(F::name, a, b).zip[detail::slot<F, detail::BinaryOps>];
    if (a.shape() == b.shape()) {
        Array<S> y = empty_like(a);
        detail::StridedIndex<2> scratch;
        kernel(&f, detail::contiguous_index(y.size(), scratch), a.data(), b.data(), y.raw());
        return y;
    }
    Array<S> y = Array<S>::empty(detail::broadcast(F::name, a.shape(), b.shape()), a.device());
    kernel(&f, detail::broadcast_walk(y.shape(), a.shape(), b.shape()), a.data(), b.data(), y.raw());
    return y;
}

template <detail::BinaryFunctor F, class S>
Array<S> zip_in_place(const F& f, Array<S>& a, const Array<S>& b) {
    if (!detail::is_unique(a) || !(a.shape() == b.shape())) return zip(f, a, b);
    detail::StridedIndex<2> scratch;
    kernels_for(F::name, a, b)
        .zip[detail::slot<F, detail::BinaryOps>](&f, detail::contiguous_index(a.size(), scratch), a.data(),
                                                 b.data(), a.raw());
    return std::move(a);
}

// For one operand, summed over the axes in which it repeats. Of a, b and y only what the functor
// keeps is there.
template <detail::BinaryFunctor F, class S> void zip_back_a(const F& f, const Array<S>& dy, const Array<S>& a,
                                                            const Array<S>& b, const Array<S>& y,
                                                            Into<Array<S>> da, bool can_reuse_dy = false) {
    detail::StridedIndex<2> scratch;
    const detail::StridedIndex<2>& how =
        detail::walk(dy.shape(), da.dst.shape(), detail::has_memory(b) ? b.shape() : dy.shape(), scratch);
    const S* const arrived = dy.data();
    detail::kernels<S>(dy.device())
        .zip_back_a[detail::slot<F, detail::BinaryOps>](
            &f, how, arrived, a.data(), b.data(), y.data(),
            output_buffer(da, dy, can_reuse_dy && detail::is_contiguous(how)));
}

template <detail::BinaryFunctor F, class S> void zip_back_b(const F& f, const Array<S>& dy, const Array<S>& a,
                                                            const Array<S>& b, const Array<S>& y,
                                                            Into<Array<S>> db, bool can_reuse_dy = false) {
    detail::StridedIndex<2> scratch;
    const detail::StridedIndex<2>& how =
        detail::walk(dy.shape(), detail::has_memory(a) ? a.shape() : dy.shape(), db.dst.shape(), scratch);
    const S* const arrived = dy.data();
    detail::kernels<S>(dy.device())
        .zip_back_b[detail::slot<F, detail::BinaryOps>](
            &f, how, arrived, a.data(), b.data(), y.data(),
            output_buffer(db, dy, can_reuse_dy && detail::is_contiguous(how)));
}

}  // namespace functor

extern template class Array<float>;
extern template class Array<double>;
extern template class Array<Dual<double>>;
extern template class Array<std::int32_t>;

}  // namespace tally
