// An Array<S> stores numbers of type S, a shape and a device. Copies of an array share one buffer. A write
// first copies a shared buffer, so that other arrays and the values saved for backward() do not change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
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

    // Returns an array whose elements are uninitialised.
    [[gnu::always_inline]] static Array empty(const Shape& shape, Device device = Device::cpu) {
        return Array(shape, device);
    }
    static Array empty_like(const Array& x) { return empty(x.shape(), x.device()); }
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
        if (other.storage_) memory::detail::ref(other.storage_);  // before unref(): both may be the same
        shape_ = other.shape_;
        device_ = other.device_;
        data_ = other.data_;
        storage_ = other.storage_;
        if (before) memory::detail::unref(before);
        return *this;
    }
    // A moved-from array has a shape but no buffer.
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

    // data() points to memory of the array's device. span() throws Error unless the array is on the CPU.
    const S* data() const& { return data_; }
    const S* data() const&& = delete;  // the pointer would outlive a temporary array: give the array a name
    std::span<const S> span() const&;
    std::span<const S> span() const&& = delete;
    std::vector<S> to_vector() const;  // copies from any device
    S item() const;                    // the only element, from any device

    // Returns the buffer for writing, and raises the buffer's version counter. If other arrays or saved
    // values share the buffer, writable() first copies the buffer.
    S* writable() &;
    S* writable() && = delete;

    Array to(Device device) const;
    Array clone() const;
    // The results share the buffer of this array. slice_rows() returns the rows [from, to) of the first axis.
    Array reshaped(const Shape& shape) const;
    Array slice_rows(std::int64_t from, std::int64_t to) const;

    // ---- for the engine ----
    void allocate() {  // gets uninitialised memory for the shape
        storage_ = memory::detail::allocate(size() * sizeof(S), device_);
        data_ = static_cast<S*>(storage_->data);
    }
    void allocate_zeros();
    S* raw() { return data_; }  // does not copy the buffer; the write changes all arrays that share it
    // Copies the buffer. The copy has the same version, and counts as a parameter's memory if the old buffer did.
    void unshare();
    void share(const Array& other) {  // shares the buffer of an array with the same shape and device
        memory::detail::ref(other.storage_);
        reset();
        data_ = other.data_;
        storage_ = other.storage_;
    }
    [[gnu::always_inline]] void reset() {
        data_ = nullptr;
        if (storage_) memory::detail::unref(std::exchange(storage_, nullptr));
    }
    void take_over(Array& other) {  // moves the buffer here; `other` keeps only its shape and device
        reset();
        data_ = std::exchange(other.data_, nullptr);
        storage_ = std::exchange(other.storage_, nullptr);
    }
    static Array without_memory(const Shape& shape, Device device) {  // allocate() adds the memory
        return Array(WithoutMemory(), shape, device);
    }

private:
    friend class detail::Saved<Array>;
    struct WithoutRef {};  // copies without counting a reference, because Saved counts with ref_saved()
    Array(WithoutRef, const Array& other)
        : data_(other.data_), shape_(other.shape_), device_(other.device_), storage_(other.storage_) {}
    // Reads the size from `shape`, because a read of shape_ would wait for the store just before it.
    [[gnu::always_inline]] Array(const Shape& shape, Device device) : shape_(shape), device_(device) {
        storage_ = memory::detail::allocate(shape.size() * sizeof(S), device);
        data_ = static_cast<S*>(storage_->data);
    }
    struct WithoutMemory {};
    Array(WithoutMemory, const Shape& shape, Device device) : shape_(shape), device_(device) {}

    // data_ and storage_ are not adjacent. Compilers would store adjacent pointers separately and load both
    // as one 16-byte word. Such a load stalls, because a processor cannot forward two stores to one load.
    S* data_ = nullptr;  // the first element
    Shape shape_;
    Device device_ = Device::cpu;
    memory::detail::Storage* storage_ = nullptr;
};

// Returns text like "[-0.3536  0.0207 -0.6125]", with nested brackets for several axes. Shortens long axes.
template <class S> std::string to_string(const Array<S>& array, int digits = 4);
template <class S> std::ostream& operator<<(std::ostream& out, const Array<S>& array);

