// Declares the function that a fuzzer, or the replay of the corpus, calls with bytes. Each reader of a file
// format has one .cpp file in this folder, which defines the function, and a folder in corpus/.
#pragma once

#include <cstddef>
#include <cstdint>

// Invalid bytes may throw an Error. Every other failure must crash. libFuzzer requires this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
