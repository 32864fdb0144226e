// save_safetensors() and load_safetensors() exchange named arrays with other programs by safetensors files.
//
// A file (huggingface.co/docs/safetensors) holds eight bytes with the length of a JSON header, the header
// with the type, shape and position of each array, and the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "tally/array/array.hpp"

namespace tally::detail {

// Holds an array of F32, F64 or I32. I64 is converted to int32 if all numbers fit.
using AnyArray = std::variant<Array<float>, Array<double>, Array<std::int32_t>>;

// Holds the content of a .safetensors file.
struct Safetensors {
    std::map<std::string, AnyArray> tensors;
    std::map<std::string, std::string> metadata;
};

// Adds metadata entries for a CRC-64 of the whole file. The writer fills in the CRC-64. The reader rejects a
// file with a wrong CRC-64, and accepts a file without these entries.
std::map<std::string, std::string> checksum_metadata(std::map<std::string, std::string> metadata);

// Writes a file completely or not at all, with the same bytes as the safetensors library.
void save_safetensors(const std::string& path, const std::map<std::string, AnyArray>& tensors,
                      const std::map<std::string, std::string>& metadata = {});
// Throws an Error that names the file and the byte if the file is invalid.
Safetensors load_safetensors(const std::string& path);

// Write and parse a safetensors file in memory. Error messages use `name` for the file.
std::string safetensors_bytes(const Safetensors& content);
Safetensors parse_safetensors(std::span<const std::byte> file, const std::string& name);

}  // namespace tally::detail
