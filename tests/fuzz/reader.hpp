// The function that each reader of this folder defines, and that a fuzzer or the replay of the corpus calls.
// A new reader needs one .cpp file here and a folder in corpus/.
#pragma once

#include <cstddef>
#include <cstdint>

// An Error is a valid result for invalid bytes; every other failure must crash. libFuzzer sets the name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
