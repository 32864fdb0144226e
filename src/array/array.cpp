#include "tally/array/array.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ostream>
#include <type_traits>

#include "tally/device/backend.hpp"

namespace tally {

namespace detail::device_copy {

void bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t count) {
    if (to_device != Device::cpu || from_device != Device::cpu)
        backend::copy(to, to_device, from, from_device, count);
    else if (count)
        std::memcpy(to, from, count);
}

}  // namespace detail::device_copy

template <class S> Array<S>::Array(Shape shape, std::span<const S> values, Device device)
    : Array(WithoutMemory(), shape, device) {  // the destructor frees the memory if the copy throws
    if (values.size() != size())
        throw Error("array", values.size(), " values were given for the shape ", shape_, ", which has ",
                    size(), " elements");
    allocate();
    detail::device_copy::bytes(storage_->data, device_, values.data(), Device::cpu, size() * sizeof(S));
}

template <class S> Array<S> Array<S>::full(const Shape& shape, S value, Device device) {
    Array made = empty(shape, device);
    if constexpr (std::is_integral_v<S>) {
        const std::vector<S> values(made.size(), value);
        detail::device_copy::bytes(made.storage_->data, device, values.data(), Device::cpu,
                                   made.size() * sizeof(S));
    } else {
        detail::real_kernels<S>(device).fill(value, made.raw(), made.size());
    }
    return made;
}

template <class S> void Array<S>::allocate_zeros() { *this = zeros(shape_, device_); }

template <class S> std::span<const S> Array<S>::span() const& {
    if (!storage_) detail::fail_without_memory("span");
    if (device_ != Device::cpu)
        throw Error("[span] the array is on cuda; read it with to(Device::cpu) or to_vector()");
    return {data_, size()};
}

template <class S> std::vector<S> Array<S>::to_vector() const {
    if (!storage_) detail::fail_without_memory("to_vector");
    std::vector<S> values(size());
    detail::device_copy::bytes(values.data(), Device::cpu, data_, device_, size() * sizeof(S));
    return values;
}

template <class S> S Array<S>::item() const {
    if (size() != 1) throw Error("[item] requires exactly one element; the array is " + to_string(shape_));
    if (!storage_) detail::fail_without_memory("item");
    S value{};
    detail::device_copy::bytes(&value, Device::cpu, data_, device_, sizeof(S));
    return value;
}

template <class S> S* Array<S>::writable() & {
    if (!storage_) detail::fail_without_memory("writable");
    if (memory::detail::ref_count(storage_) > 1) unshare();
    memory::detail::raise_version(storage_);
    return data_;
}

template <class S> void Array<S>::unshare() {
    const MemoryClass memory_class = memory::detail::memory_class(storage_);
    const std::uint32_t version = storage_->version;
    *this = clone();
    storage_->version = version;  // a checkpoint compares versions, so the copy must not begin at 0
    if (memory_class == MemoryClass::parameter) memory::detail::reclassify(storage_, memory_class);
}

template <class S> Array<S> Array<S>::to(Device device) const {
    if (!storage_) detail::fail_without_memory("to");
    if (device == device_) return *this;
    if (!available(device)) throw Error("[to] " + backend::unavailable_reason());
    Array made = empty(shape_, device);
    detail::device_copy::bytes(made.raw(), device, data(), device_, size() * sizeof(S));
    return made;
}

template <class S> Array<S> Array<S>::clone() const {
    if (!storage_) detail::fail_without_memory("clone");
    Array made = empty(shape_, device_);
    detail::device_copy::bytes(made.raw(), device_, data(), device_, size() * sizeof(S));
    return made;
}

template <class S> Array<S> Array<S>::reshaped(const Shape& shape) const {
    if (shape.size() != size())
        throw Error("reshape", shape_, " has ", size(), " elements, but ", shape, " has ", shape.size());
    Array same = *this;
    same.shape_ = shape;
    return same;
}

template <class S> Array<S> Array<S>::slice_rows(std::int64_t from, std::int64_t to) const {
    if (shape_.rank() == 0) throw Error("[slice] a single number has no rows");
    if (from < 0 || to < from || to > shape_[0])
        throw Error("slice", "rows ", from, " to ", to, " are not within ", shape_);
    Array part = *this;
    part.shape_ = shape_.with_rows(to - from);
    if (part.data_ && part.size())  // no data where a checkpoint skips the computation
        part.data_ += static_cast<std::size_t>(from) * (part.size() / static_cast<std::size_t>(to - from));
    return part;
}

