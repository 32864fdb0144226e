// Declares the function that libFuzzer calls with random bytes. Each .cpp file in this folder defines this
// function for one file format. The folder corpus/ contains example files.
#pragma once

#include <cstddef>
#include <cstdint>

// Returns 0 if the reader accepts `data` or throws an Error. Every other failure aborts the program.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
