// save_safetensors() and load_safetensors() exchange named arrays with other programs by safetensors files.
//
// A safetensors file contains the length of a JSON header (8 bytes), the header, and the numbers. The header
// stores the type, shape and position of each array (huggingface.co/docs/safetensors).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "tally/array/array.hpp"

namespace tally::detail {

// Stores an array of type F32, F64 or I32. An array of type I64 is converted to I32 if all numbers fit.
using AnyArray = std::variant<Array<float>, Array<double>, Array<std::int32_t>>;

struct Safetensors {
    std::map<std::string, AnyArray> tensors;
    std::map<std::string, std::string> metadata;
};

// Adds the metadata entries for a checksum (CRC-64) of the whole file. The function that writes the file
// computes the checksum. Reading rejects a file with a wrong checksum, and accepts a file without a checksum.
std::map<std::string, std::string> checksum_metadata(std::map<std::string, std::string> metadata);

// Writes the same bytes as the safetensors library, as a complete file or not at all.
void save_safetensors(const std::string& path, const std::map<std::string, AnyArray>& tensors,
                      const std::map<std::string, std::string>& metadata = {});
// Throws an Error that names the file and the byte if the file is invalid.
Safetensors load_safetensors(const std::string& path);

// These functions write and parse a safetensors file in memory. Error messages call the file `name`.
std::string safetensors_bytes(const Safetensors& content);
Safetensors parse_safetensors(std::span<const std::byte> file, const std::string& name);

}  // namespace tally::detail