namespace detail {
std::string describe(const Shape& shape, Device device) {
    return "shape " + to_string(shape) + (device == Device::cpu ? "" : " on cuda");
}

void throw_unless_replaced_elsewhere(const char* op, const memory::detail::Storage* saved,
                                     std::uint32_t version, const Shape& shape) {
    if (memory::detail::replaced_by_another_thread(saved, version)) return;
    throw Error(
        std::string("[backward] '") + op + "' saved version " + std::to_string(version) + " of an array of " +
        to_string(shape) + ", which is now at version " + std::to_string(saved->version.load()) +
        ": the array was changed in place between forward and backward; step the optimizer after backward()");
}

void fail_without_memory(const char* op) {
    throw Error(std::string("[") + op +
                "] an array has no memory: nothing was assigned to it, or it was moved away");
}

void fail_devices(const char* op, Device a, Device b) {
    throw Error(std::string("[") + op + "] operands are on different devices: " + to_string(a) + " and " +
                to_string(b));
}
}  // namespace detail

// ---- printing ----

namespace {

constexpr double max_fixed = 1e16;  // larger doubles have no decimal places: print them with an exponent

std::string format_number(double x, int digits, std::chars_format format) {
    // to_chars prints 6 decimal places if `digits` is negative.
    std::string text(static_cast<std::size_t>(std::max(digits, 6)) + 24, ' ');
    text.resize(static_cast<std::size_t>(
        std::to_chars(text.data(), text.data() + text.size(), x, format, digits).ptr - text.data()));
    return text;
}
std::string format_number(double x, int digits) {
    if (!(std::abs(x) < max_fixed)) return format_number(x, digits, std::chars_format::scientific);
    const std::string text = format_number(x, digits, std::chars_format::fixed);
    const bool vanishes = x != 0 && text.find_first_of("123456789") == std::string::npos;
    return vanishes ? format_number(x, digits, std::chars_format::scientific) : text;
}
std::string format_number(float x, int digits) { return format_number(static_cast<double>(x), digits); }
std::string format_number(std::int32_t x, int) { return std::to_string(x); }
std::string format_number(Dual<double> x, int digits) {
    return format_number(x.value, digits) + "+" + format_number(x.rate, digits) + "e";
}

constexpr std::size_t edge = 4;  // elements printed at either end of a long axis
constexpr std::size_t long_axis = 12;

// Prints text(i) for each of the `count` elements i from `from`. Omits the middle elements of long axes.
template <class Text>
void print(std::string& out, Text text, const Shape& shape, int axis, std::size_t from, std::size_t count) {
    if (axis == shape.rank()) {
        out += text(from);
        return;
    }
    const auto extent = static_cast<std::size_t>(shape[axis]);
    const bool innermost = axis + 1 == shape.rank();
    const std::size_t step = extent ? count / extent : 0;
    out += '[';
    for (std::size_t i = 0; i < extent; ++i) {
        if (i) out += innermost ? " " : "\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
        if (extent > long_axis && i == edge) {
            out += "...";
            i = extent - edge - 1;
            continue;
        }
        print(out, text, shape, axis + 1, from + i * step, step);
    }
    out += ']';
}

}  // namespace

template <class S> std::string to_string(const Array<S>& array, int digits) {
    if (!array.storage()) return "[no memory]";
    const std::vector<S> values = array.to_vector();
    std::size_t width = 0;
    const auto aligned = [&](std::size_t i) {
        const std::string text = format_number(values[i], digits);
        width = std::max(width, text.size());
        return std::string(width - text.size(), ' ') + text;
    };
    std::string out;
    for (int pass = 0; pass < 2; ++pass) {  // the first pass finds the width
        out.clear();
        print(out, aligned, array.shape(), 0, 0, array.size());
    }
    return out;
}

template <class S> std::ostream& operator<<(std::ostream& out, const Array<S>& array) {
    return out << to_string(array);
}

#define TALLY_ARRAY(S)                                    \
    template class Array<S>;                              \
    template std::string to_string(const Array<S>&, int); \
    template std::ostream& operator<<(std::ostream&, const Array<S>&);
TALLY_ARRAY(float)
TALLY_ARRAY(double)
TALLY_ARRAY(Dual<double>)
TALLY_ARRAY(std::int32_t)
#undef TALLY_ARRAY

}  // namespace tally
