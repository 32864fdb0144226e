// safetensors files: named arrays to and from other programs (huggingface.co/docs/safetensors). Eight bytes
// with the length of a JSON header, the header, and the numbers, which it says the type, shape and place of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>

#include "tally/array/array.hpp"

namespace tally {

// F32, F64 and I32; I64 is read as int32 when its numbers fit.
using AnyArray = std::variant<Array<float>, Array<double>, Array<std::int32_t>>;

// What a .safetensors file holds.
struct Safetensors {
    std::map<std::string, AnyArray> tensors;
    std::map<std::string, std::string> metadata;
};

namespace detail {
// The metadata of a file that says whether it was damaged: a CRC-64 of all its bytes, which the writer fills
// in. Such a file is read only if it is right; one without is taken as it is.
std::map<std::string, std::string> checked_metadata(std::map<std::string, std::string> metadata);
}  // namespace detail

// The same bytes as the safetensors library writes; the file appears whole or not at all.
void save_safetensors(const std::string& path, const std::map<std::string, AnyArray>& tensors,
                      const std::map<std::string, std::string>& metadata = {});
// What is wrong with a file is an Error that names it and the byte.
Safetensors load_safetensors(const std::string& path);

namespace detail {
// The same in memory; `name` stands for the file in errors.
std::string safetensors_bytes(const Safetensors& content);
Safetensors parse_safetensors(std::span<const std::byte> file, const std::string& name);
}  // namespace detail

}  // namespace tally
