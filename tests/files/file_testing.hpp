// What the tests of file formats share: bytes to and from files, and numbers as bytes.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

namespace tally::test {

inline std::string read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

template <class T> std::string as_text(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace tally::test
