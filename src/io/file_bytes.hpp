// A ByteReader reads numbers and texts from the bytes of a file, and never reads beyond the last byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/base/error.hpp"

namespace tally {

std::vector<std::byte> read_file(const char* op, const std::string& path);

// Returns f(). If f() runs out of memory, throws an Error that contains `path`.
template <class F> auto within_memory(const char* op, const std::string& path, F f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw Error(op, "cannot read '", path, "': the file does not fit into memory");
    }
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

template <class S> Array<S> array_of(const Shape& shape, std::span<const std::byte> numbers) {
    Array<S> array = Array<S>::empty(shape);
    if (!numbers.empty()) std::memcpy(array.raw(), numbers.data(), numbers.size());
    return array;
}

// Converts 64-bit integers to int32. Calls throw_too_wide(integer, index) if an integer does not fit.
template <class ThrowTooWide> Array<std::int32_t> narrowed(const Shape& shape,
                                                           std::span<const std::byte> numbers,
                                                           ThrowTooWide throw_too_wide) {
    Array<std::int32_t> array = Array<std::int32_t>::empty(shape);
    for (std::size_t i = 0; i < array.size(); ++i) {
        std::int64_t wide;
        std::memcpy(&wide, numbers.data() + i * sizeof wide, sizeof wide);
        array.raw()[i] = static_cast<std::int32_t>(wide);
        if (array.raw()[i] != wide) throw_too_wide(wide, i);
    }
    return array;
}

class ByteReader {
public:
    ByteReader(const char* op, std::span<const std::byte> bytes, std::string file)
        : op_(op), bytes_(bytes), file_(std::move(file)) {}

    std::uint64_t at() const { return at_; }
    std::uint64_t size() const { return bytes_.size(); }
    std::uint64_t left() const { return bytes_.size() - at_; }

    // Returns the next `count` bytes, or throws if fewer bytes are left. Call take() before you allocate
    // memory for the bytes, because the size in a file may be wrong.
    std::span<const std::byte> take(std::uint64_t count, const char* what) {
        if (count > left())
            throw_here("truncated: ", what, " needs ", count, " bytes, but ", left(), " are left");
        const auto taken = bytes_.subspan(at_, count);
        at_ += count;
        return taken;
    }
    template <class T> T number(const char* what) {
        static_assert(std::is_arithmetic_v<T>);
        T value;
        std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
        return value;
    }
    std::string text(std::uint64_t length, const char* what) {
        const auto taken = take(length, what);
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }
    // Returns a shape, or throws an Error that names the byte `at` if the extents are invalid.
    Shape shape(std::span<const std::int64_t> extents, std::uint64_t at) const {
        try {
            return Shape(extents);
        } catch (const Error& error) {
            throw_at(at, error.what());
        }
    }

    template <class... Parts> [[noreturn]] void throw_here(const Parts&... parts) const {
        throw_at(at_, parts...);
    }
    template <class... Parts> [[noreturn]] void throw_at(std::uint64_t at, const Parts&... parts) const {
        throw Error(op_, "'", file_, "', byte ", at, ": ", parts...);
    }

private:
    const char* op_;
    std::span<const std::byte> bytes_;
    std::string file_;
    std::uint64_t at_ = 0;
};

}  // namespace tally
