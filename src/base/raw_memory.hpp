// How raw memory of a device is had.
#pragma once

#include <cstddef>

namespace tally::memory {

struct Raw {
    void* (*grab)(std::size_t bytes);  // 64-byte aligned; null when there is none
    void (*give)(void* data, std::size_t bytes);
    void (*fill)(void* data, unsigned char byte, std::size_t bytes);
};

}  // namespace tally::memory
