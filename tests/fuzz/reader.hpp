// Declares the function that libFuzzer calls with random bytes. Each .cpp file in this folder defines this
// function for one file format. The folder corpus/ contains example files.
#pragma once

#include <cstddef>
#include <cstdint>

// A reader may throw an Error for invalid data. Every other failure must crash. libFuzzer requires this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