namespace detail {
// Call this function if the version of a saved buffer has changed. Throws Error, unless the reason is that
// another thread updated the parameter: the update moved the parameter to a new buffer and raised the version
// of this buffer, which still contains the old numbers.
[[gnu::cold]] void throw_unless_replaced_elsewhere(const char* op, const memory::detail::Storage* saved,
                                                   std::uint32_t version, const Shape& shape);

// A `Saved` stores a value for the backward pass, and the version of the buffer. get() throws Error if
// this version has changed, as after an optimizer step. A write through writable() copies a saved buffer instead.
template <class S> class Saved<Array<S>> {
public:
    [[gnu::always_inline]] explicit Saved(const Array<S>* value)
        : value_(value ? Array<S>(typename Array<S>::WithoutRef(), *value) : Array<S>()) {
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
            throw_unless_replaced_elsewhere(op, value_.storage(), version_, value_.shape());
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

// Returns whether only x uses the buffer, which is not larger than x needs, and is not saved for backward, a
// parameter or a gradient.
template <class S> [[gnu::always_inline]] inline bool can_be_overwritten(const Array<S>& x) {
    const memory::detail::Storage* const storage = x.storage();
    return storage && memory::detail::is_unique_temporary(storage) &&
           storage->bytes - x.size() * sizeof(S) < memory::line;
}

// ---- functions that the engine requires of a value (value.hpp) ----

template <class S> Array<S> like_without_memory(const Array<S>& x) {
    return Array<S>::without_memory(x.shape(), x.device());
}

template <class S> Array<S> full_like(const Array<S>& x, double value) {
    return Array<S>::full(x.shape(), S(value), x.device());
}

template <class S> bool has_memory(const Array<S>& x) { return x.storage() != nullptr; }

template <class S> [[gnu::always_inline]] inline void reset(Array<S>& x) { x.reset(); }

template <class S> [[gnu::noinline]] void replace_by_copy(Array<S>& x) { x = x.clone(); }

template <class S> [[gnu::always_inline]] inline void make_unique_buffer(Array<S>& x) {
    if (x.storage() && memory::detail::ref_count(x.storage()) > 1) [[unlikely]]
        replace_by_copy(x);
}

// Copies `numbers`, an array on any device, into the memory of x.
template <class S> void copy_into(Array<S>& x, const Array<S>& numbers) {
    S* const place = x.writable();
    device_copy::bytes(place, x.device(), numbers.data(), numbers.device(), numbers.size() * sizeof(S));
}

// Call this function before you update x in place. If a backward function has saved x, x moves to a copy of
// its buffer, so that backward functions of other threads keep the old numbers. A backward function of this
// thread that reads the old buffer throws, as after any other change in place.
template <class S> void before_in_place_update(Array<S>& x) {
    if (!x.storage() || memory::detail::saved_count(x.storage()) == 0) return;
    const Array<S> saved = x;
    x.unshare();
    memory::detail::mark_replaced(saved.storage());
}

// Sets the memory class of the buffer. If x is a gradient that shares its buffer, copies the buffer first.
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

template <class S> bool has_one_element(const Array<S>& x) { return x.size() == 1; }

template <class S> const Shape& shape_of(const Array<S>& x) { return x.shape(); }

template <class S> S item(const Array<S>& x) { return x.item(); }

template <class S> std::uint64_t checksum(const Array<S>& x, std::optional<unsigned> sample = {}) {
    if (x.device() != Device::cpu) return checksum(x.to(Device::cpu), sample);
    const std::size_t bytes = x.size() * sizeof(S);
    return sample ? sampled_checksum_of(x.data(), bytes, *sample) : checksum_of(x.data(), bytes);
}

template <class S> std::uint32_t version_of(const Array<S>& x) {
    return x.storage() ? x.storage()->version.load(std::memory_order_relaxed) : 0;
}
}  // namespace detail

// ---- for authors of operations ----

namespace detail {
// Returns the kernels for the operands. Throws if devices differ. Throws if an operand has no memory, unless
// a checkpoint skips computations (skip_compute in kernels.hpp).
template <class S, class... Others>
[[gnu::always_inline]] inline const Kernels<S>& kernels_for(const char* op, const Array<S>& a,
                                                            const Others&... others) {
    if (!a.storage() || !(others.storage() && ...)) [[unlikely]] {
        if (!detail::skip_compute) detail::fail_without_memory(op);
    }
    ((others.device() == a.device() ? void() : detail::fail_devices(op, a.device(), others.device())), ...);
    return detail::kernels<S>(a.device());
}

// If true, new gradient buffers contain zeros. The backward function of a custom() operation may then use +=.
inline constinit thread_local bool zero_grad_buffers = false;

// Returns the memory for a gradient, and allocates it if needed. The gradient must have a shape and device.
template <class S> [[gnu::always_inline]] inline Into<S[]> grad_buffer(Into<Array<S>> into) {
    if (into.how == Write::set &&
        (!into.dst.storage() || memory::detail::ref_count(into.dst.storage()) > 1)) {
        into.dst.reset();
        if (detail::zero_grad_buffers) [[unlikely]]
            into.dst.allocate_zeros();
        else
            into.dst.allocate();
    }
    return {into.dst.raw(), into.how};
}
// Returns the memory for dx, which has as many elements as dy. If `can_reuse_dy`, a dx without memory takes
// over an unshared buffer of dy. Call dy.data() before this function, because dy may lose its buffer.
template <class S> [[gnu::always_inline]] inline Into<S[]> grad_buffer(Into<Array<S>> dx, const Array<S>& dy,
                                                                       bool can_reuse_dy) {
    if (!can_reuse_dy || dx.how == Write::add || dx.dst.storage() || !can_be_overwritten(dy))
        return grad_buffer(dx);
    dx.dst.take_over(const_cast<Array<S>&>(dy));  // allowed, because the node of dy does not read it again
    return {dx.dst.raw(), Write::set};
}
// Moves the buffer of dy to a gradient without memory, and returns true. Returns false if the gradient has
// memory, or if the buffer of dy is shared or larger than needed.
template <class S> [[gnu::always_inline]] inline bool try_take_over(Into<Array<S>> into, const Array<S>& dy) {
    if (into.how == Write::add || into.dst.storage() || !can_be_overwritten(dy)) return false;
    into.dst.take_over(const_cast<Array<S>&>(dy));  // allowed, as in grad_buffer()
    return true;
}

template <class S> [[gnu::noinline]] void copy_or_add(Into<Array<S>> into, const Array<S>& gradient) {
    kernels_for("accumulate", gradient).add_scaled(S(1), gradient.data(), grad_buffer(into), gradient.size());
}
}  // namespace detail

// Sets a gradient, or adds to it. To set a gradient without memory, shares the buffer of `gradient`.
template <class S>
[[gnu::always_inline]] inline void accumulate_into(Into<Array<S>> into, const Array<S>& gradient) {
    if (into.how == Write::set && !into.dst.storage() && gradient.storage())
        into.dst.share(gradient);
    else
        detail::copy_or_add(into, gradient);
}

// Computes x += factor * y in place.
template <class S> void add_scaled(Array<S>& x, double factor, const Array<S>& y) {
    if (!detail::same_shape_and_device(x, y))
        detail::fail_gradient_shape(detail::describe(x), detail::describe(y));
    S* dst = x.writable();
    detail::kernels_for("add_scaled", x, y)
        .add_scaled(static_cast<S>(factor), y.data(), {dst, Write::add}, x.size());
}

namespace detail {
template <class S> void set_to_one(Array<S>& x) {
    real_kernels<S>(x.device()).fill(S(1), grad_buffer(Into<Array<S>>{x, Write::set}).dst, x.size());
}

constexpr void make_contiguous(StridedIndex<2>& index, std::size_t size) {
    index.rank = 1;
    index.size = index.extent[0] = index.operand_size[0] = index.operand_size[1] = size;
    index.stride[0][0] = index.stride[1][0] = 1;
}
inline constexpr auto small_contiguous = [] {
    std::array<StridedIndex<2>, 17> indices{};
    for (std::size_t size = 0; size < indices.size(); ++size) make_contiguous(indices[size], size);
    return indices;
}();
// Returns the index for operands that have the shape of the output. Indices of up to 16 elements are
// constants, because a kernel stalls on an index that was just written. A larger index is built in `scratch`.
[[gnu::always_inline]] inline const StridedIndex<2>& contiguous_index(std::size_t size,
                                                                      StridedIndex<2>& scratch) {
    if (size < small_contiguous.size()) return small_contiguous[size];
    make_contiguous(scratch, size);
    return scratch;
}
inline bool is_contiguous(const StridedIndex<2>& index) {
    return index.rank == 1 && index.stride[0][0] == 1 && index.stride[1][0] == 1;
}
[[gnu::always_inline]] inline const StridedIndex<2>& broadcast_index(const Shape& out, const Shape& a,
                                                                     const Shape& b,
                                                                     StridedIndex<2>& scratch) {
    if (a == out && b == out) return contiguous_index(out.size(), scratch);
    return scratch = broadcast_index(out, a, b);
}
}  // namespace detail

// ---- elementwise functions on arrays, for the engine ----

namespace functor {  // found by argument-dependent lookup: the first argument is a functor

template <detail::UnaryFunctor F, class S> Array<S> map(const F& f, const Array<S>& x) {
    Array<S> y = Array<S>::empty_like(x);
    detail::kernels<S>(x.device()).map[detail::slot<F, detail::UnaryOps>](&f, x.data(), y.raw(), x.size());
    return y;
}

// Writes f(x) into the buffer of x, or into a new array if the buffer of x must not be overwritten.
template <detail::UnaryFunctor F, class S> Array<S> map_in_place(const F& f, Array<S>& x) {
    if (!detail::can_be_overwritten(x)) return map(f, x);
    detail::kernels<S>(x.device()).map[detail::slot<F, detail::UnaryOps>](&f, x.data(), x.raw(), x.size());
    return std::move(x);
}

// `saved` is x or y, as F::keeps says, or dy if F keeps nothing.
template <detail::UnaryFunctor F, class S> void map_back(const F& f, const Array<S>& dy,
                                                         const Array<S>& saved, Into<Array<S>> dx,
                                                         bool can_reuse_dy = false) {
    const S *const dy_data = dy.data(), *const saved_data = saved.data();
    detail::kernels<S>(dy.device())
        .map_back[detail::slot<F, detail::UnaryOps>](&f, dy_data, saved_data,
                                                     detail::grad_buffer(dx, dy, can_reuse_dy), dy.size());
}

template <detail::BinaryFunctor F, class S> Array<S> zip(const F& f, const Array<S>& a, const Array<S>& b) {
    const auto kernel = detail::kernels_for(F::name, a, b).zip[detail::slot<F, detail::BinaryOps>];
    if (a.shape() == b.shape()) {
        Array<S> y = Array<S>::empty_like(a);
        detail::StridedIndex<2> scratch;
        kernel(&f, detail::contiguous_index(y.size(), scratch), a.data(), b.data(), y.raw());
        return y;
    }
    Array<S> y = Array<S>::empty(detail::broadcast(F::name, a.shape(), b.shape()), a.device());
    kernel(&f, detail::broadcast_index(y.shape(), a.shape(), b.shape()), a.data(), b.data(), y.raw());
    return y;
}

template <detail::BinaryFunctor F, class S>
Array<S> zip_in_place(const F& f, Array<S>& a, const Array<S>& b) {
    if (!detail::can_be_overwritten(a) || !(a.shape() == b.shape())) return zip(f, a, b);
    detail::StridedIndex<2> scratch;
    detail::kernels_for(F::name, a, b)
        .zip[detail::slot<F, detail::BinaryOps>](&f, detail::contiguous_index(a.size(), scratch), a.data(),
                                                 b.data(), a.raw());
    return std::move(a);
}

// Computes the gradient of operand 0 (a) or 1 (b), summed over the axes along which the operand is broadcast.
// The arrays a, b and y have memory only if the operation has saved them.
template <std::size_t operand, detail::BinaryFunctor F, class S>
void zip_back(const F& f, const Array<S>& dy, const Array<S>& a, const Array<S>& b, const Array<S>& y,
              Into<Array<S>> d, bool can_reuse_dy = false) {
    const auto shape_of = [&](std::size_t i, const Array<S>& x) -> const Shape& {
        return i == operand ? d.dst.shape() : detail::has_memory(x) ? x.shape() : dy.shape();
    };
    detail::StridedIndex<2> scratch;
    const detail::StridedIndex<2>& index =
        detail::broadcast_index(dy.shape(), shape_of(0, a), shape_of(1, b), scratch);
    const auto& kernels = detail::kernels<S>(dy.device());
    const S* const dy_data = dy.data();
    (operand == 0 ? kernels.zip_back_a : kernels.zip_back_b)[detail::slot<F, detail::BinaryOps>](
        &f, index, dy_data, a.data(), b.data(), y.data(),
        detail::grad_buffer(d, dy, can_reuse_dy && detail::is_contiguous(index)));
}

}  // namespace functor

extern template class Array<float>;
extern template class Array<double>;
extern template class Array<Dual<double>>;
extern template class Array<std::int32_t>;

}  // namespace tally
