// A file's bytes, and a reader of them that never goes beyond their end.
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

// What f makes of a file; that it does not fit into memory is an Error, too, which names the file.
template <class F> auto within_memory(const char* op, const std::string& path, F f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        throw Error("[" + std::string(op) + "] cannot read '" + path + "': it does not fit into memory");
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

// Of numbers of 64 bits. `refuse` gets the first one that does not fit, and its index; it throws.
template <class Refuse>
Array<std::int32_t> narrowed(const Shape& shape, std::span<const std::byte> numbers, Refuse refuse) {
    Array<std::int32_t> array = Array<std::int32_t>::empty(shape);
    for (std::size_t i = 0; i < array.size(); ++i) {
        std::int64_t wide;
        std::memcpy(&wide, numbers.data() + i * sizeof wide, sizeof wide);
        array.raw()[i] = static_cast<std::int32_t>(wide);
        if (array.raw()[i] != wide) refuse(wide, i);
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

    // The next bytes. Whoever wants to allocate for them asks first, and then knows that they are there.
    std::span<const std::byte> take(std::uint64_t count, const char* what) {
        if (count > left())
            fail("truncated: " + std::string(what) + " needs " + std::to_string(count) +
                 " bytes, present are " + std::to_string(left()));
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
    // A shape, or what is wrong with these extents as an error of the byte `at`.
    Shape shape(std::span<const std::int64_t> extents, std::uint64_t at) const {
        try {
            return Shape(extents);
        } catch (const Error& error) {
            fail(error.what(), at);
        }
    }

    [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }
    [[noreturn]] void fail(const std::string& what, std::uint64_t at) const {
        throw Error("[" + std::string(op_) + "] '" + file_ + "', byte " + std::to_string(at) + ": " + what);
    }

private:
    const char* op_;
    std::span<const std::byte> bytes_;
    std::string file_;
    std::uint64_t at_ = 0;
};

}  // namespace tally
