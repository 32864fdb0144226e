// A TrainingState holds named numbers, texts and arrays, from which a resumed run computes the same bits.
// save() writes all entries to a file with a version and a checksum.
//
//     bytes 0-7        the magic word "tally\r\n\0"
//     8-11             the version, 1
//     12-15            0
//     16-23            the length of the whole file
//     entries          in the order of their names: length of the name (4 bytes), name, kind (1 byte), value
//                        1  int64        8 bytes
//                        2  double       8 bytes
//                        3  string       its length (8 bytes), its bytes
//                        4  float array, 5  double array: number of axes (1 byte), extents (4 bytes each),
//                                                         the numbers, row-major
//     the last 8       CRC-64 of all bytes before
//
// All numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "tally/array/array.hpp"

namespace tally {

class TrainingState {
public:
    using Entry = std::variant<std::int64_t, double, std::string, Array<float>, Array<double>>;

    // Writes the file completely or not at all. Arrays on a GPU are written like arrays on the CPU.
    void save(const std::string& path) const;
    // Throws an Error that names the file and the byte if the file is invalid.
    static TrainingState load(const std::string& path);

    template <class T> void put(const std::string& name, T value) {
        if (!entries_.emplace(name, Entry(std::move(value))).second)
            throw Error("state", "'", name, "' exists already; use another name");
    }

    bool has(const std::string& name) const { return entries_.count(name) > 0; }

    // Throws if the entry does not exist or has a different type.
    template <class T> const T& get(const std::string& name) const {
        const auto found = entries_.find(name);
        if (found == entries_.end())
            throw Error("state", "there is no '", name, "'; load a state with this entry");
        const T* const value = std::get_if<T>(&found->second);
        if (value == nullptr) throw Error("state", "'", name, "' has another type; call get() with its type");
        return *value;
    }

    const std::map<std::string, Entry>& entries() const { return entries_; }

private:
    std::map<std::string, Entry> entries_;  // sorted, so that equal states give equal files
};

namespace detail {
// The first step of loading checks all entries and allocates all memory. The second step calls an
// `ApplyState`, which cannot fail. Loading therefore changes either all objects or no object.
using ApplyState = std::function<void()>;

// These functions write and read the file format in memory. Error messages call the file `name`.
std::string state_bytes(const TrainingState& state);
TrainingState parse_state(std::span<const std::byte> file, const std::string& name);
}  // namespace detail

}  // namespace tally
